import os
import socket
import struct
import time

import pytest

from hostagent.flows import inet_diag
from hostagent.flows.connection import TCP, FiveTuple
from hostagent.flows.inet_diag import Destroyed, InetDiag, parse_message

V4, MAPPED, V6 = "127.0.0.1", "::ffff:127.0.0.1", "::1"


@pytest.fixture
def diag():
    with InetDiag() as diag:
        yield diag


def listed(diag, *arguments):
    return diag.connections(*arguments).connections


def packed(address):
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, V4), (socket.AF_INET6, V6)])
def test_connection_in_full(diag, family, address):
    with (
        socket.create_server((address, 0), family=family) as server,
        socket.create_connection(server.getsockname()[:2]) as client,
    ):
        accepted, _ = server.accept()
        with accepted:
            client.sendall(b"x" * 12_345)
            assert len(accepted.recv(20_000, socket.MSG_WAITALL | socket.MSG_DONTWAIT) or b"") <= 12_345
            port, peer = client.getsockname()[1], server.getsockname()[1]
            found = {connection.tuple: connection for connection in listed(diag)}
            there = found[FiveTuple(packed(address), packed(address), TCP, port, peer)]
            back = found[FiveTuple(packed(address), packed(address), TCP, peer, port)]
            assert (there.bytes_sent, back.bytes_sent) == (12_345, 0)
            assert there.inode == os.fstat(client.fileno()).st_ino
            assert back.inode == os.fstat(accepted.fileno()).st_ino
            assert there.cookie != back.cookie
            again = {connection.tuple: connection for connection in listed(diag)}
            assert again[there.tuple].cookie == there.cookie


def test_ipv4_through_an_ipv6_socket_is_ipv4(diag):
    with (
        socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server,
        socket.create_connection((V4, server.getsockname()[1])) as client,
    ):
        accepted, _ = server.accept()
        with accepted:
            back = FiveTuple(packed(V4), packed(V4), TCP, server.getsockname()[1], client.getsockname()[1])
            assert os.fstat(accepted.fileno()).st_ino in {
                connection.inode for connection in listed(diag) if connection.tuple == back
            }


def test_listening_and_closed_sockets_are_no_flows(diag, eventually):
    with socket.create_server((V4, 0)) as server:
        port = server.getsockname()[1]
        assert port not in {connection.tuple.source_port for connection in listed(diag)}
        client = socket.create_connection((V4, port))
        accepted, _ = server.accept()
        own = client.getsockname()[1]
        assert own in {connection.tuple.source_port for connection in listed(diag)}
        accepted.close()
        client.close()
        # Whose last packets are still on their way is not closed yet.
        eventually(lambda: own not in {connection.tuple.source_port for connection in listed(diag)})


def test_many_connections_take_several_reads(diag):
    with socket.create_server((V4, 0), backlog=1500) as server:
        clients = [socket.create_connection(server.getsockname()) for _ in range(700)]
        ports = {client.getsockname()[1] for client in clients}
        # 700 in each direction at more than 400 bytes each is more than one read holds.
        assert ports <= {connection.tuple.source_port for connection in listed(diag)}
        for client in clients:
            client.close()


def message(attributes):
    """An inet_diag_msg as the kernel makes it: IPv4, 10.0.0.1:5000 to 10.0.0.2:6000."""
    body = struct.pack("=BBBB", socket.AF_INET, 1, 0, 0) + struct.pack("!HH", 5000, 6000)
    body += packed("10.0.0.1") + bytes(12) + packed("10.0.0.2") + bytes(12)
    body += struct.pack("=IQ", 3, 0x1122334455667788) + struct.pack("=IIIII", 0, 0, 0, 1000, 424242)
    return struct.pack("=IHHII", 16 + len(body) + len(attributes), 20, 2, 1, 0) + body + attributes


@pytest.mark.parametrize(
    ("info", "sent"),
    [
        (bytes(200) + struct.pack("=QQ", 1000, 30), 970),
        (bytes(200) + struct.pack("=QQ", 1000, 30) + bytes(64), 970),  # a newer kernel's is longer
        (bytes(120) + struct.pack("=QQ", 555, 7), 555),  # one before 4.19 has bytes_acked only
        (bytes(104), 0),
        (b"", 0),
    ],
)
def test_tcp_info_of_any_kernel(info, sent):
    other = struct.pack("=HHI", 8, 5, 0)
    connection = parse_message(message(other + struct.pack("=HH", 4 + len(info), 2) + info))
    assert connection.tuple == FiveTuple(packed("10.0.0.1"), packed("10.0.0.2"), TCP, 5000, 6000)
    assert (connection.cookie, connection.inode) == (0x1122334455667788, 424242)
    assert connection.bytes_sent == sent


def test_broken_attributes_end_the_search():
    assert parse_message(message(struct.pack("=HH", 0, 2))).bytes_sent == 0


def test_a_request_that_the_kernel_does_not_know_is_an_error_not_a_hang(diag):
    with pytest.raises(OSError, match="inet_diag"):
        list(diag._dump(99))
    assert diag.connections().present == []


def test_ignored_cookies_are_left_out(diag):
    with (
        socket.create_server((V4, 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        ports = {connection.tuple.source_port: connection for connection in listed(diag)}
        ours = ports[client.getsockname()[1]]
        rest = listed(diag, {ours.cookie})
        assert ours.cookie not in {connection.cookie for connection in rest}
        assert server.getsockname()[1] in {connection.tuple.source_port for connection in rest}


def test_bytes_received_and_the_time_of_quiet(diag):
    with (
        socket.create_server((V4, 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        accepted, _ = server.accept()
        with accepted:
            client.sendall(bytes(4321))
            accepted.recv(4321, socket.MSG_WAITALL)
            time.sleep(0.2)
            found = {connection.tuple.source_port: connection for connection in listed(diag)}
            assert found[server.getsockname()[1]].bytes_received == 4321
            assert 190 <= found[client.getsockname()[1]].quiet_ms < 2000


def info(sent, *, size=248):
    return (
        bytes(44)
        + struct.pack("=I", 7)
        + bytes(72)
        + struct.pack("=QQ", 1, 9)
        + bytes(64)
        + struct.pack("=QQ", sent, 0)
        + bytes(size - 216)
    )


@pytest.mark.parametrize("sizes", [(248,) * 5, (248, 248, 256, 248, 248), (248, 104, 248), (104, 104)])
def test_alike_or_not_every_message_of_a_piece_is_read(sizes):
    attributes = [
        struct.pack("=HH", 4 + size, 2) + (info(size * 10, size=size) if size >= 216 else bytes(size))
        for size in sizes
    ]
    piece = memoryview(b"".join(message(attribute) for attribute in attributes))
    read = inet_diag._read(piece, frozenset(), frozenset(), {}, [])
    assert [connection.bytes_sent for connection in read] == [
        size * 10 if size > 200 else 0 for size in sizes
    ]
    assert {connection.tuple.source_port for connection in read} == {5000}
    assert {connection.inode for connection in read} == {424242}
    cookie, segments, present = 0x1122334455667788, {}, []
    assert inet_diag._read(piece, {cookie}, frozenset(), segments, present) == []
    assert (segments, present) == ({}, [])
    # One that is known is told again where there are more segments, or where messages are not alike.
    first = len(inet_diag._read(piece, frozenset(), {cookie}, segments, present))
    again = len(inet_diag._read(piece, frozenset(), {cookie}, segments, []))
    assert (first, again) == ((1, 0) if set(sizes) == {248} else (len(sizes), len(sizes)))
    assert present == [cookie] * len(sizes)


def test_of_the_known_only_those_that_carried_something_are_told(diag):
    with (
        socket.create_server((V4, 0)) as server,
        socket.create_connection(server.getsockname()) as still,
        socket.create_connection(server.getsockname()) as moves,
    ):
        ports = {one.tuple.source_port: one.cookie for one in listed(diag)}
        known = {ports[still.getsockname()[1]], ports[moves.getsockname()[1]]}

        def told():
            found, present = diag.connections(frozenset(), known)
            return {one.cookie for one in found} & known, set(present)

        assert told() == (known, known)
        assert told() == (set(), known)
        moves.sendall(b"x")
        assert told() == ({ports[moves.getsockname()[1]]}, known)
        port = still.getsockname()[1]
        still.close()
        while ports[port] in told()[1]:  # its FIN is still under way
            time.sleep(0.01)
        assert told()[1] == known - {ports[port]}


def test_the_destroyed_are_told_with_their_last_figures(two_hosts):
    def body():
        destroyed = Destroyed()
        with socket.create_server((V6, 0), family=socket.AF_INET6) as server:
            client = socket.create_connection(server.getsockname()[:2])
            accepted, _ = server.accept()
            client.sendall(bytes(777))
            accepted.recv(777, socket.MSG_WAITALL)
            port = client.getsockname()[1]
            client.close()
            accepted.close()
        told = []
        deadline = time.monotonic() + 5
        while port not in {connection.tuple.source_port for connection in told}:
            assert time.monotonic() < deadline
            told += destroyed.drain(1)
        assert destroyed.drain(0) == []
        destroyed.close()
        return next(connection for connection in told if connection.tuple.source_port == port)

    last = two_hosts.inside(two_hosts.a, body)
    assert (last.bytes_sent, last.inode, last.tuple.destination) == (777, 0, packed(V6))


def test_more_destroyed_than_are_kept_is_noticed(two_hosts, monkeypatch):
    monkeypatch.setattr(inet_diag, "_DESTROY_BUFFER", 1024)

    def body():
        destroyed = Destroyed()
        with socket.create_server((V4, 0)) as server:
            for _ in range(50):
                client = socket.create_connection(server.getsockname())
                accepted, _ = server.accept()
                client.close()
                accepted.close()
        deadline = time.monotonic() + 5
        while not destroyed.overflows:
            assert time.monotonic() < deadline
            destroyed.drain(1000)
        destroyed.close()

    two_hosts.inside(two_hosts.a, body)


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, V4), (socket.AF_INET6, V6)])
def test_known_connections_are_looked_up_each_by_itself(diag, family, address):
    with (
        socket.create_server((address, 0), family=family) as server,
        socket.create_connection(server.getsockname()[:2]) as client,
    ):
        accepted, _ = server.accept()
        with accepted:
            ports = {connection.tuple.source_port: connection for connection in listed(diag)}
            ours = ports[client.getsockname()[1]]
            client.sendall(bytes(321))
            accepted.recv(321, socket.MSG_WAITALL)
            (found,) = diag.lookup({ours.cookie: ours.tuple})
            assert (found.tuple, found.cookie, found.inode) == (ours.tuple, ours.cookie, ours.inode)
            assert found.bytes_sent == 321
            # The same 5-tuple's next use would have another cookie.
            assert diag.lookup({ours.cookie + 10**9: ours.tuple, ours.cookie: ours.tuple}) == [found]
    assert diag.lookup({ours.cookie: ours.tuple}) == []
    assert diag.lookup({}) == []


def test_ipv4_through_an_ipv6_socket_is_looked_up(diag):
    with (
        socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server,
        socket.create_connection((V4, server.getsockname()[1])) as client,
    ):
        accepted, _ = server.accept()
        with accepted:
            key = FiveTuple(packed(V4), packed(V4), TCP, server.getsockname()[1], client.getsockname()[1])
            cookie = next(one.cookie for one in listed(diag) if one.tuple == key)
            assert [one.cookie for one in diag.lookup({cookie: key})] == [cookie]

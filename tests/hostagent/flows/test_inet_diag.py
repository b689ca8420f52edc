import os
import socket
import struct

import pytest

from hostagent.flows.connection import TCP, FiveTuple
from hostagent.flows.inet_diag import InetDiag, parse_message

V4, MAPPED, V6 = "127.0.0.1", "::ffff:127.0.0.1", "::1"


@pytest.fixture
def diag():
    with InetDiag() as diag:
        yield diag


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
            found = {connection.tuple: connection for connection in diag.connections()}
            there = found[FiveTuple(packed(address), packed(address), TCP, port, peer)]
            back = found[FiveTuple(packed(address), packed(address), TCP, peer, port)]
            assert (there.bytes_sent, back.bytes_sent) == (12_345, 0)
            assert there.inode == os.fstat(client.fileno()).st_ino
            assert back.inode == os.fstat(accepted.fileno()).st_ino
            assert there.cookie != back.cookie
            again = {connection.tuple: connection for connection in diag.connections()}
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
                connection.inode for connection in diag.connections() if connection.tuple == back
            }


def test_listening_and_closed_sockets_are_no_flows(diag):
    with socket.create_server((V4, 0)) as server:
        port = server.getsockname()[1]
        assert port not in {connection.tuple.source_port for connection in diag.connections()}
        client = socket.create_connection((V4, port))
        accepted, _ = server.accept()
        own = client.getsockname()[1]
        assert own in {connection.tuple.source_port for connection in diag.connections()}
        accepted.close()
        client.close()
        assert own not in {connection.tuple.source_port for connection in diag.connections()}


def test_many_connections_take_several_reads(diag):
    with socket.create_server((V4, 0), backlog=1500) as server:
        clients = [socket.create_connection(server.getsockname()) for _ in range(700)]
        ports = {client.getsockname()[1] for client in clients}
        # 700 in each direction at more than 400 bytes each is more than one read holds.
        assert ports <= {connection.tuple.source_port for connection in diag.connections()}
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
        (bytes(120) + struct.pack("=Q", 555), 555),  # one before 4.19 has bytes_acked only
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


def test_unknown_protocol_family_is_an_error_not_a_hang(diag):
    with pytest.raises(OSError, match="inet_diag"):
        list(diag._dump(socket.AF_APPLETALK))
    assert isinstance(diag.connections(), list)

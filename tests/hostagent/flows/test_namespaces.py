import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from hostagent.flows import namespaces as module
from hostagent.flows.connection import TCP, FiveTuple
from hostagent.flows.namespaces import Namespaces, inside

SLEEPER = "import time; time.sleep(300)"
TALKER = """
import socket, time
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
accepted, _ = server.accept()
client.sendall(bytes(54_321))
print(client.getsockname()[1], server.getsockname()[1], flush=True)
time.sleep(300)
"""


@pytest.fixture
def namespaces():
    namespaces = Namespaces("/proc")
    yield namespaces
    namespaces.close()


@pytest.fixture
def container(two_hosts):
    """A process in another network namespace with a connection of its own: pid and that connection."""
    process = subprocess.Popen(
        ["ip", "netns", "exec", two_hosts.a, sys.executable, "-c", TALKER], stdout=subprocess.PIPE
    )
    own, peer = map(int, process.stdout.readline().split())
    loopback = socket.inet_aton("127.0.0.1")
    yield process.pid, FiveTuple(loopback, loopback, TCP, own, peer)
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_containers_connections_are_seen(namespaces, container, two_hosts):
    pid, key = container
    assert key not in {connection.tuple for connection in namespaces.connections().connections}
    assert namespaces.follow({pid: 0})
    assert not namespaces.follow({pid: 0})
    found = {connection.tuple: connection for connection in namespaces.connections().connections}
    assert found[key].bytes_sent == 54_321
    assert found[key].cookie not in {
        c.cookie for c in namespaces.connections({found[key].cookie}).connections
    }
    assert os.readlink("/proc/thread-self/ns/net") == os.readlink("/proc/self/ns/net")  # still at home


def test_a_namespace_without_processes_is_let_go(namespaces, container):
    before = len(os.listdir("/proc/self/fd"))
    namespaces.follow({container[0]: 0})
    assert namespaces.follow({})
    assert namespaces.foreign_addresses == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_only_addresses_that_lead_to_the_agents_own_namespace_are_told(container, two_hosts, monkeypatch):
    for command in (
        f"-n {two_hosts.a} link set lo up",
        f"-n {two_hosts.a} addr add 10.201.0.3/32 dev lo",
        f"-n {two_hosts.a} link add own0 type veth peer name own1",
        f"-n {two_hosts.a} addr add 10.201.0.2/24 dev own0",  # the other host's
        f"-n {two_hosts.a} link set own0 up",
    ):
        subprocess.run(["ip", *command.split()], check=True)
    wanted = [socket.inet_pton(socket.AF_INET, two_hosts.a_addresses[0])]
    wanted.append(socket.inet_pton(socket.AF_INET6, two_hosts.a_addresses[1]))

    def told(home):
        namespaces = two_hosts.inside(home, lambda: Namespaces("/proc"))
        namespaces.follow({container[0]: 0})
        addresses = namespaces.foreign_addresses
        namespaces.close()
        return addresses

    assert told(two_hosts.b) == wanted  # data0's other end is there
    monkeypatch.setattr(module, "MAX_ADDRESSES", 1)
    assert told(two_hosts.b) == wanted[:1]
    name = two_hosts.a.replace("-a", "-d")
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        assert told(name) == []
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def test_a_tenants_interfaces_may_have_names_that_are_no_text(container, two_hosts):
    for command in (
        b"link set data0 down",
        b"link set data0 name \xff\xfe",
        b"link set \xff\xfe up",
        b"link add \xfd type veth peer name own1",
    ):
        subprocess.run([b"ip", b"-n", two_hosts.a.encode(), *command.split()], check=True)

    def told():
        namespaces = Namespaces("/proc")
        namespaces.follow({container[0]: 0})
        addresses = namespaces.foreign_addresses
        namespaces.close()
        return addresses

    # The IPv6 address went as the interface was down.
    assert two_hosts.inside(two_hosts.b, told) == [socket.inet_aton(two_hosts.a_addresses[0])]


def test_ones_own_namespace_and_the_gone_are_no_others(namespaces):
    assert not namespaces.follow({os.getpid(): 0, 2**22 - 1: 0})


def test_connections_that_came_and_went_are_told(namespaces, two_hosts, eventually):
    process = subprocess.Popen(["ip", "netns", "exec", two_hosts.a, sys.executable, "-c", SLEEPER])
    try:
        eventually(lambda: namespaces.follow({process.pid: 0}))
        ports = []

        def come_and_go():
            with socket.create_server(("127.0.0.1", 0)) as server:
                for _ in range(3):
                    client = socket.create_connection(server.getsockname())
                    accepted, _ = server.accept()
                    client.sendall(bytes(1000))
                    accepted.recv(1000, socket.MSG_WAITALL)
                    ports.append(client.getsockname()[1])
                    client.close()
                    accepted.close()

        two_hosts.inside(two_hosts.a, come_and_go)
        told = {}
        deadline = time.monotonic() + 5
        while not set(ports) <= told.keys():
            assert time.monotonic() < deadline
            told |= {connection.tuple.source_port: connection for connection in namespaces.destroyed()}
        assert [told[port].bytes_sent for port in ports] == [1000, 1000, 1000]
        assert all(told[port].tuple.destination == socket.inet_aton("127.0.0.1") for port in ports)
    finally:
        process.kill()
        process.wait()


def test_change_in_any_namespace_is_seen(namespaces, container, two_hosts):
    namespaces.follow({container[0]: 0})
    namespaces.changed()

    def refused():
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", 1))

    two_hosts.inside(two_hosts.a, refused)
    assert namespaces.changed()


def test_inside_raises_what_happens_there(two_hosts):
    descriptor = os.open(f"/run/netns/{two_hosts.a}", os.O_RDONLY)
    try:
        assert "data0" in inside(descriptor, lambda: [name for _, name in socket.if_nameindex()])
        with pytest.raises(ZeroDivisionError):
            inside(descriptor, lambda: 1 // 0)
    finally:
        os.close(descriptor)
    with open("/dev/null", "rb") as none, pytest.raises(OSError, match="Invalid argument"):
        inside(none.fileno(), threading.get_ident)


def test_no_proc(tmp_path):
    with pytest.raises(OSError, match="net/snmp"):
        Namespaces(str(tmp_path))


def test_one_users_namespaces_are_bounded_and_leave_others_theirs(
    namespaces, monkeypatch, eventually, capsys
):
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    monkeypatch.setattr(module, "MAX_OF_A_USER", 2)
    crowd = [subprocess.Popen(["unshare", "--net", "sleep", "60"]) for _ in range(4)]
    try:
        own = os.stat("/proc/self/ns/net").st_ino
        eventually(lambda: all(os.stat(f"/proc/{one.pid}/ns/net").st_ino != own for one in crowd))
        users = {one.pid: 1000 for one in crowd[:3]}
        assert namespaces.follow(users)
        assert set(namespaces._others) == {os.stat(f"/proc/{one.pid}/ns/net").st_ino for one in crowd[:2]}
        namespaces.follow(users)
        assert capsys.readouterr().out.count("more network namespaces") == 1
        other = os.stat(f"/proc/{crowd[3].pid}/ns/net").st_ino
        namespaces.follow({**users, crowd[3].pid: 1001})
        assert len(namespaces._others) == 3
        assert other in namespaces._others
        del users[crowd[0].pid]  # there is room again
        namespaces.follow(users)
        assert set(namespaces._others) == {os.stat(f"/proc/{one.pid}/ns/net").st_ino for one in crowd[1:3]}
    finally:
        for one in crowd:
            one.kill()
            one.wait()

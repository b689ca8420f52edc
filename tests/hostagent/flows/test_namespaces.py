import os
import socket
import subprocess
import sys
import threading
import time

import pytest

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
    assert key not in {connection.tuple for connection in namespaces.connections()}
    assert namespaces.follow([pid])
    assert not namespaces.follow([pid])
    found = {connection.tuple: connection for connection in namespaces.connections()}
    assert found[key].bytes_sent == 54_321
    assert found[key].cookie not in {c.cookie for c in namespaces.connections({found[key].cookie})}
    wanted = {socket.inet_pton(socket.AF_INET, two_hosts.a_addresses[0])}
    wanted.add(socket.inet_pton(socket.AF_INET6, two_hosts.a_addresses[1]))
    assert namespaces.foreign_addresses == wanted
    assert os.readlink("/proc/thread-self/ns/net") == os.readlink("/proc/self/ns/net")  # still at home


def test_a_namespace_without_processes_is_let_go(namespaces, container):
    before = len(os.listdir("/proc/self/fd"))
    namespaces.follow([container[0]])
    assert namespaces.follow([])
    assert namespaces.foreign_addresses == frozenset()
    assert len(os.listdir("/proc/self/fd")) == before


def test_ones_own_namespace_and_the_gone_are_no_others(namespaces):
    assert not namespaces.follow([os.getpid(), 2**22 - 1])


def test_connections_that_came_and_went_are_told(namespaces, two_hosts, eventually):
    process = subprocess.Popen(["ip", "netns", "exec", two_hosts.a, sys.executable, "-c", SLEEPER])
    try:
        eventually(lambda: namespaces.follow([process.pid]))
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
    namespaces.follow([container[0]])
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

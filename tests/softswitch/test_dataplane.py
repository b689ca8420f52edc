"""The packet path: batches, injected packets, faults, links, and what has nowhere to go."""

import socket
import threading
import time

import pytest

from softswitch.dataplane import Dataplane
from softswitch.pipeline import Pipeline
from softswitch.ports import Port
from softswitch.queues import Backlog, PortQueues, install

CPU = 510


def frame(number, length=60):
    return b"\x02" * 12 + b"\x12\x34" + number.to_bytes(2, "big") + bytes(length - 16)


def wait_for(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


@pytest.fixture
def plane(veth, namespace):
    """Two ports under a running packet path, and sockets at their far ends."""
    backlog = Backlog()
    ports, hosts = [], []
    for number in (1, 2):
        veth(f"s{number}", f"h{number}")
        ports.append(Port(number, f"s{number}", 8, 64, backlog))
        install(namespace, PortQueues(f"s{number}", 8, 8000 if number == 2 else None, 64))
        host = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        host.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
        host.bind((f"h{number}", 0))
        host.settimeout(2)
        hosts.append(host)
    dataplane = Dataplane(ports, queues=8, cpu_port=CPU)
    thread = threading.Thread(target=dataplane.run)
    thread.start()
    yield dataplane, hosts
    dataplane.stop()
    thread.join()
    for item in (*hosts, *ports, backlog):
        item.close()


def load(dataplane, process):
    """Run ``process(pipeline, packet, port)`` as the program."""
    pipeline = Pipeline(8)
    pipeline.process = lambda packet, port, now_us: process(pipeline, packet, port)
    dataplane.load(pipeline)


def test_nothing_is_forwarded_without_a_program(plane):
    dataplane, hosts = plane
    hosts[0].send(frame(1))
    hosts[1].settimeout(0.3)
    with pytest.raises(TimeoutError):
        hosts[1].recv(2000)
    load(dataplane, lambda pipeline, packet, port: pipeline.transmit(1, 7, packet))
    hosts[0].send(frame(2))
    assert hosts[0].recv(2000) == frame(2)


def test_packets_keep_their_order(plane):
    dataplane, hosts = plane
    load(dataplane, lambda pipeline, packet, port: pipeline.transmit(1, 0, packet))
    for number in range(500):
        hosts[0].send(frame(number))
    assert [hosts[0].recv(2000)[14:16] for _ in range(500)] == [frame(n)[14:16] for n in range(500)]


def test_injected_packets_come_in_on_the_cpu_port_in_order(plane):
    dataplane, _ = plane
    seen = []
    load(dataplane, lambda pipeline, packet, port: pipeline.transmit(CPU, 0, bytearray(packet)))
    dataplane.on_packet_in = seen.append
    for number in range(100):
        dataplane.inject(frame(number))
    assert wait_for(lambda: len(seen) == 100)
    assert seen == [frame(number) for number in range(100)]
    assert type(seen[0]) is bytes


def test_a_fault_of_the_program_costs_one_packet(plane):
    dataplane, hosts = plane

    def process(pipeline, packet, port):
        if packet[15] == 1:
            raise ValueError("this packet is too much for me")
        pipeline.transmit(1, 0, packet)

    load(dataplane, process)
    hosts[0].send(frame(1))
    hosts[0].send(frame(2))
    assert hosts[0].recv(2000) == frame(2)
    assert dataplane.faults == 1


def test_packets_for_ports_or_queues_that_are_not_there_are_counted(plane):
    dataplane, hosts = plane
    load(
        dataplane,
        lambda pipeline, packet, port: [pipeline.transmit(9, 0, packet), pipeline.transmit(1, 8, packet)],
    )
    hosts[0].send(frame(1))
    assert wait_for(lambda: dataplane.unroutable == 2)


def test_the_queue_depth_is_that_of_the_kernels_queue(plane):
    dataplane, hosts = plane
    depths = []

    def process(pipeline, packet, port):
        depths.append(pipeline.queue_depth(2, 4))
        for _ in range(40):
            pipeline.transmit(2, 4, frame(0, 1400))

    load(dataplane, process)
    hosts[0].send(frame(1))
    assert wait_for(lambda: depths)
    time.sleep(0.1)
    hosts[0].send(frame(2))
    assert wait_for(lambda: len(depths) == 2)
    assert depths[0] == 0
    assert 30 <= depths[1] <= 40  # HTB lets one burst through at once
    assert dataplane.queue_depth(2, 5) == 0
    assert dataplane.queue_depth(77, 0) == 0


def test_links_that_go_down_are_told(plane, namespace):
    dataplane, _ = plane
    assert dataplane.ports_down() == frozenset()
    namespace.link("set", index=namespace.link_lookup(ifname="h2")[0], state="down")
    assert wait_for(lambda: dataplane.ports_down() == {2})
    namespace.link("set", index=namespace.link_lookup(ifname="h2")[0], state="up")
    assert wait_for(lambda: dataplane.ports_down() == frozenset())


def test_a_port_that_is_down_costs_no_time_and_comes_back(plane, namespace):
    dataplane, _ = plane
    load(dataplane, lambda pipeline, packet, port: pipeline.transmit(1, 0, packet))
    near = namespace.link_lookup(ifname="s1")[0]
    namespace.link("set", index=near, state="down")
    used = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - used < 0.2  # not a loop of wake-ups
    namespace.link("set", index=near, state="up")
    assert wait_for(lambda: dataplane.ports_down() == frozenset())
    far = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    far.bind(("h1", 0))
    far.settimeout(2)
    far.send(frame(1))
    assert far.recv(2000) == frame(1)
    far.close()

"""The plugin, loaded into a stand-in for NCCL."""

import os
import socket
import subprocess
import threading
import time

import pytest

from hostagent.flows.connection import TCP, FiveTuple
from hostagent.nccl.messages import LONGEST, Collectives, Communicator, Connection, End, parse

COMM = 0xFEEDFACECAFEBEEF


def told(receiver):
    """Everything that has been sent."""
    receiver.setblocking(False)
    messages = []
    while True:
        try:
            messages.append(parse(receiver.recv(LONGEST)))
        except BlockingIOError:
            return messages


def of(kind, messages):
    return [message for message in messages if isinstance(message, kind)]


def test_both_versions_are_there_and_ask_for_little(nccl, agent_socket):
    nccl.init()
    assert nccl.plugin.name == b"leveller"
    # Collectives, sends and receives, and what network events hang on; no kernels, groups or proxy control.
    assert nccl.mask.value == 2 + 4 + 8 + 16 + 128


def test_a_communicator(nccl, agent_socket):
    before = time.monotonic_ns()
    nccl.init()
    (message,) = told(agent_socket)
    assert message == Communicator(message.header, "world", 16, 2)
    assert (message.header.communicator, message.header.rank, message.header.dropped) == (COMM, 3, 0)
    assert before <= message.header.now_ns <= time.monotonic_ns()


def test_a_communicator_without_a_name(nccl, agent_socket):
    nccl.init(name=None, comm=1, nodes=1, ranks=1, rank=0)
    (message,) = told(agent_socket)
    assert (message.name, message.ranks, message.nodes) == ("", 1, 1)


def test_starts_of_collectives(nccl, agent_socket):
    nccl.init()
    assert nccl.collective(7, 1000, b"AllReduce", b"ncclBfloat16") is None
    (message,) = of(Collectives, told(agent_socket))
    assert (message.sequence, message.started, message.bytes) == (7, 1, 2000)
    assert message.function == "AllReduce"
    assert message.header.now_ns == message.first_ns
    # The next ones within 50 ms are counted, and told of by the first after that.
    begun = time.monotonic_ns()
    for sequence in range(8, 12):
        nccl.collective(sequence, 10, b"ReduceScatter", b"ncclInt8")
    assert told(agent_socket) == []
    time.sleep(0.06)
    p2p = {"func": b"Send", "datatype": b"ncclFloat64", "count": 5, "peer": 4}
    nccl.start(4, p2p=p2p)
    (message,) = told(agent_socket)
    assert (message.started, message.bytes, message.function) == (5, 80, "Send")
    assert begun <= message.first_ns < begun + 50_000_000


@pytest.mark.parametrize(
    ("datatype", "size"), [(b"ncclFloat8e4m3", 1), (b"ncclUint32", 4), (b"ncclFloat16", 2), (None, 1)]
)
def test_sizes_of_datatypes(nccl, agent_socket, datatype, size):
    nccl.init()
    nccl.collective(1, 100, datatype=datatype)
    assert of(Collectives, told(agent_socket))[0].bytes == 100 * size


def test_a_queue_pair_per_connection_told_once(nccl, agent_socket):
    nccl.init()
    step = nccl.step(peer=11, send=1)
    for _ in range(100):
        nccl.use_queue_pair(0x1234, 2, step)
    nccl.use_queue_pair(0x1235, 2, nccl.step(peer=9, send=0))
    connections = of(Connection, told(agent_socket))
    assert [connection[1:] for connection in connections] == [
        (11, True, 0x1234, 2, None),
        (9, False, 0x1235, 2, None),
    ]


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_socket_per_connection(nccl, agent_socket, family, address):
    nccl.init()
    with (
        socket.create_server((address, 0), family=family) as server,
        socket.create_connection(server.getsockname()[:2]) as client,
    ):
        nccl.use_socket(client.fileno())
        nccl.use_socket(client.fileno())
        packed = socket.inet_pton(family, address)
        key = FiveTuple(packed, packed, TCP, client.getsockname()[1], server.getsockname()[1])
    (connection,) = of(Connection, told(agent_socket))
    assert connection[1:] == (11, True, 0, 0, key)


def test_what_is_no_network_connection_tells_nothing(nccl, agent_socket):
    nccl.init()
    told(agent_socket)
    nccl.use_socket(agent_socket.fileno())  # a Unix socket
    nccl.use_socket(10_000)  # no socket at all
    nccl.use_queue_pair(5, id_=(1 << 16) | 2)  # another version of the event
    nccl.use_queue_pair(5, id_=(7 << 16) | 1)  # another network plugin
    nccl.start(128, nccl.step(), netPlugin={"id": (1 << 16) | 1, "data": None})
    for other in (1, 32, 64, 256 if nccl.version == 5 else 1):
        assert nccl.start(other) is None
    assert told(agent_socket) == []


def test_work_of_another_process_is_left_alone(nccl, agent_socket):
    """The proxy may work for another process: the context that comes with it is none of ours."""
    nccl.init()
    told(agent_socket)
    theirs = nccl.step(pid=os.getppid())
    assert theirs is None
    ours = nccl.context
    nccl.context = type(ours)(0xDEAD_BEEF_0000)  # would crash if it were touched
    assert nccl.step(pid=os.getppid()) is None
    nccl.use_queue_pair(77, parent=None)
    nccl.context = ours
    assert told(agent_socket) == []


def test_an_agent_that_is_away_is_not_waited_for(nccl, agent_socket, tmp_path):
    nccl.init()
    (before,) = told(agent_socket)
    agent_socket.close()
    (tmp_path / "nccl.sock").unlink()
    for number in range(1, 101):
        nccl.use_queue_pair(number)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as again:
        again.bind(str(tmp_path / "nccl.sock"))
        nccl.use_queue_pair(1)
        assert told(again) == []  # it is looked for once a second
        time.sleep(1.05)
        nccl.use_queue_pair(1)
        nccl.finalize()
        connection, end = told(again)
    assert (connection.queue_pair, type(end)) == (1, End)
    assert end.header.dropped - before.header.dropped == 101


def test_an_agent_that_does_not_read_is_not_waited_for(nccl, agent_socket):
    nccl.init()
    for number in range(1, 501):
        nccl.use_queue_pair(number)
    received = told(agent_socket)
    taken = len(received)
    assert 1 < taken < 501
    # What was dropped is told at its next use.
    for number in range(1, 501):
        nccl.use_queue_pair(number)
        received += told(agent_socket)
    numbers = [connection.queue_pair for connection in of(Connection, received)]
    assert sorted(numbers) == list(range(1, 501))
    nccl.finalize()
    (end,) = told(agent_socket)
    assert end.header.dropped - received[0].header.dropped == 501 - taken


def test_everything_is_told_again_after_a_while(nccl, agent_socket):
    nccl.init()
    nccl.use_queue_pair(9)
    assert len(told(agent_socket)) == 2
    time.sleep(5.05)
    nccl.collective(1)
    nccl.use_queue_pair(9)
    kinds = [type(message) for message in told(agent_socket)]
    assert kinds == [Communicator, Collectives, Connection]


def test_threads_tell_each_connection_once(nccl, agent_socket):
    nccl.init()
    received = []

    def read():
        agent_socket.settimeout(0.5)
        while True:
            try:
                received.append(parse(agent_socket.recv(LONGEST)))
            except TimeoutError:
                return

    def use():
        for number in range(1, 65):
            nccl.use_queue_pair(number)
            time.sleep(0.001)

    threads = [threading.Thread(target=use) for _ in range(4)]
    reader = threading.Thread(target=read)
    for thread in (reader, *threads):
        thread.start()
    for thread in (*threads, reader):
        thread.join()
    numbers = [connection.queue_pair for connection in of(Connection, received)]
    assert len(numbers) <= 64 + 8  # what could not be sent at once may be told by two threads
    assert set(numbers) == set(range(1, 65))


def test_only_what_nccl_looks_for_is_visible(library):
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", str(library)], check=True, capture_output=True, text=True
    ).stdout.split()[2::3]
    assert sorted(symbols) == ["ncclProfiler_v4", "ncclProfiler_v5"]

"""A job that loads the plugin, the agent's observer, and what a controller would be told."""

import socket
import subprocess
import sys
import time
from pathlib import Path

from leveller_proto import agent_pb2 as pb

from hostagent.config import AgentSection
from hostagent.interface import find
from hostagent.nccl.receiver import Receiver
from hostagent.observer import Observer
from hostagent.state import HostState

ROOT = Path(__file__).parents[3]
PORT = 29_621

JOB = """
import pathlib, socket, sys, time
sys.path.insert(0, %r)
from tests.hostagent.nccl.conftest import FakeNccl
connection = socket.create_connection((%r, %d))
connection.sendall(bytes(100))  # far too little to be known as a collective by its volume
nccl = FakeNccl(pathlib.Path(%r), 5)
nccl.init(name=b"data parallel")
while True:
    nccl.collective(1)
    nccl.use_socket(connection.fileno())
    time.sleep(0.1)
"""

PEER = """
import socket
connection, _ = socket.create_server((%r, %d)).accept()
while connection.recv(1 << 20):
    pass
"""


def test_a_flow_is_known_by_its_communicator(two_hosts, trainers, library, tmp_path):
    address, path = two_hosts.b_addresses[0], tmp_path / "nccl.sock"
    program = PEER % (address, PORT)
    peer = subprocess.Popen(["ip", "netns", "exec", two_hosts.b, sys.executable, "-c", program])

    def inside():
        state = HostState(lambda: None)
        settings = AgentSection(host="h1", controllers=("127.0.0.1:9",), interface="data0")
        observer = Observer(settings, find("data0", ()), state)
        receiver = Receiver(path, "/proc")
        try:
            deadline = time.monotonic() + 30
            while True:
                assert time.monotonic() < deadline
                time.sleep(0.02)
                observer.look(time.monotonic_ns())
                observer.listen(receiver)
                report = state.report(None, 0, 0)
                if any(flow.communicator for flow in report.flows) and report.jobs[0].communicators:
                    return report, dict(receiver.refused)
        finally:
            receiver.close()
            observer.close()

    try:
        time.sleep(0.5)
        trainers.start(
            program=JOB % (str(ROOT), address, PORT, str(library)),
            namespace=two_hosts.a,
            LEVELLER_NCCL_SOCKET=str(path),
            PYTHONPATH=":".join(sys.path),
        )
        report, refused = two_hosts.inside(two_hosts.a, inside)
    finally:
        peer.kill()
        peer.wait()
    (flow,) = report.flows
    assert flow.tuple.destination == socket.inet_aton(address)
    assert (flow.job, flow.kind) == (trainers.job, pb.FLOW_KIND_COLLECTIVE)
    assert flow.communicator == 0xFEEDFACECAFEBEEF
    (communicator,) = report.jobs[0].communicators
    assert (communicator.id, communicator.name) == (flow.communicator, "data parallel")
    assert (communicator.ranks, communicator.nodes, list(communicator.local_ranks)) == (16, 2, [3])
    assert communicator.collectives >= 1
    assert set(refused) <= {"not a training process"}  # what it told before it was found

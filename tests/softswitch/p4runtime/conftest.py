"""A P4Runtime server on an ephemeral port of loopback, over a real packet path without interfaces."""

import threading

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from softswitch.dataplane import Dataplane
from softswitch.p4runtime import server
from softswitch.p4runtime.device import Device
from softswitch.p4runtime.notifications import Notifier
from softswitch.p4runtime.program import realize
from tests.softswitch.p4runtime.helpers import CPU_PORT, DEVICE_ID, Client, Names, Stream, load


@pytest.fixture
def service():
    """A server without a program, its packet path running; yields (address, dataplane, device)."""
    dataplane = Dataplane([], queues=8, cpu_port=CPU_PORT)
    device = Device(DEVICE_ID, dataplane)
    dataplane.on_packet_in = device.packet_in
    packet_path = threading.Thread(target=dataplane.run)
    packet_path.start()
    notifier = Notifier(device, dataplane)
    notifier.start()
    grpc_server, port = server.start(device, "127.0.0.1:0")
    yield f"127.0.0.1:{port}", dataplane, device
    grpc_server.stop(0).wait()
    notifier.stop()
    dataplane.stop()
    packet_path.join()


@pytest.fixture
def stub(service):
    with grpc.insecure_channel(service[0]) as channel:
        yield p4r_grpc.P4RuntimeStub(channel)


@pytest.fixture
def stream(stub):
    """The primary's stream, arbitrated with election id 1."""
    opened = Stream(stub)
    opened.arbitrate(1)
    assert opened.next("arbitration").status.code == 0
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def features():
    return load("features")


@pytest.fixture(scope="session")
def names(features):
    return Names(features.p4info)


@pytest.fixture
def client(stub, stream, features):
    """The primary, after it has pushed features.p4."""
    primary = Client(stub)
    primary.push(p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT, features)
    return primary


@pytest.fixture
def program(features):
    """features.p4 as reads and writes see it, without a server around it."""
    return realize(features, queues=8)

"""The NCCL plugin, compiled, and a stand-in for NCCL that calls it as NCCL does.

There is no GPU here. The structures are written down once more, from NCCL's interface, not from the plugin.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

import hostagent.nccl

SOURCE = Path(hostagent.nccl.__file__).with_name("plugin.c")
COLL, P2P, PROXY_OP, PROXY_STEP, PROXY_CTRL, KERNEL, NET, GROUP_API = 2, 4, 8, 16, 32, 64, 128, 256
IB, SOCKET = (1 << 16) | 1, (2 << 16) | 1

Pointer, Text = ctypes.c_void_p, ctypes.c_char_p


def structure(*fields):
    return type("Structure", (ctypes.Structure,), {"_fields_": list(fields)})


Coll = structure(
    ("seqNumber", ctypes.c_uint64),
    ("func", Text),
    ("sendBuff", Pointer),
    ("recvBuff", Pointer),
    ("count", ctypes.c_size_t),
    ("root", ctypes.c_int),
    ("datatype", Text),
    ("nChannels", ctypes.c_uint8),
    ("nWarps", ctypes.c_uint8),
    ("algo", Text),
    ("proto", Text),
)
P2p = structure(
    ("func", Text),
    ("buff", Pointer),
    ("datatype", Text),
    ("count", ctypes.c_size_t),
    ("peer", ctypes.c_int),
    ("nChannels", ctypes.c_uint8),
)
ProxyOp = structure(
    ("pid", ctypes.c_int),
    ("channelId", ctypes.c_uint8),
    ("peer", ctypes.c_int),
    ("nSteps", ctypes.c_int),
    ("chunkSize", ctypes.c_int),
    ("isSend", ctypes.c_int),
)
ProxyStep = structure(("step", ctypes.c_int))
KernelCh = structure(("channelId", ctypes.c_uint8), ("pTimer", ctypes.c_uint64))
NetPlugin = structure(("id", ctypes.c_int64), ("data", Pointer))
Qp = structure(
    ("device", ctypes.c_int),
    ("wr_id", ctypes.c_uint64),
    ("opcode", ctypes.c_int),
    ("qpNum", ctypes.c_int),
    ("length", ctypes.c_size_t),
)
Sock = structure(("fd", ctypes.c_int), ("op", ctypes.c_int), ("length", ctypes.c_size_t))


class Either(ctypes.Union):
    _fields_ = (("qp", Qp), ("sock", Sock))


class NetEvent(ctypes.Structure):
    _anonymous_ = ("either",)
    _fields_ = (("type", ctypes.c_uint8), ("either", Either))


class Member(ctypes.Union):
    _fields_ = (
        ("coll", Coll),
        ("p2p", P2p),
        ("proxyOp", ProxyOp),
        ("proxyStep", ProxyStep),
        ("kernelCh", KernelCh),
        ("netPlugin", NetPlugin),
        ("largest", ctypes.c_uint8 * 104),
    )


def descriptor(type_):
    class Descriptor(ctypes.Structure):
        _anonymous_ = ("member",)
        _fields_ = (("type", type_), ("parentObj", Pointer), ("rank", ctypes.c_int), ("member", Member))

    return Descriptor


DESCRIPTORS = {4: descriptor(ctypes.c_uint8), 5: descriptor(ctypes.c_uint64)}

Handle, Mask = ctypes.POINTER(Pointer), ctypes.POINTER(ctypes.c_int)
INIT = {
    4: (Handle, Mask, Text, ctypes.c_uint64, ctypes.c_int, ctypes.c_int, ctypes.c_int, Pointer),
    5: (Handle, ctypes.c_uint64, Mask, Text, ctypes.c_int, ctypes.c_int, ctypes.c_int, Pointer),
}


class FakeNccl:
    """NCCL with one communicator: loads the plugin's newest version that it knows, as NCCL does."""

    def __init__(self, library: Path, version: int) -> None:
        self.descriptor = DESCRIPTORS[version]
        functions = (
            ("name", Text),
            ("init", ctypes.CFUNCTYPE(ctypes.c_int, *INIT[version])),
            ("start", ctypes.CFUNCTYPE(ctypes.c_int, Pointer, Handle, ctypes.POINTER(self.descriptor))),
            ("stop", ctypes.CFUNCTYPE(ctypes.c_int, Pointer)),
            ("record", ctypes.CFUNCTYPE(ctypes.c_int, Pointer, ctypes.c_int, Pointer)),
            ("finalize", ctypes.CFUNCTYPE(ctypes.c_int, Pointer)),
        )
        self.plugin = structure(*functions).in_dll(ctypes.CDLL(str(library)), f"ncclProfiler_v{version}")
        self.version = version
        self.context, self.mask = Pointer(), ctypes.c_int()

    def init(self, name=b"world", comm=0xFEEDFACECAFEBEEF, nodes=2, ranks=16, rank=3):
        context, mask = ctypes.byref(self.context), ctypes.byref(self.mask)
        if self.version == 4:
            given = (context, mask, name, comm, nodes, ranks, rank, None)
        else:
            given = (context, comm, mask, name, nodes, ranks, rank, None)
        assert self.plugin.init(*given) == 0

    def start(self, type_, parent=None, **members):
        """Start an event; return its handle."""
        event = self.descriptor()
        ctypes.memset(ctypes.byref(event), 0xEE, ctypes.sizeof(event))  # NCCL's padding is not clean either
        event.type, event.parentObj, event.rank = type_, parent, 3
        for name, values in members.items():
            for key, value in values.items():
                setattr(getattr(event, name), key, value)
        handle = Pointer()
        assert self.plugin.start(self.context, ctypes.byref(handle), ctypes.byref(event)) == 0
        return handle.value

    def collective(self, sequence, count=1024, func=b"AllReduce", datatype=b"ncclFloat32"):
        coll = {"seqNumber": sequence, "func": func, "count": count, "datatype": datatype}
        return self.start(COLL, coll=coll)

    def step(self, peer=11, send=1, pid=None):
        """Start a proxy operation and a step of it; return the step's handle."""
        op = {"pid": pid or os.getpid(), "channelId": 0, "peer": peer, "nSteps": 4, "isSend": send}
        return self.start(PROXY_STEP, self.start(PROXY_OP, proxyOp=op), proxyStep={"step": 0})

    def net(self, parent, event, id_):
        return self.start(NET, parent, netPlugin={"id": id_, "data": ctypes.addressof(event)})

    def use_queue_pair(self, number, device=2, parent=0, id_=IB):
        event = NetEvent(type=1)
        event.qp.device, event.qp.qpNum, event.qp.length = device, number, 4096
        return self.net(self.step() if parent == 0 else parent, event, id_)

    def use_socket(self, descriptor_, parent=0, id_=SOCKET):
        event = NetEvent(type=1)
        event.sock.fd, event.sock.length = descriptor_, 4096
        return self.net(self.step() if parent == 0 else parent, event, id_)

    def finalize(self):
        assert self.plugin.finalize(self.context) == 0


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The plugin, built as the Makefile builds it, every warning being an error."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    built = tmp_path_factory.mktemp("nccl") / "libnccl-profiler-leveller.so"
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-pthread"]
    subprocess.run([compiler, *flags, "-o", str(built), str(SOURCE)], check=True)
    return built


@pytest.fixture
def agent_socket(tmp_path, monkeypatch):
    """A socket in the agent's place, with the path that the plugin is given."""
    path = tmp_path / "nccl.sock"
    monkeypatch.setenv("LEVELLER_NCCL_SOCKET", str(path))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(path))
        receiver.settimeout(1.0)
        yield receiver


@pytest.fixture(params=[4, 5])
def nccl(request, library):
    return FakeNccl(library, request.param)

"""One switch in a network namespace of its own, with a raw socket at the far end of each of its ports."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_CLONE_NEWNET = 0x40000000
_SOL_PACKET, _PACKET_AUXDATA = 263, 8
_AUXDATA = struct.Struct("=IIIHHHH")
_OUTGOING, _VLAN_VALID, _ETH_P_ALL = 4, 0x10, 3
_numbers = itertools.count(1)
DEVICE_ID = 1
CPU_PORT = 510


class Namespace:
    """A network namespace with loopback up and IPv6 silent."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ip("netns", "add", name, inside=False)
        try:
            self.ip("link", "set", "lo", "up")
            self.run(
                "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"
            )
        except BaseException:
            self.close()
            raise

    def ip(self, *arguments: str, inside: bool = True) -> None:
        subprocess.run(["ip", *(["-n", self.name] if inside else []), *arguments], check=True)

    def run(self, *command: str) -> None:
        subprocess.run(["ip", "netns", "exec", self.name, *command], check=True)

    def call(self, function: Callable[[], T]) -> T:
        """Run ``function`` on a thread that lives in the namespace: the sockets it opens do too."""
        result: list[T] = []
        failure: list[BaseException] = []

        def enter() -> None:
            try:
                with open(f"/var/run/netns/{self.name}", encoding="ascii") as handle:
                    if ctypes.CDLL(None, use_errno=True).setns(handle.fileno(), _CLONE_NEWNET):
                        raise OSError(ctypes.get_errno(), "setns")
                result.append(function())
            except BaseException as error:  # noqa: BLE001 (raised again below)
                failure.append(error)

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        if failure:
            raise failure[0]
        return result[0]

    def close(self) -> None:
        self.ip("netns", "delete", self.name, inside=False)


class Wire:
    """The host's end of a veth pair: send and receive whole frames."""

    def __init__(self, interface: str) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
        self._socket.setsockopt(_SOL_PACKET, _PACKET_AUXDATA, 1)
        self._socket.bind((interface, 0))

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, frame: bytes) -> None:
        self._socket.send(frame)

    def receive(self, timeout_s: float) -> bytes | None:
        """Return the next frame that came from the switch; None when none does in time."""
        deadline = time.monotonic() + timeout_s
        while (left := deadline - time.monotonic()) > 0:
            self._socket.settimeout(left)
            try:
                frame, ancillary, _, address = self._socket.recvmsg(16384, 256)
            except TimeoutError:
                return None
            if address[2] == _OUTGOING:
                continue
            for _, kind, data in ancillary:  # the kernel takes the outer tag off; it belongs to the frame
                if kind == _PACKET_AUXDATA:
                    status, *_, tci, tpid = _AUXDATA.unpack(data)
                    if status & _VLAN_VALID:
                        frame = frame[:12] + struct.pack("!HH", tpid or 0x8100, tci) + frame[12:]
            return frame
        return None

    def drain(self) -> None:
        """Forget what is waiting."""
        self._socket.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            while self._socket.recv(1):
                pass

    def close(self) -> None:
        self._socket.close()


class Relay:
    """127.0.0.1:port here, 127.0.0.1:port in the namespace: gRPC's own threads cannot change namespace."""

    def __init__(self, namespace: Namespace, port: int) -> None:
        self._namespace = namespace
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._open = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    far = self._namespace.call(lambda: socket.create_connection(("127.0.0.1", self._target)))
                except OSError:
                    near.close()
                    continue
                self._open += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


class Lab:
    """``binary`` running ``config`` with ports 1 to ``ports``; ``wires[n]`` is plugged into port n."""

    def __init__(self, binary: Sequence[str], config: Path, ports: int = 4) -> None:
        self._closers = contextlib.ExitStack()
        try:
            namespace = Namespace(f"p4t{os.getpid()}-{next(_numbers)}")
            self._closers.callback(namespace.close)
            interfaces: list[str] = []
            for port in range(1, ports + 1):
                namespace.ip("link", "add", f"s{port}", "type", "veth", "peer", "name", f"h{port}")
                for name in (f"s{port}", f"h{port}"):
                    namespace.ip("link", "set", name, "mtu", "9500", "up")
                interfaces += ["-i", f"{port}@s{port}"]
            self.wires = {
                port: namespace.call(lambda port=port: Wire(f"h{port}")) for port in range(1, ports + 1)
            }
            for wire in self.wires.values():
                self._closers.callback(wire.close)
            port = 40051  # free: nobody else is in this namespace
            folder = self._closers.enter_context(tempfile.TemporaryDirectory())
            self.log = Path(folder, "switch.log")
            self._output = self._closers.enter_context(self.log.open("wb"))
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", namespace.name, *binary, *interfaces, "--device-id", str(DEVICE_ID),
                 str(config), "--", "--grpc-server-addr", f"127.0.0.1:{port}", "--cpu-port", str(CPU_PORT),
                 "--priority-queues", "8"],
                cwd=folder, stdout=self._output, stderr=subprocess.STDOUT,
            )  # fmt: skip
            self._closers.callback(self._stop)
            self._wait(namespace, port)
            relay = Relay(namespace, port)
            self._closers.callback(relay.close)
            self.address = relay.address
        except BaseException:
            self.close()
            raise

    def _wait(self, namespace: Namespace, port: int) -> None:
        deadline = time.monotonic() + 30
        while True:
            try:
                namespace.call(lambda: socket.create_connection(("127.0.0.1", port), 1)).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(f"the switch does not listen: {self.log.read_text()}") from None
                time.sleep(0.05)

    def _stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def close(self) -> None:
        self._closers.close()


def find_switch(kind: str) -> list[str] | None:
    """Return the command that starts ``kind``: bmv2 or softswitch; None when it is not installed here."""
    name = {"bmv2": "simple_switch_grpc", "softswitch": "softswitch"}[kind]
    beside = Path(sys.executable).parent / name
    found = shutil.which(name) or (str(beside) if beside.exists() else None)
    return [found] if found else None

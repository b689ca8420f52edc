"""Mininet nodes of the lab: tenant hosts, and P4 switches of either kind behind one interface.

Debian installs Mininet for the system's Python only; this module loads that one package from there and
nothing else of it. Importing it raises UserError where Mininet is missing.
"""

from __future__ import annotations

import functools
import importlib.util
import logging
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from leveller.errors import UserError
from topo import htb, namespace
from topo.fabric import Fabric, Host, Port, Switch
from topo.lossless import MTU, OFFLOADS, QUEUE_DEPTH, host_script

MININET = Path("/usr/lib/python3/dist-packages/mininet")
QUEUES = 8
"""Queues a port, of either switch."""

LEVEL_DSCP = (8, 10, 12, 14, 16, 18, 20, 22)
"""Queue -> DSCP, where queues are the kernel's and chosen by DSCP; none of them marks INT (0x17)."""

START_S = 20.0
"""How long a switch may take until it serves P4Runtime."""

OLDEST_BMV2 = (1, 15, 1)
"""The first release of bmv2 with ``--priority-queues``, and with queue numbers the right way round."""


def _load() -> None:
    if "mininet" in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(
        "mininet", MININET / "__init__.py", submodule_search_locations=[str(MININET)]
    )
    if not (MININET / "__init__.py").exists() or spec is None or spec.loader is None:
        raise UserError("Mininet is not installed", "run 'make setup', or apt-get install mininet")
    module = importlib.util.module_from_spec(spec)
    sys.modules["mininet"] = module
    spec.loader.exec_module(module)


_load()
# Mininet makes its own logger class everybody's; ours stay ours.
_logger_class = logging.getLoggerClass()

from mininet import link as mininet_link  # noqa: E402
from mininet import net as mininet_net  # noqa: E402
from mininet import node as mininet_node  # noqa: E402

logging.setLoggerClass(_logger_class)


class LabHost(mininet_node.Host):  # type: ignore[misc]
    """A tenant host under the lossless profile."""

    def config(self, host: Host, **_params: object) -> dict[str, Any]:
        """Set up the data interface; Mininet calls this when the network is built."""
        done = subprocess.run(
            ["mnexec", "-a", str(self.pid), "sh", "-c", host_script(host)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"host {self.name} could not be set up: {done.stderr.strip()}")
        return {}


class P4Switch(mininet_node.Switch):  # type: ignore[misc]
    """A switch process that serves P4Runtime on ``address`` and owns this node's interfaces."""

    program: ClassVar[str]
    """The executable's name."""

    rewrites_dscp: ClassVar[bool]
    """Whether queues are the kernel's, chosen by the DSCP that the program rewrites."""

    def __init__(self, name: str, switch: Switch, grpc_port: int, directory: Path, **params: object) -> None:
        """Make the node of ``switch``; its log goes into ``directory``."""
        super().__init__(name, dpid=f"{switch.number:x}", **params)
        self.switch = switch
        self.address = f"127.0.0.1:{grpc_port}"
        self.log_path = directory / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    @classmethod
    def executable(cls) -> str:
        """Return the program's path. Raises UserError where it is not installed."""
        beside = Path(sys.executable).parent / cls.program
        found = shutil.which(cls.program) or (str(beside) if beside.exists() else None)
        if found is None:
            raise UserError(f"{cls.program} is not on PATH", cls.mend())
        return found

    @classmethod
    def mend(cls) -> str:
        """Say how to get the program."""
        raise NotImplementedError

    def target_options(self) -> list[str]:
        """Return what the command line has after its common options."""
        raise NotImplementedError

    def attachment(self, port: int) -> str:
        """Return the interface that the process has for ``port``: the link's own end."""
        return self.switch.interface(port)

    def command(self) -> list[str]:
        """Return the command line: simple_switch_grpc's, which both programs speak."""
        ports = [f"{port}@{self.attachment(port)}" for port in self.switch.ports]
        interfaces = [word for port in ports for word in ("-i", port)]
        log = ["--log-level", "warn", "--log-console"]
        common = ["--device-id", str(self.switch.number), *log, "--no-p4", "--"]
        grpc = ["--grpc-server-addr", self.address, "--cpu-port", "510", "--priority-queues", str(QUEUES)]
        return [self.executable(), *interfaces, *common, *grpc, *self.target_options()]

    def start(self, controllers: object = ()) -> None:  # noqa: ARG002 (Mininet's signature)
        """Start the process; ``wait`` waits for it."""
        with self.log_path.open("ab") as log:
            self.process = self.popen(self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        namespace.real_time(self.process.pid)

    def wait(self) -> None:
        """Wait until it serves P4Runtime. Raises UserError with its last line when it ends or never does."""
        assert self.process is not None
        host, port = self.address.split(":")
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        last = (self.log_path.read_text(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        raise UserError(
            f"switch {self.name} did not start ({last})", f"run it by hand: {' '.join(self.command())}"
        )

    def kill(self) -> None:
        """End the process at once, as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803 (Mininet's signature)
        """End the process and, with it, whatever it set up."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None
        super().stop(deleteIntfs)


class SoftSwitch(P4Switch):
    """The project's own switch: makes its queues itself."""

    program = "softswitch"
    rewrites_dscp = False

    @classmethod
    def mend(cls) -> str:
        """Say how to get the program."""
        return "run 'make setup', or pip install this package"

    def target_options(self) -> list[str]:
        """Rates and depth of the queues."""
        rates = [
            w for port in self.switch.ports.values() for w in ("--port-rate", f"{port.number}@{port.rate}")
        ]
        return [*rates, "--queue-depth", str(QUEUE_DEPTH)]


class KernelQueueSwitch(P4Switch):
    """A switch without strict queues on a shared link of its own: the kernel's are put on its ports."""

    rewrites_dscp = True
    _queues_made = False

    def attachment(self, port: int) -> str:
        """Return the interface that the process has for ``port``: one hop before the link and its queues.

        Such a switch sends by one socket a port, which takes no more once what it sent fills its buffer.
        Were its packets still its own in the queues, then low ones would keep high ones from even getting
        there.
        """
        return f"{self.name}-p{port}"

    def start(self, controllers: object = ()) -> None:
        """Make the queues, the first time, then start the process."""
        if not self._queues_made:
            for port in self.switch.ports.values():
                self._make_queues(port)
            self._queues_made = True
        super().start(controllers)

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803 (Mininet's signature)
        """End the process and take its queues away."""
        super().stop(deleteIntfs)
        if self._queues_made:
            lines = [f"link del {self.attachment(port)}" for port in self.switch.ports]
            subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)
            self._queues_made = False

    def _make_queues(self, port: Port) -> None:
        link, mine = self.switch.interface(port.number), self.attachment(port.number)
        between = f"{self.name}-q{port.number}"
        script = [f"ip link add {mine} mtu {MTU} type veth peer name {between} mtu {MTU}"]
        script += [f"ethtool -K {end} {OFFLOADS} && ip link set {end} up" for end in (mine, between)]
        subprocess.run(["sh", "-ec", "\n".join(script)], check=True, stdout=subprocess.DEVNULL)
        lines = htb.commands(link, port.rate, QUEUES, QUEUE_DEPTH, LEVEL_DSCP)
        lines += htb.splice(between, link)
        subprocess.run(["tc", "-batch", "-"], input="\n".join(lines), text=True, check=True)


class Bmv2(KernelQueueSwitch):
    """bmv2's simple_switch_grpc, with the kernel's queues on its ports."""

    program = "simple_switch_grpc"

    @classmethod
    def executable(cls) -> str:
        """Return the program's path. Raises UserError where it is not installed, or too old."""
        path = super().executable()
        version = _bmv2_version(path)
        if version is None:
            raise UserError(f"{path} --version tells no version", cls.mend())
        if version < OLDEST_BMV2:
            raise UserError(f"{path} is version {_dotted(version)}", cls.mend())
        return path

    @classmethod
    def mend(cls) -> str:
        """Say how to get the program."""
        return f"install bmv2 {_dotted(OLDEST_BMV2)} or newer, or use --switch softswitch"

    def target_options(self) -> list[str]:
        """Nothing: rates and queues are the kernel's."""
        return []


@functools.cache
def _bmv2_version(path: str) -> tuple[int, ...] | None:
    """Return what ``path --version`` starts with; None when that is no version."""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.match(r"\s*(\d+)\.(\d+)\.(\d+)", said.stdout)
    return tuple(int(part) for part in found.groups()) if found else None


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)


SWITCHES: dict[str, type[P4Switch]] = {"softswitch": SoftSwitch, "bmv2": Bmv2}
"""The kinds of switch, by the name that ``--switch`` takes."""


def build(fabric: Fabric, kinds: Mapping[str, type[P4Switch]], first_grpc_port: int, directory: Path) -> Any:  # noqa: ANN401 (a mininet.net.Mininet, which is untyped)
    """Make the network of ``fabric`` in this network namespace, links up, switches not started.

    ``kinds``: switch name -> its kind.

    Switch number n serves P4Runtime on ``first_grpc_port`` + n - 1.
    """
    # Mininet's own initialisation raises limits of the whole machine; nothing here needs them.
    mininet_net.Mininet.inited = True
    net = mininet_net.Mininet(controller=None, build=False)
    for switch in fabric.switches.values():
        port = first_grpc_port + switch.number - 1
        net.addSwitch(switch.name, cls=kinds[switch.name], switch=switch, grpc_port=port, directory=directory)
    for host in fabric.hosts.values():
        net.addHost(host.name, cls=LabHost, ip=None, host=host)
    for host in fabric.hosts.values():
        net.addLink(host.name, host.switch, 0, host.port, cls=mininet_link.Link)
    for trunk in fabric.trunks():
        end = fabric.switches[trunk.switch].ports[trunk.port]
        if trunk.switch < end.peer:
            net.addLink(trunk.switch, end.peer, trunk.port, end.peer_port, cls=mininet_link.Link)
    offloads = [
        f"ip link set {switch.interface(port)} mtu {MTU} && ethtool -K {switch.interface(port)} {OFFLOADS}"
        for switch in fabric.switches.values()
        for port in switch.ports
    ]
    subprocess.run(["sh", "-ec", "\n".join(offloads)], check=True, stdout=subprocess.DEVNULL)
    net.build()
    return net

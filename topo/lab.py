"""A running lab: the fabric's switches and hosts, a controller, an agent in every host, and training jobs."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
import urllib.request
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from leveller.errors import UserError
from topo import files, mininet, namespace
from topo.fabric import Fabric
from topo.files import Policy
from topo.jobs.launch import JobSpec, RunningJob, launch
from topo.ovs import OpenVSwitch
from topo.routes import routes
from topo.scenario import Scenario

FIRST_GRPC_PORT = 50051
READY_S = 30.0
"""How long the controller may take to have every switch programmed and every agent connected."""

JOIN_S = {"emulated": 1.5, "ddp": 40.0}
"""From a job's launch to its first iteration: its ranks start and connect meanwhile."""


class Lab:
    """The lab of one fabric; a context manager. It lives in the namespace that `topo.namespace` made.

    ``hosts`` and ``switches`` are the Mininet nodes by name.
    """

    def __init__(
        self,
        fabric: Fabric,
        switch: str = "softswitch",
        directory: Path = namespace.DIRECTORY,
        open_vswitches: Collection[str] = (),
    ) -> None:
        """Describe the lab; ``switch`` is a name in `mininet.SWITCHES`, ``directory`` is for its files.

        ``open_vswitches``: leaves that are Open vSwitch instead.
        """
        if not namespace.inside():
            raise UserError(
                "a lab runs in its own namespace", "start it through 'leveller demo' or make test"
            )
        if switch not in mininet.SWITCHES:
            raise UserError(f"there is no switch {switch!r}", f"choose one of {', '.join(mininet.SWITCHES)}")
        self.fabric = fabric
        self.kinds: dict[str, type[mininet.P4Switch]] = {
            name: OpenVSwitch if name in open_vswitches else mininet.SWITCHES[switch]
            for name in fabric.switches
        }
        self.directory = directory
        self.hosts: dict[str, mininet.LabHost] = {}
        self.switches: dict[str, mininet.P4Switch] = {}
        self.controller: subprocess.Popen[bytes] | None = None
        self.jobs: list[RunningJob] = []
        self._agents: dict[str, subprocess.Popen[bytes]] = {}
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> Self:
        try:
            self.start()
        except Exception:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Ctrl-C may have come in mid-command, which Mininet does not survive: the namespace's end is enough.
        if kind is not KeyboardInterrupt:
            self.stop()

    def start(self) -> None:
        """Make hosts, links and the management network, and start the switches. Raises UserError."""
        for kind in set(self.kinds.values()):
            kind.executable()
        net = mininet.build(self.fabric, self.kinds, FIRST_GRPC_PORT, self.directory)
        self._undo.callback(net.stop)
        self.hosts = {host.name: host for host in net.hosts}
        self.switches = {switch.name: switch for switch in net.switches}
        self._start_management()
        for switch in self.switches.values():
            switch.start()
        for switch in self.switches.values():
            switch.wait()

    def stop(self) -> None:
        """End everything, last started first; may be called at any time and twice."""
        while self.jobs:
            self.jobs.pop().stop()
        for agent in self._agents.values():
            agent.terminate()
        for agent in self._agents.values():
            _end(agent)
        self._agents.clear()
        if self.controller is not None:
            self.controller.terminate()
            _end(self.controller)
            self.controller = None
        self._undo.close()

    def execute(self, host: str, argv: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401 (Popen's)
        """Start ``argv`` in ``host``; ``options`` as Popen takes them."""
        process: subprocess.Popen[bytes] = self.hosts[host].popen(list(argv), **options)
        return process

    def write_config(self, policy: Policy) -> Path:
        """Write the controller's configuration and return where it is."""
        rewrites = any(kind.rewrites_dscp for kind in self.kinds.values())
        dscp = mininet.LEVEL_DSCP if rewrites else ()
        config = self.directory / "leveller.toml"
        addresses = {
            name: switch.address
            for name, switch in self.switches.items()
            if not isinstance(switch, OpenVSwitch)
        }
        store = self.directory / "leveller.db"
        config.write_text(files.controller_toml(self.fabric, addresses, policy, store, dscp, mininet.QUEUES))
        return config

    def start_controller(self, policy: Policy) -> None:
        """Configure and start the controller; what it logs goes to ``controller.log``."""
        config = self.write_config(policy)
        with (self.directory / "controller.log").open("ab") as log:
            self.controller = subprocess.Popen(
                namespace.python("leveller", "controller", "--config", str(config)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill_controller(self) -> None:
        """End the controller at once, as a crash would."""
        assert self.controller is not None
        self.controller.kill()
        self.controller.wait()
        self.controller = None

    def start_agents(self) -> None:
        """Start an agent in every host; each logs to ``agent-HOST.log``."""
        for host in self.fabric.hosts.values():
            config = self.directory / f"agent-{host.name}.toml"
            config.write_text(files.agent_toml(host))
            command = namespace.python("leveller", "agent", "--config", str(config))
            with config.with_suffix(".log").open("ab") as log:
                self._agents[host.name] = self.execute(
                    host.name, command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )

    def status(self) -> dict[str, Any]:
        """Return the controller's GET /status. Raises OSError while it does not answer."""
        with urllib.request.urlopen(f"http://{files.HTTP}/status", timeout=2) as answer:
            status: dict[str, Any] = json.load(answer)
            return status

    def wait_ready(self) -> None:
        """Wait until every switch forwards and every agent started is connected. Raises UserError."""
        expected = len(self._agents)

        def ready() -> bool:
            status = self.status()
            forwarding = [
                switch["name"]
                for switch in status["switches"]
                if switch["primary"] and switch["entries"].get("ipv4_lpm", 0) >= self._routes(switch["name"])
            ]
            return len(forwarding) == len(self.switches) and len(status["agents"]) >= expected

        self.wait_for(ready, READY_S, "the controller to have programmed every switch and met every agent")

    def wait_for(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Wait until ``condition()``, which may raise OSError till then. UserError after ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            self.check()
            with contextlib.suppress(OSError):
                if condition():
                    return
            time.sleep(0.1)
        raise UserError(
            f"waited {timeout_s:g} s for {what}", f"see the logs ({self._last('controller.log')})"
        )

    def check(self) -> None:
        """Raise UserError with its last words when the controller, an agent, a switch or a rank has ended."""
        running = {"controller": self.controller}
        running |= {f"agent-{name}": agent for name, agent in self._agents.items()}
        running |= {name: switch.process for name, switch in self.switches.items()}
        for name, process in running.items():
            if process is not None and process.poll() is not None:
                raise UserError(
                    f"{name} ended with code {process.returncode} ({self._last(f'{name}.log')})",
                    "that is a fault of the program: report it",
                )
        for job in self.jobs:
            job.check()

    def start_jobs(self, scenario: Scenario) -> None:
        """Start the scenario's training jobs together."""
        start = time.time() + JOIN_S[scenario.training]
        for number, job in enumerate(scenario.jobs):
            addresses = [str(self.fabric.hosts[host].ipv4) for host in job.hosts]
            spec = JobSpec(
                job.id,
                number,
                job.hosts,
                addresses,
                job.compute * scenario.unit_s,
                scenario.volume(job),
                job.log,
                job.honest,
                scenario.training == "ddp",
            )
            self.jobs.append(launch(spec, start, self.directory, self.execute))

    def _start_management(self) -> None:
        """Connect every host to a bridge in the lab's root namespace, where the controller is."""
        _ip("link add mgmt type bridge", f"address add {files.MANAGEMENT}/16 dev mgmt", "link set mgmt up")
        self._undo.callback(_ip, "link del mgmt")
        for number, (name, host) in enumerate(self.hosts.items()):
            outer, inner = f"mgmt-{name}", f"{name}-mgmt"
            _ip(f"link add {outer} master mgmt up type veth peer name {inner} netns {host.pid}")
            self._undo.callback(_ip, f"link del {outer}")
            address = f"10.255.{1 + number // 250}.{1 + number % 250}/16"
            inside = f"ip address add {address} dev {inner} && ip link set {inner} up"
            subprocess.run(["mnexec", "-a", str(host.pid), "sh", "-c", inside], check=True)

    def _routes(self, switch: str) -> int:
        return sum(":" not in route.prefix for route in routes(self.fabric, self.fabric.switches[switch]))

    def _last(self, log: str) -> str:
        path = self.directory / log
        words = path.read_text(errors="replace").strip() if path.exists() else ""
        return words.splitlines()[-1] if words else "it said nothing"


def _ip(*lines: str) -> None:
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

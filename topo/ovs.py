"""Open vSwitch as a switch of the lab: OpenFlow 1.3, userspace datapath, a database of its own.

That datapath ignores ``set_queue``, so queues are the kernel's, chosen by the DSCP that goes with it.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

from leveller.errors import UserError
from topo.files import OPENFLOW
from topo.mininet import START_S, KernelQueueSwitch

SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")


class OpenVSwitch(KernelQueueSwitch):
    """Debian's ovsdb-server and ovs-vswitchd; the bridge connects to ``controller``, ``HOST:PORT``."""

    program = "ovs-vswitchd"
    controller = OPENFLOW
    _server: subprocess.Popen[bytes] | None = None

    @classmethod
    def executable(cls) -> str:
        """Return the program's path. Raises UserError where Open vSwitch is not installed."""
        for tool in ("ovsdb-server", "ovsdb-tool", "ovs-vsctl"):
            if not shutil.which(tool):
                raise UserError(f"{tool} is not on PATH", cls.mend())
        return super().executable()

    @classmethod
    def mend(cls) -> str:
        """Say how to get the program."""
        return "apt-get install openvswitch-switch"

    def command(self) -> list[str]:
        """Return the daemon's command line."""
        files = self._files("vswitchd")
        run = f"OVS_RUNDIR={self._directory}"
        return ["env", run, self.executable(), self._database, *files, "--disable-system"]

    def start(self, controllers: object = ()) -> None:
        """Make the queues and the database, then start both daemons."""
        self._directory.mkdir(parents=True)
        path = self._directory / "conf.db"
        subprocess.run(["ovsdb-tool", "create", str(path), str(SCHEMA)], check=True)
        server = ["ovsdb-server", str(path), f"--remote=p{self._database}", *self._files("ovsdb")]
        with self.log_path.open("ab") as log:
            self._server = self.popen(server, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + START_S
        while not self._socket.exists() and time.monotonic() < deadline and self._server.poll() is None:
            time.sleep(0.02)
        self._configure("--no-wait", "init")
        super().start(controllers)

    def wait(self) -> None:
        """Make the bridge, and wait until the switch has it. Raises UserError where it never does."""
        bridge = f"{self.name}-br"
        number = self.switch.number
        words = [
            ["add-br", bridge],
            ["set", "bridge", bridge, "datapath_type=netdev", "protocols=OpenFlow13", "fail_mode=secure"],
            ["set", "bridge", bridge, f"other_config:datapath-id={number:016x}"],
            ["set", "bridge", bridge, "other_config:disable-in-band=true"],
        ]
        for port in self.switch.ports:
            interface = self.attachment(port)
            words.append(["add-port", bridge, interface])
            words.append(["set", "interface", interface, f"ofport_request={port}"])
        words.append(["set-controller", bridge, f"tcp:{self.controller}"])
        limit = "controller_rate_limit=1000"  # probes a second, whatever hosts send
        words.append(["set", "controller", bridge, "max_backoff=1000", limit])
        joined = [word for command in words for word in ("--", *command)]
        try:
            self._configure(f"--timeout={START_S:.0f}", *joined[1:])
        except subprocess.CalledProcessError as error:
            raise UserError(
                f"switch {self.name} did not start ({error.stderr.strip()})", f"see {self.log_path}"
            ) from None

    def kill(self) -> None:
        """End both daemons at once, as a crash would."""
        super().kill()
        self._end_server()

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803 (Mininet's signature)
        """End both daemons and, with them, whatever they set up."""
        super().stop(deleteIntfs)
        self._end_server()

    @property
    def _directory(self) -> Path:
        return self.log_path.with_suffix(".ovs")

    @property
    def _database(self) -> str:
        return f"unix:{self._socket}"

    @property
    def _socket(self) -> Path:
        return self._directory / "db.sock"

    def _files(self, daemon: str) -> list[str]:
        """Return the options that keep a daemon's files in the lab's directory."""
        return [
            f"--{option}={self._directory / daemon}.{suffix}"
            for option, suffix in (("pidfile", "pid"), ("unixctl", "ctl"), ("log-file", "log"))
        ]

    def _configure(self, *words: str) -> None:
        command = ["ovs-vsctl", f"--db={self._database}", *words]
        subprocess.run(command, capture_output=True, text=True, check=True)

    def _end_server(self) -> None:
        if self._server is not None:
            # Its datapath's interfaces would outlive it.
            for interface in (f"{self.name}-br", "ovs-netdev"):
                subprocess.run(["ip", "link", "del", interface], capture_output=True, check=False)
            self._server.kill()  # what it holds goes with the lab
            self._server.wait()
            self._server = None
            shutil.rmtree(self._directory)

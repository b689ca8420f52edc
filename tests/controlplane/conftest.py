"""Real switches as processes, and a second P4Runtime client (finsy's own Switch) to look into them."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import finsy
import grpc
import pytest
from finsy.p4client import P4ClientError
from finsy.proto import U128, p4i, p4r, p4r_grpc
from google.protobuf import text_format

from controlplane.southbound import Desired, FlowEntry, GroupLevel, LevelQueue, Setup, Target
from tests.controlplane.southbound.helpers import PROGRAM, flow

COMMANDS = {
    "bmv2": shutil.which("simple_switch_grpc"),
    "softswitch": shutil.which("softswitch", path=str(Path(sys.executable).parent)),
}


class Process:
    """A switch process listening on an ephemeral loopback port, or on a Unix socket inside a namespace."""

    def __init__(
        self, kind, device_id, log, address, prefix=(), interfaces=(), preloaded=None, queues=8, more=()
    ):
        self.address, self.device_id, self._log = address, device_id, log
        quiet = ["--log-level", "off"] if kind == "bmv2" else ["--log-level", "warn"]
        attached = [part for interface in interfaces for part in ("-i", interface)]
        self._command = [
            *prefix, COMMANDS[kind], *attached, "--device-id", str(device_id), *quiet,
            str(preloaded or "--no-p4"), "--", "--grpc-server-addr", address, "--cpu-port", "510",
            "--priority-queues", str(queues), *more,
        ]  # fmt: skip
        self._process = None

    def target(self, name="S1"):
        return Target(name, self.address, self.device_id)

    def start(self):
        self._process = subprocess.Popen(self._command, stdout=self._log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 20
        while not self._listens():
            assert self._process.poll() is None, f"{self._command} ended with {self._process.returncode}"
            assert time.monotonic() < deadline, f"{self._command} does not listen"
            time.sleep(0.05)

    def kill(self):
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def freeze(self):
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)  # until it really stands still

    def thaw(self):
        self._process.send_signal(signal.SIGCONT)

    def _listens(self):
        try:
            if path := self.address.removeprefix("unix:") if self.address.startswith("unix:") else None:
                with socket.socket(socket.AF_UNIX) as probe:
                    probe.connect(path)
            else:
                host, _, port = self.address.rpartition(":")
                socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            return False
        return True


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture(params=["softswitch", "bmv2"])
def kind(request):
    if COMMANDS[request.param] is None:
        pytest.skip(f"{request.param} is not installed")
    return request.param


@pytest.fixture
def switches(kind, tmp_path):
    """Make switch processes; each is killed at the end."""
    made = []
    log = (tmp_path / "switch.log").open("wb")

    def make(*, started=True, **options):
        options.setdefault("address", free_address())
        process = Process(kind, len(made) + 1, log, **options)
        made.append(process)
        if started:
            process.start()
        return process

    yield make
    for process in made:
        with contextlib.suppress(AttributeError):
            process.thaw()
        process.kill()
    log.close()


@pytest.fixture
def switch(switches):
    return switches()


@pytest.fixture
def smaller(tmp_path):
    """Make the program with tables of other sizes, and a P4Info that says so, or does not."""

    def make(*, p4info_too=False, **sizes):
        program = json.loads(PROGRAM.json.read_text())
        for table in (table for pipeline in program["pipelines"] for table in pipeline["tables"]):
            table["max_size"] = sizes.get(table["name"].rpartition(".")[2], table["max_size"])
        made = replace(PROGRAM, json=tmp_path / "smaller.json")
        made.json.write_text(json.dumps(program))
        if p4info_too:
            info = text_format.Parse(PROGRAM.p4info.read_text(), p4i.P4Info())
            for table in info.tables:
                table.size = sizes.get(table.preamble.alias, table.size)
            made = replace(made, p4info=tmp_path / "smaller.p4info.txtpb")
            made.p4info.write_text(text_format.MessageToString(info))
        return made

    return make


@pytest.fixture
def setup():
    return Setup(
        level_queue={level: LevelQueue(level) for level in range(8)},
        node_id=1,
        host_ports=frozenset({1, 2}),
        fabric_ports=frozenset({3}),
        control_level=7,
    )


@pytest.fixture
def desire(setup):
    """Make a ``Desired`` of as many groups as ``levels``, numbered from 1, with one flow each."""

    def make(*levels, setup=setup):
        return Desired(
            setup,
            {flow(group): FlowEntry(group, group) for group, _ in enumerate(levels, start=1)},
            {group: GroupLevel(level) for group, level in enumerate(levels, start=1)},
        )

    return make


class Onlooker:
    """What another P4Runtime client reads; it never becomes the primary."""

    def __init__(self, process):
        options = finsy.SwitchOptions(
            p4info=PROGRAM.p4info, device_id=process.device_id, initial_election_id=1
        )
        self._switch = finsy.Switch("onlooker", process.address, options)

    async def read(self, table, **match):
        async with self._switch as switch:
            entry = finsy.P4TableEntry(table, **match)
            return [found async for found in switch.read(entry)]

    async def bank(self):
        (entry,) = await self.read("active_bank", is_default_action=True)
        return entry.action.args["bank"]

    async def levels(self):
        """Group -> level of the ranking in force."""
        bank = await self.bank()
        entries = await self.read("group_level")
        return {
            entry.match["group"]: entry.action.args["level"]
            for entry in entries
            if entry.match["bank"] == bank
        }

    async def flows(self):
        """Source port - 1000 -> (group, slot)."""
        entries = await self.read("flow_group_v4")
        return {
            entry.match["sport"] - 1000: (entry.action.args["group"], entry.action.args["slot"])
            for entry in entries
        }


@pytest.fixture
def stranger(switch):
    """Write something with the controller's own election id, but without its knowing."""

    async def write(fabric, change):
        session = fabric._sessions["S1"]
        async with grpc.aio.insecure_channel(switch.address) as channel:
            await p4r_grpc.P4RuntimeStub(channel).Write(
                p4r.WriteRequest(
                    device_id=switch.device_id,
                    election_id=U128.encode(session.device()._election.id),
                    updates=[fabric._encoder.update(change)],
                )
            )

    return write


@pytest.fixture
def onlooker():
    return Onlooker


@pytest.fixture
def eventually():
    """Wait until an awaitable condition holds."""

    async def wait(condition, seconds=10.0):
        deadline = time.monotonic() + seconds
        while True:
            with contextlib.suppress(P4ClientError):  # the switch may have no pipeline yet
                if await condition():
                    return
            assert time.monotonic() < deadline, "it never came true"
            await asyncio.sleep(0.05)

    return wait

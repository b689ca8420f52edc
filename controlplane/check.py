"""``leveller check``: does the configuration fit the program, and each switch as it is now. Reads only.

What can be said without a switch is said first; then every switch is asked, all at once, by unary reads
without a stream: the check has no part in the arbitration, cannot become primary, and disturbs no controller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import asdict, dataclass, field

from finsy import P4Schema
from finsy.proto import p4i

import p4src
from controlplane.check_scheduler import local_queues
from controlplane.check_switch import Asked, ask
from controlplane.config import Config
from controlplane.desired import setups
from controlplane.findings import Finding, Note
from controlplane.ports import overlooked
from controlplane.southbound import tables
from controlplane.southbound.contract import bind
from controlplane.switch_config import SwitchSection
from leveller.errors import UserError

_MEND_SIZE = "configure less, or compile the program with a larger table (p4src/shared/sizes.p4)"


@dataclass(frozen=True, slots=True)
class Report:
    """What a check came to."""

    findings: list[Finding] = field(default_factory=list)
    """Why not to go on."""
    notes: list[Note] = field(default_factory=list)
    """What is worth knowing: what could not be checked, and how it can."""

    def add(self, said: Iterable[Finding | Note]) -> None:
        """Sort in what was said."""
        for each in said:
            if isinstance(each, Finding):
                self.findings.append(each)
            else:
                self.notes.append(each)

    def as_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {
            "fits": not self.findings,
            "findings": [asdict(finding) for finding in self.findings],
            "notes": [asdict(note) for note in self.notes],
        }


def check(
    config: Config, program: p4src.Program, *, offline: bool, may_push: bool, deadline_s: float
) -> Report:
    """Check ``config``; ``offline``: without asking a switch.

    ``may_push``: that a switch runs another program is no finding, but will be pushed over.
    """
    schema = P4Schema(program.p4info, program.json)
    report = Report()
    wanted = {name: tables.setup_rows(setup) for name, setup in setups(config).items()}
    report.add(_program(schema.p4info, program))
    for switch in config.switches:
        report.add(_sizes(switch.name, wanted[switch.name], schema.p4info, "our P4Info"))
    if offline:
        report.add([Note(None, "switches", "none was asked")])
        return report
    asked = asyncio.run(_ask_all(config, deadline_s))
    cookie = schema.get_pipeline_config().cookie.cookie
    for switch in config.switches:
        answer = asked[switch.name]
        report.add(answer.said)
        if answer.reached:
            report.add(_pipeline(switch, answer, cookie, may_push=may_push))
            report.add(_running(switch, answer, wanted[switch.name], program, cookie))
            report.add(_ports(switch, answer.traffic, overlooked(program)))
            report.add(_role(switch))
        report.add(local_queues(switch, config.levels, answer.queues))
    return report


def unreadable(error: UserError) -> Report:
    """Return the report on a configuration that cannot be had, for ``error``."""
    return Report([Finding(None, "configuration", error.what, error.mend)])


async def _ask_all(config: Config, deadline_s: float) -> dict[str, Asked]:
    answers = await asyncio.gather(*(ask(switch, deadline_s) for switch in config.switches))
    return {switch.name: answer for switch, answer in zip(config.switches, answers, strict=True)}


def _program(info: p4i.P4Info, program: p4src.Program) -> Iterator[Finding]:
    try:
        bind(info, program.p4info.name)
    except UserError as error:
        yield Finding(None, "P4Info", error.what, error.mend)


def _sizes(switch: str, wanted: tables.Contents, info: p4i.P4Info, whose: str) -> Iterator[Finding]:
    """Find tables that have no room for what the configuration alone puts there."""
    sizes = {table.preamble.alias: table.size for table in info.tables}
    for table, rows in wanted.items():
        if 0 < sizes.get(table, 0) < len(rows):
            what = f"{table} needs {len(rows)} entries, and {whose} has room for {sizes[table]}"
            yield Finding(switch, "table sizes", what, _MEND_SIZE)


def _pipeline(
    switch: SwitchSection, answer: Asked, cookie: int, *, may_push: bool
) -> Iterator[Finding | Note]:
    """Compare the program that the switch runs with ours, by its cookie."""
    if answer.cookie == cookie and answer.info is not None:
        return
    if answer.info is None and answer.cookie is None:
        what = "no pipeline that a controller has pushed"
        told = f"{what}; ours will be"
        if answer.any_device:
            told += f", which shows whether {switch.device_id} is its device id: it would say the same of any"
        note = Note(switch.name, "pipeline cookie", told)
    else:
        theirs = "none" if answer.cookie is None else f"{answer.cookie:#x}"
        what = f"it runs another program (cookie {theirs}, ours is {cookie:#x})"
        note = Note(switch.name, "pipeline cookie", f"{what}; ours will be pushed, which clears its tables")
        if not may_push and switch.role is None:
            mend = "if nobody needs that program, check with --replace-pipeline: the controller pushes ours"
            yield Finding(switch.name, "pipeline cookie", what, mend)
            return
    if switch.role is not None:
        mend = f"let the controller with the default role push it: the role {switch.role!r} does not"
        yield Finding(switch.name, "pipeline cookie", what, mend)
    else:
        yield note


def _running(
    switch: SwitchSection, answer: Asked, wanted: tables.Contents, program: p4src.Program, cookie: int
) -> Iterator[Finding]:
    """Find what does not fit in the P4Info that the switch has, where it came from another push than ours."""
    if answer.info is None:
        return
    yield from _sizes(switch.name, wanted, answer.info, "the switch's P4Info")
    if answer.cookie == cookie:
        return
    try:
        bind(answer.info, "the switch's P4Info")
    except UserError as error:
        yield Finding(switch.name, "P4Info", error.what, error.mend)
        return
    sizes = {table.preamble.alias: table.size for table in answer.info.tables}
    slots = {counter.preamble.alias: counter.size for counter in answer.info.counters}
    for name, have, need in (
        ("group_level", sizes["group_level"], 2 * program.constants["GROUPS"]),
        ("burst_count", slots.get("burst_count", 0), program.constants["FLOW_SLOTS"]),
    ):
        if have < need:
            what = f"{name} has {have} entries, and the numbers that are handed out go to {need}"
            yield Finding(switch.name, "table sizes", what, _MEND_SIZE)


def _ports(switch: SwitchSection, traffic: Mapping[int, int], others: Set[int]) -> Iterator[Finding]:
    """Find ports that carry traffic, by the program's counters, and that the configuration does not know."""
    for port in sorted(traffic.keys() - set(switch.ports) - others):
        yield Finding(
            switch.name,
            "port map",
            f"port {port} has carried {traffic[port]} packets, but is not among ports",
            "add it to switches.ports, and to host_ports where it leads to hosts",
        )


def _role(switch: SwitchSection) -> Iterator[Note]:
    """Say what only a stream could find out."""
    if switch.role is not None:
        what = f"whether it has roles was not asked; on one that has none, as bmv2, {switch.role!r} stays out"
        yield Note(switch.name, "role", what)

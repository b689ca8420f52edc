"""What a configuration asks of a switch's queues: a strict priority each, and a PFC class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controlplane.config import Config, LevelsSection
from controlplane.switch_config import SwitchSection
from leveller.errors import UserError

PFC_CLASSES = range(8)
"""IEEE 802.1Q, clause 36: PFC pauses each of eight priorities by itself."""


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue that Leveller uses, the same on every port."""

    queue: int
    use: str
    """For people: ``level 3`` or ``control``."""
    priority: int
    """Strict: served before every lower one. It is the queue's number, as everywhere else in Leveller."""
    pfc_class: int | None
    """The class that pauses it; None for control traffic, which nothing must pause."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one switch has to be told."""

    switch: str
    ports: tuple[int, ...]
    """P4Runtime's port numbers; on Tofino the device ports."""
    queues: tuple[Queue, ...]
    """Lowest first."""


def plan(config: Config, switch: SwitchSection, pfc_class: int) -> Plan:
    """Return the plan of ``switch``.

    ``pfc_class`` is the class of lossless traffic's own DSCP; levels that mark a DSCP of their own have
    that DSCP's class. Either way it is the class that the next switch pauses, since it knows the packet by
    its DSCP only.
    """
    levels = config.levels
    queues = [
        Queue(queue, f"level {level}", queue, level_class(levels, level, pfc_class))
        for level, queue in enumerate(levels.queues)
    ]
    queues.append(Queue(levels.control_queue, "control", levels.control_queue, None))
    return Plan(switch.name, switch.ports, tuple(sorted(queues, key=lambda queue: queue.queue)))


def level_class(levels: LevelsSection, level: int, pfc_class: int) -> int:
    """Return the PFC class of ``level``: its DSCP's top three bits (RFC 2474), if it has one."""
    return levels.dscp[level] >> 3 if levels.dscp else pfc_class


def find_switch(config: Config, name: str | None) -> SwitchSection:
    """Return the switch called ``name``, or the only one there is. Raises UserError when that is not one."""
    found = [switch for switch in config.switches if name in (None, switch.name)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(switch.name for switch in config.switches)
    what = f"--switch {name} is not configured" if name else "several switches are configured"
    raise UserError(what, f"give --switch with one of: {names}")


def interface_names(plan: Plan, names: Sequence[str]) -> dict[int, str]:
    """Return port -> name of its interface, given in the order of the ports. Raises UserError."""
    if len(names) != len(plan.ports) or len(set(names)) != len(names):
        ports = ", ".join(map(str, plan.ports))
        raise UserError(
            f"--interfaces has {len(set(names))} different names, and {plan.switch} {len(plan.ports)} ports",
            f"give one, such as Ethernet0, for each of: {ports}",
        )
    return dict(zip(plan.ports, names, strict=True))

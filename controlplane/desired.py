"""From a ranking to what every switch should hold: plain data for the southbound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network, IPv6Network

from controlplane.config import Config, LevelsSection
from controlplane.groups import Placement
from controlplane.model import FiveTuple, Levels, Link
from controlplane.southbound import Desired, FlowEntry, GroupLevel, LevelQueue, NextHop, Setup
from controlplane.switch_config import SwitchSection

ROCE_PORT = 4791


def setups(config: Config) -> dict[str, Setup]:
    """Return what the configuration fixes for each switch, by name."""
    levels = config.levels
    forwards = config.program().has_table("ipv4_lpm")
    marks = levels.dscp or (None,) * levels.count
    level_queue = {
        level: LevelQueue(queue, dscp)
        for level, (queue, dscp) in enumerate(zip(levels.queues, marks, strict=True))
    }
    level_queue[levels.control_level] = LevelQueue(levels.control_queue)
    guarded = config.behind()
    return {
        switch.name: Setup(
            level_queue=level_queue,
            node_id=switch.node_id,
            host_ports=frozenset(switch.host_ports),
            fabric_ports=frozenset(
                port
                for port in switch.ports
                if port not in switch.host_ports and Link(switch.name, port) not in guarded
            ),
            guarded_ports=frozenset(port for port in switch.ports if Link(switch.name, port) in guarded),
            routes=_routes(switch, forwards=forwards),
            ecmp_seed=switch.ecmp_seed,
            default_level=levels.default,
            control_level=levels.control_level,
            burst_gap_us=levels.burst_gap_us,
        )
        for switch in config.switches
    }


def _routes(
    switch: SwitchSection, *, forwards: bool
) -> Mapping[IPv4Network | IPv6Network, tuple[NextHop, ...]] | None:
    """Return a switch's routes; None where another controller sees to them, or the program has none."""
    if not forwards or (switch.role is not None and not switch.routes):
        return None
    return {
        route.prefix: tuple(NextHop(hop.port, hop.mac) for hop in route.next_hops) for route in switch.routes
    }


class Builder:
    """Builds `Desired` values, passing a mapping on as the same object while nothing in it changes."""

    def __init__(self, config: Config) -> None:
        self._levels = config.levels
        self._setups = setups(config)
        self._last: dict[str, Desired] = {}
        self._placement: Placement | None = None
        self._ranking: Levels | None = None
        self._guard_us: dict[str, int] = {}
        self._flows: dict[str, dict[FiveTuple, FlowEntry]] = {}
        self._slack_us: Mapping[str, int] = {}

    def untouched(self) -> dict[str, Desired]:
        """Return the wish to leave flows and ranking as they are: nothing has been heard yet."""
        return {name: Desired(setup) for name, setup in self._setups.items()}

    def build(
        self, placement: Placement, levels: Levels, slack_us: Mapping[str, int] | None = None
    ) -> dict[str, Desired]:
        """Return what each switch should hold; a flow has entries only on the switches of its path.

        ``slack_us`` is that of jobs, where `LevelsSection.slack_us` says that it is measured.
        The same ``placement`` object again costs what its groups cost, not what its flows cost, and with the
        same ``levels`` object it costs nothing.
        """
        slack_us = slack_us or {}
        if placement is self._placement and levels is self._ranking and slack_us == self._slack_us:
            return dict(self._last)
        self._ranking, self._slack_us = levels, slack_us
        usual_us = 0 if self._levels.slack_us == "measured" else self._levels.slack_us
        if placement is not self._placement:
            self._placement = placement
            self._guard_us = _guards(placement, self._levels)
            self._flows = _flows(placement, self._setups)
        groups: dict[str, dict[int, GroupLevel]] = {name: {} for name in self._setups}
        entries: dict[tuple[int, ...], GroupLevel] = {}  # few are different, and to make one takes a while
        for group in placement.groups:
            number, guard_us = placement.number[group.id], self._guard_us[group.id]
            waits_us = slack_us.get(group.job, usual_us)
            for link, level in levels[group.id].items():
                entry = entries.get((level, guard_us, waits_us))
                if entry is None:
                    entry = GroupLevel(level, guard_us, waits_us)
                    entries[level, guard_us, waits_us] = entry
                groups[link.switch][number] = entry
        for name, setup in self._setups.items():
            last, flows = self._last.get(name, Desired(setup)), self._flows[name]
            self._last[name] = Desired(
                setup,
                last.flows if last.flows is flows or last.flows == flows else flows,
                last.groups if last.groups == groups[name] else groups[name],
            )
        return dict(self._last)


def _flows(placement: Placement, switches: Iterable[str]) -> dict[str, dict[FiveTuple, FlowEntry]]:
    flows: dict[str, dict[FiveTuple, FlowEntry]] = {name: {} for name in switches}
    paths = {group.id: group.path for group in placement.groups}
    for flow, (group, slot) in placement.flows.items():
        entry = FlowEntry(placement.number[group], slot)
        for link in paths[group]:
            flows[link.switch][flow] = entry
    return flows


def _guards(placement: Placement, levels: LevelsSection) -> dict[str, int]:
    """Return each group's reorder guard: RoCEv2's where one of its flows is RoCEv2."""
    guard_us = {group.id: levels.guard_us for group in placement.groups}
    for flow, (group, _) in placement.flows.items():
        if flow.protocol == 17 and flow.destination_port == ROCE_PORT:
            guard_us[group] = levels.guard_roce_us
    return guard_us

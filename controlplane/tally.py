"""What switches counted, added up by job and flow, over flows that change their switch and entries made anew.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from controlplane.model import FiveTuple

Bytes = Mapping[FiveTuple, int]
"""Of one job, by flow."""


class Tally:
    """Adds up what switches counted, by job and flow, from when each flow is first seen at its switch.

    What an entry had counted by then is none of it: nobody knows since when, or whether it was counted
    elsewhere.
    """

    def __init__(self) -> None:
        self._owners: Mapping[tuple[str, FiveTuple], str] = {}
        self._last: dict[tuple[str, FiveTuple], int] = {}
        self._totals: dict[str, dict[FiveTuple, int]] = {}

    def place(self, owners: Mapping[tuple[str, FiveTuple], str]) -> None:
        """Count these flows, given with the switch that counts them, for these jobs, and no others."""
        flows: dict[str, set[FiveTuple]] = {}
        for (_, flow), job in owners.items():
            flows.setdefault(job, set()).add(flow)
        self._owners = owners
        self._last = {place: count for place, count in self._last.items() if place in owners}
        self._totals = {
            job: {flow: sent for flow, sent in totals.items() if flow in flows[job]}
            for job, totals in self._totals.items()
            if job in flows
        }

    def observe(self, switch: str, counts: Mapping[FiveTuple, int]) -> None:
        """Take in flow counters of ``switch``, bytes. An entry that is made anew starts from 0."""
        for flow, count in counts.items():
            place = switch, flow
            if (job := self._owners.get(place)) is None:
                continue
            before = self._last.get(place, count)
            new = count - before if count >= before else count
            totals = self._totals.setdefault(job, {})
            totals[flow] = totals.get(flow, 0) + new
            self._last[place] = count

    def of(self, job: str) -> Bytes:
        """Return what was counted of ``job`` so far."""
        return dict(self._totals.get(job, {}))

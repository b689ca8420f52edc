"""``leveller top``: who is behind, at what level, and why, from a controller's GET /status."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from leveller.errors import UserError
from leveller.text import printable

REFRESH_S = 1.0
REFUSED = 3
"""Hosts and peers of which something was refused that are shown, the latest first."""

Status = Mapping[str, Any]


def fetch(address: str) -> Status:
    """Return the status of the controller at ``HOST:PORT``.

    Raises UserError where it does not answer, or where what answers is no controller.
    """
    try:
        with urllib.request.urlopen(f"http://{address}/status", timeout=5) as answer:
            status: Status = json.load(answer)
        if not isinstance(status, dict) or "controller" not in status:
            raise ValueError("what answers there is something else")
        return status
    except (OSError, ValueError, HTTPException) as error:
        what = "it does not speak HTTP" if isinstance(error, HTTPException) else error
        reason = getattr(error, "reason", None) or what
        raise UserError(
            f"no controller's status at {address} ({reason})",
            "give --http the address that its configuration has as controller.http",
        ) from None


def watch(address: str, console: Console) -> None:
    """Show the status, again every second, until interrupted; a controller that goes away is waited for."""
    shown: Group | Text = render(fetch(address), console.height)
    with Live(shown, console=console, screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(REFRESH_S)
            try:
                shown = render(fetch(address), console.height)
            except UserError as error:
                shown = Text(str(error), style="red")
            live.update(shown, refresh=True)


def render(status: Status, height: int) -> Group:
    """Return what is shown of ``status`` on a screen of ``height`` lines: the worst-off jobs first."""
    controller, jobs, switches = status["controller"], status["jobs"], status["switches"]
    head = Text(
        f"{controller['name']}: {controller['policy']} over {controller['scope']},"
        f" {controller['levels']} levels, ranked {controller['ranked_s_ago']:.1f} s ago;"
        f" {len(jobs)} jobs, {len(status['flows'])} flows in {len(status['groups'])} groups,"
        f" {len(status['agents'])} agents"
    )
    refused = sorted(status.get("refused", ()), key=lambda who: who["s_ago"])[:REFUSED]
    room = max(5, height - len(switches) - len(refused) - 8)
    parts: list[Text | Table] = [head, _jobs(jobs, _levels(status["groups"]), room), _switches(switches)]
    return Group(*parts, *([_refused(refused)] if refused else []))


def _levels(groups: Sequence[Status]) -> dict[str, tuple[int, int]]:
    """Return each job's lowest and highest level."""
    found: dict[str, set[int]] = {}
    for group in groups:
        found.setdefault(group["job"], set()).update(group["levels"].values())
    return {job: (min(levels), max(levels)) for job, levels in found.items() if levels}


def _jobs(jobs: Sequence[Status], levels: Mapping[str, tuple[int, int]], room: int) -> Table:
    table = Table(box=None, pad_edge=False)
    for column, justify in (("job", "left"), ("R", "right"), ("iterations", "right"), ("level", "right")):
        table.add_column(column, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for column in ("state", "reads", "reason"):
        table.add_column(column, no_wrap=True, overflow="ellipsis")
    # What has no R yet goes after what has.
    ordered = sorted(jobs, key=lambda job: (job["R"] is None, job["R"] or 0.0, job["id"]))
    for job in ordered[:room]:
        low, high = levels.get(job["id"], (None, None))
        level = "-" if low is None else str(low) if low == high else f"{low}-{high}"
        rate = "-" if job["R"] is None else f"{job['R']:.3f}"
        source = job.get("format") or "-"
        state = "flagged" if job.get("flagged") else job["state"]
        words = (job["id"], rate, _iterations(job), level, state, source, job["reason"])
        table.add_row(*(Text(printable(word)) for word in words), style="red" if job.get("flagged") else "")
    if len(ordered) > room:
        table.add_row(Text(f"and {len(ordered) - room} more", style="dim"))
    return table


def _iterations(job: Status) -> str:
    """Return how many are done, and how many are estimated on top of that: ``1200+37±2``."""
    estimated = job.get("estimated")
    more = f"+{estimated}±{job['estimated_error']}" if estimated else ""
    return f"{job['iterations']}{more}"


def _refused(refused: Sequence[Status]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column, justify in (("refused of", "left"), ("times", "right"), ("s ago", "right"), ("last", "left")):
        table.add_column(column, justify=justify, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]
    for who in refused:
        words = (who["who"], str(who["count"]), f"{who['s_ago']:.0f}", who["reason"])
        table.add_row(*(Text(printable(word)) for word in words), style="red")
    return table


def _switches(switches: Sequence[Status]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("switch", "state", "entries", "refused", "error"):
        table.add_column(column, no_wrap=True, overflow="ellipsis")
    for switch in switches:
        state = "primary" if switch["primary"] else "backup" if switch["connected"] else "not connected"
        style = "" if switch["connected"] else "red"
        counts = (str(sum(switch[key].values())) for key in ("entries", "refused"))
        table.add_row(switch["name"], state, *counts, Text(printable(switch["error"] or "")), style=style)
    return table

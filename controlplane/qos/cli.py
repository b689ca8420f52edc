"""The subcommand ``qos``."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leveller.errors import UserError

if TYPE_CHECKING:
    from controlplane.qos.headroom import Headroom
    from controlplane.qos.plan import Plan

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


class Target(StrEnum):
    """Whose words to use."""

    STRATUM = "stratum"
    BFRT = "bfrt"
    SONIC = "sonic"


@app.command()
def qos(
    config: Annotated[Path, typer.Option(help="Configuration file.", metavar="FILE")] = Path("leveller.toml"),
    target: Annotated[Target | None, typer.Option(help="Print the scheduler's configuration for it.")] = None,
    switch: Annotated[str | None, typer.Option(help="Which switch, where there are several.")] = None,
    pfc_class: Annotated[
        int, typer.Option(help="PFC class of lossless traffic's DSCP, where levels mark none.", min=0, max=7)
    ] = 3,
    interfaces: Annotated[
        str, typer.Option(help="SONiC: names of the switch's ports, in order, by commas.", metavar="NAMES")
    ] = "",
    headroom: Annotated[bool, typer.Option("--headroom", help="Print the PFC head-room instead.")] = False,
    rate: Annotated[int, typer.Option(help="Head-room: the ports' rate, Gbit/s.", min=1)] = 100,
    cable: Annotated[float, typer.Option(help="Head-room: the longest cable, metres.", min=0)] = 100.0,
    mtu: Annotated[
        int, typer.Option(help="Head-room: the largest frame with header and FCS.", min=64)
    ] = 9216,
    reaction_ns: Annotated[
        float | None,
        typer.Option(help="Head-room: the other end's reaction. Default: IEEE 802.3's bound.", min=0),
    ] = None,
    interface_ns: Annotated[
        float | None, typer.Option(help="Head-room: this end's sublayers. Default: the same bound.", min=0)
    ] = None,
) -> None:
    """Print what makes a switch's queues strict, or the buffer that PFC needs."""
    if (target is None) == (not headroom):
        raise UserError("leveller qos prints one thing", f"give --headroom, or --target: {', '.join(Target)}")
    from controlplane.config import load
    from controlplane.qos import plan as plans

    loaded = load(config)
    plan = plans.plan(loaded, plans.find_switch(loaded, switch), pfc_class)
    if headroom:
        from controlplane.qos.headroom import headroom as compute

        text = _headroom_table(plan, compute(rate, cable, mtu, reaction_ns, interface_ns))
    else:
        text = _render(plan, target, [name for name in interfaces.split(",") if name])
    sys.stdout.write(text)


def _render(plan: Plan, target: Target | None, interfaces: list[str]) -> str:
    from controlplane.qos import bfrt, sonic, stratum

    match target:
        case Target.STRATUM:
            return stratum.render(plan)
        case Target.BFRT:
            return bfrt.render(plan)
        case _:
            return sonic.render(plan, interfaces)


def _headroom_table(plan: Plan, room: Headroom) -> str:
    """Say the sum, and what it comes to: levels that share a class share its head-room."""
    classes: dict[int, list[str]] = {}
    for queue in plan.queues:
        if queue.pfc_class is not None:
            classes.setdefault(queue.pfc_class, []).append(queue.use)
    lines = [
        f"{room.total} bytes for each port and PFC class (IEEE 802.1Q annex N):",
        f"  two frames {room.frames}, PFC frame {room.pfc_frame}, cable {room.cable},"
        f" reaction {room.reaction}, interface {room.interface}",
        "",
    ]
    lines += [
        f"port {port}, class {pfc_class} ({', '.join(uses)}): {room.total} bytes"
        for port in plan.ports
        for pfc_class, uses in sorted(classes.items())
    ]
    lines += ["", f"{plan.switch}: {room.total * len(plan.ports) * len(classes)} bytes"]
    return "\n".join(lines) + "\n"

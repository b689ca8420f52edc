"""PFC head-room: the bytes that still arrive once a receiver has decided to pause a class.

IEEE 802.1Q-2018, annex N ("Buffer requirements for PFC", from 802.1Qbb annex O), counts them as bits on the
way:

    2 x frame + PFC frame + 2 x cable + (TxDS1 + RxDS2 + HD2 + TxDS2 + RxDS1)

A frame that has just begun keeps the PFC frame waiting, another has just begun at the other end when that
stops; the PFC frame itself; the cable there and back; the delays of both ends' sublayers (DS), and the
other end's higher layer (HD2). IEEE 802.3, 31B.3.7, bounds what the other end may take in all, RxDS2 + HD2
+ TxDS2, by rate; this end's own sublayers are part of the same sum, so the bound holds for TxDS1 + RxDS1 as
well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from leveller.errors import UserError

GAP_BYTES = 20
"""Preamble and start delimiter 8, inter-frame gap 12: they pass with every frame."""
PFC_FRAME_BYTES = 64
CABLE_NS_PER_M = 5.0
"""Light in fibre and signals in copper: two thirds of the speed of light."""
QUANTUM_BITS = 512
PAUSE_QUANTA = {1: 2, 10: 67, 25: 80, 40: 118, 50: 147, 100: 394, 200: 453, 400: 905}
"""Gbit/s -> the most quanta until a station stops (IEEE 802.3, 31B.3.7; SONiC's
buffer_headroom_barefoot.lua has the same)."""
LONGEST = 1e6
"""Metres or nanoseconds: more is a slip of the finger."""


@dataclass(frozen=True, slots=True)
class Headroom:
    """What one class of one port needs. All in bytes, rounded up."""

    frames: int
    pfc_frame: int
    cable: int
    reaction: int
    """Of the other end."""
    interface: int
    """Of this end."""

    @property
    def total(self) -> int:
        """The head-room."""
        return self.frames + self.pfc_frame + self.cable + self.reaction + self.interface


def headroom(
    rate_gbps: int,
    cable_m: float,
    mtu: int,
    reaction_ns: float | None = None,
    interface_ns: float | None = None,
) -> Headroom:
    """Return the head-room of a class whose largest frame is ``mtu`` bytes, Ethernet header and FCS included.

    ``reaction_ns`` is what the other end takes from the PFC frame's arrival until it stops,
    ``interface_ns`` what this end's sublayers take, sending and receiving; left out, both are 802.3's
    bounds. Raises UserError for a rate that has no bound, and for what is no length or time.
    """
    for option, value in (
        ("--cable", cable_m),
        ("--reaction-ns", reaction_ns),
        ("--interface-ns", interface_ns),
    ):
        if value is not None and not 0 <= value <= LONGEST:
            raise UserError(f"{option} {value:g}", f"give 0 to {LONGEST:g}")
    bound = PAUSE_QUANTA.get(rate_gbps, 0) * QUANTUM_BITS // 8
    if not bound and (reaction_ns is None or interface_ns is None):
        rates = ", ".join(map(str, PAUSE_QUANTA))
        raise UserError(
            f"--rate {rate_gbps}: IEEE 802.3 bounds no reaction time for it",
            f"give --reaction-ns and --interface-ns, or one of: {rates}",
        )

    def on_the_way(ns: float) -> int:
        # ns x Gbit/s is bits.
        return math.ceil(ns * rate_gbps / 8)

    return Headroom(
        frames=2 * (mtu + GAP_BYTES),
        pfc_frame=PFC_FRAME_BYTES + GAP_BYTES,
        cable=on_the_way(2 * cable_m * CABLE_NS_PER_M),
        reaction=bound if reaction_ns is None else on_the_way(reaction_ns),
        interface=bound if interface_ns is None else on_the_way(interface_ns),
    )

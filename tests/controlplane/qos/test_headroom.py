"""headroom.py, against values worked out by hand."""

from __future__ import annotations

import pytest

from controlplane.qos.headroom import Headroom, headroom
from leveller.errors import UserError


def test_100_gbit_by_hand() -> None:
    """2 x (9216 + 20); 64 + 20; 2 x 100 m x 5 ns = 1000 ns, of 12.5 bytes each; 394 quanta of 64 bytes."""
    room = headroom(100, 100, 9216)
    assert room == Headroom(frames=18472, pfc_frame=84, cable=12500, reaction=25216, interface=25216)
    assert room.total == 81488


def test_given_times_replace_the_bounds() -> None:
    """10 Gbit/s is 1.25 bytes/ns: 614.4 ns is 768 bytes, 100 ns is 125, 2 x 3 m x 5 ns = 30 ns is 37.5."""
    room = headroom(10, 3, 1518, reaction_ns=614.4, interface_ns=100)
    assert room == Headroom(frames=3076, pfc_frame=84, cable=38, reaction=768, interface=125)


def test_every_metre_costs_what_the_rate_says() -> None:
    """400 Gbit/s is 50 bytes/ns: a metre is 10 ns there and back."""
    assert headroom(400, 11, 9216).total - headroom(400, 10, 9216).total == 500


def test_a_rate_without_a_bound_wants_both_times() -> None:
    with pytest.raises(UserError, match=r"--rate 800: IEEE 802\.3 bounds no reaction time for it"):
        headroom(800, 10, 9216, reaction_ns=1000)
    assert headroom(800, 0, 1480, reaction_ns=10, interface_ns=1).total == 3000 + 84 + 1000 + 100


@pytest.mark.parametrize("metres", [float("inf"), float("nan"), -1, 2e6])
def test_a_cable_that_cannot_be(metres: float) -> None:
    with pytest.raises(UserError, match=r"--cable .*: give 0 to 1e\+06"):
        headroom(100, metres, 9216)


def test_a_time_that_cannot_be() -> None:
    with pytest.raises(UserError, match=r"--reaction-ns inf: give 0 to 1e\+06"):
        headroom(100, 10, 9216, reaction_ns=float("inf"))

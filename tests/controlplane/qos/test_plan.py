"""plan.py: which queue, which priority, which class."""

from __future__ import annotations

import pytest

from controlplane.config import Config
from controlplane.qos.plan import Plan, Queue, find_switch, interface_names, plan
from leveller.errors import UserError


def test_unmarked_levels_share_the_class_of_their_traffic(unmarked: Config) -> None:
    assert plan(unmarked, unmarked.switches[0], 3) == Plan(
        "S1",
        (132, 140),
        (
            Queue(0, "level 0", 0, 3),
            Queue(2, "level 1", 2, 3),
            Queue(5, "level 2", 5, 3),
            Queue(7, "control", 7, None),
        ),
    )


def test_a_marked_level_has_the_class_of_its_dscp(marked: Config) -> None:
    queues = plan(marked, marked.switches[0], 3).queues
    assert [(queue.queue, queue.pfc_class) for queue in queues] == [(0, 1), (2, 2), (5, 3), (7, None)]


def test_a_switch_is_named_where_there_are_several(unmarked: Config) -> None:
    assert find_switch(unmarked, "S2").name == "S2"
    with pytest.raises(UserError, match="several switches are configured: give --switch with one of: S1, S2"):
        find_switch(unmarked, None)
    with pytest.raises(UserError, match="--switch S3 is not configured: give --switch with one of: S1, S2"):
        find_switch(unmarked, "S3")


@pytest.mark.parametrize("names", [[], ["Ethernet0"], ["Ethernet0", "Ethernet0"]])
def test_every_port_has_an_interface_of_its_own(unmarked: Config, names: list[str]) -> None:
    with pytest.raises(UserError, match=f"has {len(set(names))} different names, and S1 2 ports"):
        interface_names(plan(unmarked, unmarked.switches[0], 3), names)

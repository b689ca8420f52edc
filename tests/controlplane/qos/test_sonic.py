"""sonic.py: config DB's objects."""

from __future__ import annotations

import json

import pytest

from controlplane.config import Config
from controlplane.qos import sonic
from controlplane.qos.plan import plan
from leveller.errors import UserError


def test_strict_queues(unmarked: Config) -> None:
    tables = json.loads(sonic.render(plan(unmarked, unmarked.switches[0], 3), ["Ethernet0", "Ethernet4"]))
    assert tables == {
        "SCHEDULER": {"leveller.strict": {"type": "STRICT"}},
        "QUEUE": {
            f"{interface}|{queue}": {"scheduler": "leveller.strict"}
            for interface in ("Ethernet0", "Ethernet4")
            for queue in (0, 2, 5, 7)
        },
    }


def test_a_class_of_its_own_pauses_a_level(marked: Config) -> None:
    tables = json.loads(sonic.render(plan(marked, marked.switches[1], 3), ["Ethernet0"]))
    assert tables["PFC_PRIORITY_TO_QUEUE_MAP"] == {"leveller": {"1": "0", "2": "2", "3": "5"}}
    assert tables["PORT_QOS_MAP"] == {"Ethernet0": {"pfc_to_queue_map": "leveller"}}


def test_two_levels_of_one_class_are_refused(marked: Config) -> None:
    levels = marked.levels.model_copy(update={"dscp": (10, 12, 26)})
    config = marked.model_copy(update={"levels": levels})
    with pytest.raises(UserError, match="gives two levels the same PFC class"):
        sonic.render(plan(config, config.switches[1], 3), ["Ethernet0"])

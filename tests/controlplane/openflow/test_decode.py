"""Entries by themselves; that rows survive the way there and back is in test_pipeline.py."""

import pytest

from controlplane.openflow.decode import row_of
from controlplane.openflow.entries import CONTROLLER, Flow, Output, SetField
from controlplane.southbound.tables import Call

V4 = 0x0800
TO_MAC = SetField("eth_dst", "00:00:00:00:00:0a")
BY_PORT_2 = (("metadata", (2 << 32, 0xFFFF << 32)),)


@pytest.mark.parametrize(
    ("flow", "row"),
    [
        (Flow(0, 20, (("in_port", 3),), goto=1), ("edge_port", (3,), Call("fabric_facing"))),
        (
            Flow(0, 20, (("eth_type", V4), ("in_port", 3), ("ip_dscp", 23)), goto=1, meter=3),
            ("edge_port", (3,), Call("host_facing")),
        ),
        (Flow(1, 1, metadata=(1 << 16, 1 << 16), goto=2), ("active_bank", (), Call("set_bank", (1,)))),
        (
            Flow(3, 100, (("metadata", (1 << 16 | 9, 0x1FFFF)),), (), (5 << 24, 0xFF << 24), 4, 7 << 32 | 8),
            ("group_level", (1, 9), Call("set_level", (5, 7, 8))),
        ),
        (
            Flow(5, 33, (("eth_type", V4), ("ipv4_dst", "10.0.0.1")), (TO_MAC,), (2 << 32, 0xFFFF << 32), 6),
            ("ipv4_lpm", ((0x0A000001, 32),), Call("set_nhop", (2, 10))),
        ),
        (Flow(6, 30, BY_PORT_2, (Output(2),)), ("int_sink", (2,), Call("relay"))),
        (
            Flow(6, 30, BY_PORT_2, (Output(CONTROLLER),)),
            ("int_sink", (2,), Call("sink")),
        ),
    ],
)  # fmt: skip
def test_an_entry_tells_its_row(flow, row):
    assert row_of(flow) == row


@pytest.mark.parametrize(
    "flow",
    [
        Flow(0, 0, goto=1),
        Flow(0, 20),
        Flow(0, 20, (("in_port", 0xFFFFFFFE),)),
        Flow(2, 100),
        Flow(5, 0),
        Flow(5, 34, (("eth_type", V4), ("ipv4_dst", "10.0.0.1"))),
        Flow(5, 32768, (("eth_type", V4), ("ipv4_dst", "10.0.0.1"))),
        Flow(6, 20),
        Flow(9, 1),
    ],
    ids=str,
)
def test_an_entry_of_no_row(flow):
    assert row_of(flow) is None

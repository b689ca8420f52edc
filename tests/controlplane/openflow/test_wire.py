from types import SimpleNamespace

import pytest
from hypothesis import given
from os_ken.ofproto import ofproto_v1_3 as of
from os_ken.ofproto import ofproto_v1_3_parser as parser
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

from controlplane.openflow import wire
from controlplane.openflow.entries import ECMP_GROUPS, Flow, Output
from controlplane.openflow.pipeline import static
from controlplane.southbound.tables import Call
from tests.controlplane.openflow.rows import PIPELINE, rows

DATAPATH = ProtocolDesc(version=of.OFP_VERSION)


def over_the_wire(flow: Flow) -> Flow | None:
    """Serialise the flow-mod's match and instructions, and read them as a switch's statistics are."""
    message = wire.flow_mod(DATAPATH, flow)
    message.set_xid(7)
    message.serialize()
    offset = of.OFP_HEADER_SIZE + 40
    match = parser.OFPMatch.parser(message.buf, offset)
    offset += -(-match.length // 8) * 8
    instructions = []
    while offset < len(message.buf):
        instruction = parser.OFPInstruction.parser(message.buf, offset)
        instructions.append(instruction)
        offset += instruction.len
    return wire.flow_of(
        SimpleNamespace(
            table_id=message.table_id,
            priority=message.priority,
            cookie=message.cookie,
            match=match,
            instructions=instructions,
        )
    )


@given(rows)
def test_an_entry_survives_the_wire(row: tuple) -> None:
    for flow in PIPELINE.encode(*row):
        assert over_the_wire(flow) == flow


def test_so_do_the_pipelines_own() -> None:
    for flow in static(0x17):
        assert over_the_wire(flow) == flow


def test_a_deletion_has_the_key_alone_and_is_strict() -> None:
    (flow, _) = PIPELINE.encode("flow_group_v4", (1, 2, 6, 3, 4), Call("set_group", (5, 6)))
    message = wire.flow_mod(DATAPATH, flow, delete=True)
    assert (message.command, message.priority, message.instructions) == (of.OFPFC_DELETE_STRICT, 100, [])
    assert dict(message.match.items())["tcp_dst"] == 4


@pytest.mark.parametrize(
    ("buckets", "new", "command"),
    [
        ([(1, 2), (3, 4)], True, of.OFPGC_ADD),
        ([(1, 2)], False, of.OFPGC_MODIFY),
        ([], False, of.OFPGC_DELETE),
    ],
)
def test_groups(buckets: list, new: bool, command: int) -> None:
    message = wire.group_mod(DATAPATH, 9, buckets, new=new)
    assert (message.command, message.type, message.group_id) == (command, of.OFPGT_SELECT, ECMP_GROUPS + 9)
    assert wire.group_of(message.group_id) == 9
    assert list(wire.buckets_of(message).values()) == buckets


@pytest.mark.parametrize("number", [0, 1, 77, ECMP_GROUPS - 1, ECMP_GROUPS + 0x10000])
def test_groups_of_somebody_elses(number: int) -> None:
    assert wire.group_of(number) is None
    to_it = parser.OFPInstructionActions(of.OFPIT_APPLY_ACTIONS, [parser.OFPActionGroup(number)])
    stats = SimpleNamespace(table_id=5, priority=25, cookie=0, match=parser.OFPMatch(), instructions=[to_it])
    assert wire.flow_of(stats) is None


def test_a_group_that_does_not_choose_is_none_of_ours() -> None:
    message = wire.group_mod(DATAPATH, 9, [(1, 2), (3, 4)], new=True)
    message.type = of.OFPGT_ALL
    assert wire.buckets_of(message) == {0: (0, 0)}


def test_meters() -> None:
    features = SimpleNamespace(body=[parser.OFPMeterFeaturesStats(200, 6, 3, 1, 8)])
    assert wire.max_meter([features]) == 200
    assert wire.max_meter([SimpleNamespace(body=[])]) == 0, "a switch may have nothing to say"


def test_an_entry_that_we_have_no_words_for() -> None:
    strange = parser.OFPInstructionActions(of.OFPIT_APPLY_ACTIONS, [parser.OFPActionPopVlan()])
    stats = SimpleNamespace(table_id=0, priority=1, cookie=0, match=parser.OFPMatch(), instructions=[strange])
    assert wire.flow_of(stats) is None


def test_the_controller_gets_the_whole_packet() -> None:
    flow = next(flow for flow in static(0x17) if isinstance(next(iter(flow.actions), None), Output))
    (instruction,) = wire.flow_mod(DATAPATH, flow).instructions
    assert [(action.port, action.max_len) for action in instruction.actions] == [
        (of.OFPP_CONTROLLER, of.OFPCML_NO_BUFFER)
    ]

"""Flow entries as OpenFlow 1.3 messages, by os-ken, and back from what a switch tells of its entries."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv6Address
from typing import Any

from os_ken.ofproto import ofproto_v1_3 as of
from os_ken.ofproto import ofproto_v1_3_parser as parser

from controlplane.openflow.entries import (
    CONTROLLER,
    ECMP_GROUPS,
    PROBES_A_SECOND,
    PROBES_AT_ONCE,
    Action,
    DecrementTtl,
    Ecmp,
    Field,
    Flow,
    Output,
    SetField,
    SetQueue,
    Value,
    mac_text,
)

_METER_FLAGS = of.OFPMF_PKTPS | of.OFPMF_BURST


def flow_mod(datapath: Any, flow: Flow, *, delete: bool = False) -> Any:  # noqa: ANN401 (os-ken is untyped)
    """Return the message that adds ``flow``, in the place of one with the same key, or deletes it."""
    instructions = []
    if flow.meter is not None:
        instructions.append(parser.OFPInstructionMeter(flow.meter))
    if flow.actions:
        actions = [_action(action) for action in flow.actions]
        instructions.append(parser.OFPInstructionActions(of.OFPIT_APPLY_ACTIONS, actions))
    if flow.metadata is not None:
        instructions.append(parser.OFPInstructionWriteMetadata(*flow.metadata))
    if flow.goto is not None:
        instructions.append(parser.OFPInstructionGotoTable(flow.goto))
    return parser.OFPFlowMod(
        datapath,
        cookie=flow.cookie,
        table_id=flow.table,
        command=of.OFPFC_DELETE_STRICT if delete else of.OFPFC_ADD,
        priority=flow.priority,
        out_port=of.OFPP_ANY,
        out_group=of.OFPG_ANY,
        match=parser.OFPMatch(**dict(flow.match)),
        instructions=[] if delete else instructions,
    )


def group_mod(datapath: Any, group: int, buckets: Sequence[tuple[int, int]], *, new: bool) -> Any:  # noqa: ANN401
    """Return the message that makes ``group`` choose among ``buckets``, (port, MAC address) each.

    ``new`` tells one that the switch does not have yet; without buckets the message deletes it.
    """
    hops = [
        parser.OFPBucket(
            weight=1,
            watch_port=of.OFPP_ANY,
            watch_group=of.OFPG_ANY,
            actions=[_action(SetField("eth_dst", mac_text(mac))), _action(Output(port))],
        )
        for port, mac in buckets
    ]
    command = of.OFPGC_DELETE if not hops else of.OFPGC_ADD if new else of.OFPGC_MODIFY
    return parser.OFPGroupMod(datapath, command, of.OFPGT_SELECT, ECMP_GROUPS + group, hops)


def meter_mod(datapath: Any, number: int, command: int) -> Any:  # noqa: ANN401
    """Return the message that adds (``OFPMC_ADD``) or alters the meter of a host's probes, or deletes it."""
    bands = [] if command == of.OFPMC_DELETE else [_probes_band()]
    return parser.OFPMeterMod(datapath, command, _METER_FLAGS, number, bands)


def is_probes_meter(config: Any) -> bool:  # noqa: ANN401
    """Say whether an ``OFPMeterConfigStats`` is that of a meter as `meter_mod` makes it."""
    wanted = _probes_band()
    return config.flags == _METER_FLAGS and [
        (band.type, band.rate, band.burst_size) for band in config.bands
    ] == [(wanted.type, wanted.rate, wanted.burst_size)]


def flow_of(stats: Any) -> Flow | None:  # noqa: ANN401
    """Return the entry that an ``OFPFlowStats`` tells of; None where it holds what `Flow` cannot say."""
    actions: list[Action] = []
    metadata = goto = meter = None
    for instruction in stats.instructions:
        if isinstance(instruction, parser.OFPInstructionWriteMetadata):
            metadata = (instruction.metadata, instruction.metadata_mask)
        elif isinstance(instruction, parser.OFPInstructionGotoTable):
            goto = instruction.table_id
        elif isinstance(instruction, parser.OFPInstructionMeter):
            meter = instruction.meter_id
        elif (
            isinstance(instruction, parser.OFPInstructionActions)
            and instruction.type == of.OFPIT_APPLY_ACTIONS
        ):
            known = [_known(action) for action in instruction.actions]
            actions += [action for action in known if action is not None]
            if None in known:
                return None
        else:
            return None
    match = tuple(sorted((name, _field(value)) for name, value in stats.match.items()))
    return Flow(stats.table_id, stats.priority, match, tuple(actions), metadata, goto, stats.cookie, meter)


def group_of(number: int) -> int | None:
    """Return the group that the switch has by ``number``; None where that is somebody else's."""
    return number - ECMP_GROUPS if 0 <= number - ECMP_GROUPS < 1 << 16 else None


def buckets_of(description: Any) -> dict[int, tuple[int, int]]:  # noqa: ANN401
    """Return member -> (port, MAC address) of an ``OFPGroupDescStats``; (0, 0) where it is none of ours."""
    if description.type != of.OFPGT_SELECT:
        return {0: (0, 0)}
    members = {}
    for number, bucket in enumerate(description.buckets):
        port = mac = 0
        for action in bucket.actions:
            match _known(action):
                case Output(to):
                    port = to
                case SetField("eth_dst", str(text)):
                    mac = int(text.replace(":", ""), 16)
        members[number] = port, mac
    return members


def max_meter(parts: Sequence[Any]) -> int:
    """Return the highest number of a meter that the ``OFPMeterFeaturesStats`` in ``parts`` allow."""
    return max((each.max_meter for part in parts for each in part.body), default=0)


def _probes_band() -> Any:  # noqa: ANN401
    return parser.OFPMeterBandDrop(PROBES_A_SECOND, PROBES_AT_ONCE)


def _action(action: Action) -> Any:  # noqa: ANN401
    match action:
        case SetQueue(queue):
            return parser.OFPActionSetQueue(queue)
        case SetField(name, value):
            return parser.OFPActionSetField(**{name: value})
        case Output(port):
            return parser.OFPActionOutput(port, of.OFPCML_NO_BUFFER)
        case Ecmp(group):
            return parser.OFPActionGroup(ECMP_GROUPS + group)
        case DecrementTtl():
            return parser.OFPActionDecNwTtl()


def _known(action: Any) -> Action | None:  # noqa: ANN401
    if isinstance(action, parser.OFPActionSetQueue):
        return SetQueue(action.queue_id)
    if isinstance(action, parser.OFPActionSetField):
        return SetField(action.key, _value(action.value))
    if isinstance(action, parser.OFPActionOutput):
        return Output(CONTROLLER if action.port == of.OFPP_CONTROLLER else action.port)
    if isinstance(action, parser.OFPActionGroup):
        group = group_of(action.group_id)
        return None if group is None else Ecmp(group)
    if isinstance(action, parser.OFPActionDecNwTtl):
        return DecrementTtl()
    return None


def _field(value: Any) -> Field:  # noqa: ANN401
    return (_value(value[0]), _value(value[1])) if isinstance(value, tuple) else _value(value)


def _value(value: Any) -> Value:  # noqa: ANN401
    """Bring what a switch tells into the one form that `Flow` has of it."""
    if isinstance(value, str) and ":" in value and value.count(":") != 5:
        return str(IPv6Address(value))
    return value if isinstance(value, int) else str(value)

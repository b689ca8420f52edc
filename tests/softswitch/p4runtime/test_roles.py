"""Roles: the rights that stratum.P4RoleConfig gives, and packet-in filters."""

import pytest
from finsy.proto import p4r, stratum
from google.protobuf.any_pb2 import Any

from softswitch.p4runtime.roles import FULL, RoleConfig, parse
from tests.softswitch.p4runtime.helpers import refusal


def packed(**fields):
    config = Any()
    config.Pack(stratum.P4RoleConfig(**fields))
    return config


def metadata(*pairs):
    return [p4r.PacketMetadata(metadata_id=metadata_id, value=value) for metadata_id, value in pairs]


def test_a_config_gives_what_it_says():
    role = parse(
        packed(
            exclusive_p4_ids=[10, 11],
            shared_p4_ids=[20],
            receives_packet_ins=True,
            can_push_pipeline=True,
            packet_in_filter={"metadata_id": 1, "value": b"\x05"},
        )
    )
    assert role == RoleConfig(
        exclusive=frozenset({10, 11}),
        shared=frozenset({20}),
        packet_in_filter=(1, b"\x05"),
        receives_packet_ins=True,
        can_push_pipeline=True,
    )
    assert [role.may_access(i) for i in (10, 11, 20, 30)] == [True, True, True, False]


def test_an_empty_config_gives_nothing_but_replication():
    role = parse(packed())
    assert (role.receives_packet_ins, role.can_push_pipeline, role.everything) == (False, False, False)
    assert role.packet_in_filter is None
    assert not role.may_access(10)
    assert role.may_access(0)
    assert not role.wants(metadata((1, b"\x05")))


def test_a_role_without_a_config_may_do_everything():
    assert FULL.may_access(10)
    assert FULL.may_access(0)
    assert FULL.can_push_pipeline
    assert FULL.wants([])


@pytest.mark.parametrize(
    ("pairs", "wanted"),
    [
        ([(1, b"\x05")], True),
        ([(2, b"\x07"), (1, b"\x05")], True),
        ([(1, b"\x07")], False),
        ([(2, b"\x05")], False),
        ([(1, b"\x07"), (2, b"\x05")], False),
        ([], False),
    ],
)
def test_a_filter_wants_its_value_in_its_field(pairs, wanted):
    role = parse(packed(receives_packet_ins=True, packet_in_filter={"metadata_id": 1, "value": b"\x05"}))
    assert role.wants(metadata(*pairs)) is wanted


def test_without_a_filter_every_packet_is_wanted():
    assert parse(packed(receives_packet_ins=True)).wants(metadata((1, b"\x05")))


def test_a_filter_does_not_make_a_role_receive():
    role = parse(packed(packet_in_filter={"metadata_id": 1, "value": b"\x05"}))
    assert not role.wants(metadata((1, b"\x05")))


def test_other_schemes_and_broken_configs_are_refused():
    other = Any()
    other.Pack(p4r.TableEntry())
    assert refusal(parse, other) == (
        "INVALID_ARGUMENT",
        "role.config is a 'type.googleapis.com/p4.v1.TableEntry'; only stratum.P4RoleConfig is understood",
    )
    assert refusal(parse, Any())[1] == "role.config is a ''; only stratum.P4RoleConfig is understood"
    broken = packed(shared_p4_ids=[20])
    broken.value = b"\xff\xff"
    assert refusal(parse, broken)[0] == "INVALID_ARGUMENT"

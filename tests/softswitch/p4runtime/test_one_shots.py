"""One-shot action selector programming: an action set inside a table entry."""

import pytest
from finsy.proto import p4r

from softswitch.entries import ActionCall, OneShot
from softswitch.p4runtime.one_shots import decode_one_shot, encode_one_shot
from tests.softswitch.p4runtime.helpers import refusal

WHERE = "table ingress.spread"


@pytest.fixture
def decode(program, names):
    table = program.info.tables[names.id["spread"]]
    return lambda message: decode_one_shot(program.info, table, message)


@pytest.fixture
def share(names):
    """Return a function that makes one action of a set: forward(port)."""

    def make(port, weight=1, **fields):
        action = names.action("forward", port=port)
        return p4r.ActionProfileAction(action=action, weight=weight, **fields)

    return make


def test_actions_keep_order_weight_and_port(program, decode, share):
    message = p4r.ActionProfileActionSet(
        action_profile_actions=[share(2, 3), share(1, watch_port=b"\x07"), share(2, 3)]
    )
    one_shot = decode(message)
    assert one_shot == OneShot(
        (
            (ActionCall("ingress.forward", (2,)), 3, b""),
            (ActionCall("ingress.forward", (1,)), 1, b"\x07"),
            (ActionCall("ingress.forward", (2,)), 3, b""),
        )
    )
    assert encode_one_shot(program.info, one_shot) == message


def test_the_older_watch_is_a_port_as_well(program, decode, share):
    one_shot = decode(
        p4r.ActionProfileActionSet(action_profile_actions=[share(1, watch=258), share(2, watch=0)])
    )
    assert [port for _, _, port in one_shot.actions] == [b"\x01\x02", b""]
    written = encode_one_shot(program.info, one_shot).action_profile_actions
    assert [item.watch_port for item in written] == [b"\x01\x02", b""]


def test_a_long_watch_port_is_written_shortest(program, decode, share):
    one_shot = decode(p4r.ActionProfileActionSet(action_profile_actions=[share(1, watch_port=b"\0\0\x07")]))
    assert encode_one_shot(program.info, one_shot).action_profile_actions[0].watch_port == b"\x07"


def test_a_watch_port_has_32_bits(decode, share):
    widest = decode(p4r.ActionProfileActionSet(action_profile_actions=[share(1, watch_port=b"\xff" * 4)]))
    assert widest.actions[0][2] == b"\xff" * 4
    wide = p4r.ActionProfileActionSet(action_profile_actions=[share(1, watch_port=b"\1\0\0\0\0")])
    message = f"{WHERE}, watch_port: 0x100000000 does not fit into 32 bits"
    assert refusal(decode, wide) == ("INVALID_ARGUMENT", message)


@pytest.mark.parametrize("weight", [0, -1])
def test_weights_are_at_least_one(decode, share, weight):
    message = f"{WHERE}: an action's weight is at least 1, not {weight}"
    actions = p4r.ActionProfileActionSet(action_profile_actions=[share(1), share(2, weight)])
    assert refusal(decode, actions) == ("INVALID_ARGUMENT", message)


def test_actions_must_be_the_tables(decode, names):
    flood = p4r.ActionProfileAction(action=names.action("flood", group=1), weight=1)
    assert refusal(decode, p4r.ActionProfileActionSet(action_profile_actions=[flood])) == (
        "INVALID_ARGUMENT",
        f"{WHERE} has no action ingress.flood",
    )


@pytest.mark.parametrize("field", ["action_selection_mode", "size_semantics"])
def test_modes_of_its_own_are_not_implemented(decode, share, field):
    actions = p4r.ActionProfileActionSet(action_profile_actions=[share(1)], **{field: 1})
    assert refusal(decode, actions) == (
        "UNIMPLEMENTED",
        f"{WHERE}: a selection mode or size semantics per action set",
    )

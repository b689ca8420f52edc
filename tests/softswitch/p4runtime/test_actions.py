"""Action messages: parameters in any order, what is refused and how it is named, and scopes."""

import pytest
from finsy.proto import p4r

from softswitch.entries import ActionCall
from softswitch.p4runtime.actions import check_scope, decode_action, encode_action
from tests.softswitch.p4runtime.helpers import refusal

WHERE = "table ingress.mac"


@pytest.fixture
def decode(program, names):
    """Return a function that reads an action as one of table mac's."""
    scopes = program.info.tables[names.id["mac"]].scopes
    return lambda message: decode_action(program.info, message, scopes, WHERE)


def test_arguments_come_in_order_of_the_parameters(decode, names):
    assert decode(names.action("prioritise", port=300, queue=5)) == ActionCall("ingress.prioritise", (300, 5))
    assert decode(names.action("prioritise", queue=5, port=300)) == ActionCall("ingress.prioritise", (300, 5))
    assert decode(names.action("drop")) == ActionCall("ingress.drop", ())


def test_long_arguments_are_written_shortest(program, decode, names):
    call = decode(names.action("prioritise", port=b"\0\0\x01\x2c", queue=b"\0\0"))
    assert call.args == (300, 0)
    assert encode_action(program.info, call) == p4r.Action(
        action_id=names.id["prioritise"],
        params=[p4r.Action.Param(param_id=1, value=b"\x01\x2c"), p4r.Action.Param(param_id=2, value=b"\0")],
    )


def test_an_action_that_p4info_does_not_know_has_no_id(program):
    assert encode_action(program.info, ActionCall("features165")) == p4r.Action()


def test_actions_of_other_tables_and_of_none(decode, names):
    assert refusal(decode, names.action("learn")) == (
        "INVALID_ARGUMENT",
        f"{WHERE} has no action ingress.learn",
    )
    assert refusal(decode, p4r.Action(action_id=0xABC)) == (
        "INVALID_ARGUMENT",
        f"{WHERE} has no action 0xabc",
    )
    assert refusal(decode, p4r.Action()) == ("INVALID_ARGUMENT", f"{WHERE} has no action 0x0")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ([(1, b"\1")], "parameter queue of action ingress.prioritise is missing"),
        ([], "parameter port of action ingress.prioritise is missing"),
        ([(1, b"\1"), (2, b"\1"), (2, b"\1")], "a parameter of action ingress.prioritise is given twice"),
        ([(1, b"\1"), (2, b"\1"), (9, b"\1")], "action ingress.prioritise has no parameter with id 9"),
    ],
)
def test_parameters_missing_twice_and_unknown(decode, names, params, message):
    action = p4r.Action(action_id=names.id["prioritise"])
    for param_id, value in params:
        action.params.add(param_id=param_id, value=value)
    assert refusal(decode, action) == ("INVALID_ARGUMENT", f"{WHERE}: {message}")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"port": 511, "queue": 8}, "ingress.prioritise(queue): 0x8 does not fit into 3 bits"),
        ({"port": 512, "queue": 7}, "ingress.prioritise(port): 0x200 does not fit into 9 bits"),
        ({"port": 1, "queue": b""}, "ingress.prioritise(queue): the value is empty; zero is one zero byte"),
    ],
)
def test_arguments_that_do_not_fit(decode, names, args, message):
    assert refusal(decode, names.action("prioritise", **args)) == ("INVALID_ARGUMENT", f"{WHERE}, {message}")


@pytest.mark.parametrize(
    ("table", "action", "default", "message"),
    [
        ("mac", "drop", False, "table ingress.mac: ingress.drop may not be an entry's action"),
        ("acl", "forward", True, "table ingress.acl: ingress.forward may not be the default entry's action"),
    ],
)
def test_scopes(program, names, table, action, default, message):
    described = program.info.tables[names.id[table]]
    refused = refusal(check_scope, program.info, described, names.id[action], default=default)
    assert refused == ("PERMISSION_DENIED", message)
    check_scope(program.info, described, names.id[action], default=not default)
    check_scope(program.info, described, names.id["learn"], default=default)  # decode_action's to refuse

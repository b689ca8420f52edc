"""Actions: p4.v1.Action and the switch's ActionCall, one into the other."""

from __future__ import annotations

from collections.abc import Container

from finsy.proto import p4i, p4r
from grpc import StatusCode

from softswitch.entries import ActionCall
from softswitch.p4runtime.errors import P4Error, invalid
from softswitch.p4runtime.info import Info, Table
from softswitch.p4runtime.values import decode, encode

_ENTRY_SCOPES = (p4i.ActionRef.TABLE_AND_DEFAULT, p4i.ActionRef.TABLE_ONLY)
_DEFAULT_SCOPES = (p4i.ActionRef.TABLE_AND_DEFAULT, p4i.ActionRef.DEFAULT_ONLY)


def decode_action(info: Info, message: p4r.Action, allowed: Container[int], where: str) -> ActionCall:
    """Read an action whose id must be in ``allowed``; ``where`` names the table or profile in errors.

    Raises INVALID_ARGUMENT for another action, and for parameters missing, unknown, twice there or too wide.
    """
    if message.action_id not in allowed:
        name = info.actions[message.action_id].name if message.action_id in info.actions else ""
        raise invalid(f"{where} has no action {name or hex(message.action_id)}")
    action = info.action(message.action_id)
    given = {param.param_id: param.value for param in message.params}
    if len(given) != len(message.params):
        raise invalid(f"{where}: a parameter of action {action.name} is given twice")
    args = []
    for param in action.params:
        if param.id not in given:
            raise invalid(f"{where}: parameter {param.name} of action {action.name} is missing")
        args.append(decode(given.pop(param.id), param.width, f"{where}, {action.name}({param.name})"))
    if given:
        raise invalid(f"{where}: action {action.name} has no parameter with id {min(given)}")
    return ActionCall(action.name, tuple(args))


def encode_action(info: Info, call: ActionCall) -> p4r.Action:
    """Write an action; one that P4Info does not know has id 0 and no parameters."""
    action_id = info.action_ids.get(call.name)
    if action_id is None:
        return p4r.Action()
    message = p4r.Action(action_id=action_id)
    for param, value in zip(info.actions[action_id].params, call.args, strict=True):
        message.params.add(param_id=param.id, value=encode(value))
    return message


def check_scope(info: Info, table: Table, action_id: int, *, default: bool) -> None:
    """Raise PERMISSION_DENIED for an action that the table has only for the other kind of entry."""
    scope = table.scopes.get(action_id)
    if scope is not None and scope not in (_DEFAULT_SCOPES if default else _ENTRY_SCOPES):
        name = info.action(action_id).name
        place = "the default entry" if default else "an entry"
        raise P4Error(StatusCode.PERMISSION_DENIED, f"table {table.name}: {name} may not be {place}'s action")

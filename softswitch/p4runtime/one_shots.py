"""One-shot action selector programming (spec section of that name): a group written inside a table entry."""

from __future__ import annotations

from finsy.proto import p4r
from grpc import StatusCode

from softswitch.entries import OneShot
from softswitch.p4runtime.actions import decode_action, encode_action
from softswitch.p4runtime.errors import P4Error, invalid
from softswitch.p4runtime.info import Info, Table
from softswitch.p4runtime.values import PORT_BITS, decode, encode


def decode_one_shot(info: Info, table: Table, message: p4r.ActionProfileActionSet) -> OneShot:
    """Read an action set of ``table``. Raises INVALID_ARGUMENT, and UNIMPLEMENTED for modes of its own."""
    where = f"table {table.name}"
    if message.action_selection_mode or message.size_semantics:
        raise P4Error(StatusCode.UNIMPLEMENTED, f"{where}: a selection mode or size semantics per action set")
    actions = []
    for item in message.action_profile_actions:
        if item.weight < 1:
            raise invalid(f"{where}: an action's weight is at least 1, not {item.weight}")
        port = encode(item.watch) if item.watch > 0 else b""
        if item.watch_port:
            port = encode(decode(item.watch_port, PORT_BITS, f"{where}, watch_port"))
        actions.append((decode_action(info, item.action, table.scopes, where), item.weight, port))
    return OneShot(tuple(actions))


def encode_one_shot(info: Info, one_shot: OneShot) -> p4r.ActionProfileActionSet:
    """Write an action set as it was given, its ports in canonical form."""
    message = p4r.ActionProfileActionSet()
    for call, weight, port in one_shot.actions:
        item = message.action_profile_actions.add(action=encode_action(info, call), weight=weight)
        if port:
            item.watch_port = port
    return message

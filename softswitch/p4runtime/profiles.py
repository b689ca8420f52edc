"""ActionProfileMember and ActionProfileGroup (spec section of these names)."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4i, p4r

from softswitch.action_profiles import ActionProfile, Group, GroupMember
from softswitch.p4runtime.actions import decode_action, encode_action
from softswitch.p4runtime.errors import invalid
from softswitch.p4runtime.info import Info, find
from softswitch.p4runtime.program import Program
from softswitch.p4runtime.values import PORT_BITS, decode, encode


def write_member(program: Program, kind: int, message: p4r.ActionProfileMember) -> None:
    """Insert, modify or delete a member. Raises P4Error or TableError."""
    described, profile = _profile(program, message.action_profile_id)
    if not message.member_id:
        raise invalid(f"action profile {profile.name}: a member's id is not 0")
    if kind == p4r.Update.DELETE:
        profile.delete_member(message.member_id)
        return
    if not message.HasField("action"):
        raise invalid(f"action profile {profile.name}: a member must have an action")
    allowed = {scope for table_id in described.table_ids for scope in program.info.table(table_id).scopes}
    call = decode_action(program.info, message.action, allowed, f"action profile {profile.name}")
    if kind == p4r.Update.INSERT:
        profile.insert_member(message.member_id, call)
    else:
        profile.modify_member(message.member_id, call)


def read_members(program: Program, request: p4r.ActionProfileMember) -> Iterator[p4r.Entity]:
    """Yield a member, or all of a profile (member id 0), or all there are (profile id 0)."""
    for profile_id, profile in _profiles(program, request.action_profile_id):
        members = profile.members
        wanted = list(members) if not request.member_id else [i for i in (request.member_id,) if i in members]
        for member_id in wanted:
            action = members[member_id].action
            message = p4r.ActionProfileMember(action_profile_id=profile_id, member_id=member_id)
            if action is not None:
                message.action.CopyFrom(encode_action(program.info, action))
            yield p4r.Entity(action_profile_member=message)


def write_group(program: Program, kind: int, message: p4r.ActionProfileGroup) -> None:
    """Insert, modify or delete a group. Raises P4Error or TableError."""
    described, profile = _profile(program, message.action_profile_id)
    where = f"action profile {profile.name}, group {message.group_id}"
    if not message.group_id:
        raise invalid(f"action profile {profile.name}: a group's id is not 0")
    if kind == p4r.Update.DELETE:
        profile.delete_group(message.group_id)
        return
    if message.max_size < 0 or (described.max_group_size and message.max_size > described.max_group_size):
        raise invalid(f"{where}: max_size is at most {described.max_group_size}")
    members = [_decode_member(member, where) for member in message.members]
    if kind == p4r.Update.INSERT:
        profile.insert_group(message.group_id, members, message.max_size)
    else:
        if profile.group(message.group_id).max_size != message.max_size:
            raise invalid(f"{where}: max_size cannot be modified")
        profile.modify_group(message.group_id, members)


def read_groups(program: Program, request: p4r.ActionProfileGroup) -> Iterator[p4r.Entity]:
    """Yield a group, or all of a profile (group id 0), or all there are (profile id 0)."""
    for profile_id, profile in _profiles(program, request.action_profile_id):
        for group_id, group in list(profile.groups.items()):
            if request.group_id in (0, group_id):
                yield p4r.Entity(action_profile_group=_encode_group(profile_id, group))


def _decode_member(member: p4r.ActionProfileGroup.Member, where: str) -> GroupMember:
    if member.weight < 1:
        raise invalid(f"{where}: the weight of member {member.member_id} is at least 1, not {member.weight}")
    port = member.watch if member.watch > 0 else None
    if member.watch_port:
        port = decode(member.watch_port, PORT_BITS, f"{where}, watch_port")
    return GroupMember(member.member_id, member.weight, port)


def _encode_group(profile_id: int, group: Group) -> p4r.ActionProfileGroup:
    message = p4r.ActionProfileGroup(
        action_profile_id=profile_id, group_id=group.group_id, max_size=group.max_size
    )
    for member in group.members:
        item = message.members.add(member_id=member.member_id, weight=member.weight)
        if member.watch_port is not None:
            item.watch_port = encode(member.watch_port)
    return message


def _profile(program: Program, profile_id: int) -> tuple[p4i.ActionProfile, ActionProfile]:
    described = find(program.info.profiles, profile_id, "action profile")
    return described, program.pipeline.action_profiles[described.preamble.name]


def _profiles(program: Program, profile_id: int) -> Iterator[tuple[int, ActionProfile]]:
    info: Info = program.info
    for wanted in [profile_id] if profile_id else list(info.profiles):
        yield wanted, _profile(program, wanted)[1]

import pytest

from softswitch.action_profiles import ActionProfile, GroupMember
from softswitch.entries import ActionCall, ActionSpec, GroupRef, KeyField, MemberRef, OneShot
from softswitch.errors import Code, TableError
from softswitch.tables import Table


def profile_and_table(*, selector=True, size=4, max_group_size=0):
    profile = ActionProfile("p", size, selector=selector, max_group_size=max_group_size)
    table = Table(
        "t",
        [KeyField("k", "exact", 8)],
        [ActionSpec("set", 1, (8,))],
        10,
        ActionCall("set", (0,)),
        profile=profile,
    )
    profile.tables.append(table)
    for member in (1, 2, 3):
        profile.insert_member(member, ActionCall("set", (member,)))
    return profile, table


def fails(code, operation, *args):
    with pytest.raises(TableError) as error:
        operation(*args)
    assert error.value.code == code


def ids(choices):
    return [member.member_id for member in choices.choices]


def test_members_are_limited_and_unique_and_checked():
    profile, _ = profile_and_table()
    fails(Code.ALREADY_EXISTS, profile.insert_member, 1, ActionCall("set", (1,)))
    fails(Code.INVALID_ARGUMENT, profile.insert_member, 4, ActionCall("jump", ()))
    profile.insert_member(4, ActionCall("set", (4,)))
    fails(Code.RESOURCE_EXHAUSTED, profile.insert_member, 5, ActionCall("set", (1,)))
    fails(Code.NOT_FOUND, profile.modify_member, 9, ActionCall("set", (1,)))
    fails(Code.NOT_FOUND, profile.delete_member, 9)


def test_what_is_in_use_cannot_be_deleted():
    profile, table = profile_and_table()
    profile.insert_group(7, [GroupMember(2)])
    table.insert([1], MemberRef(1))
    table.insert([2], GroupRef(7))
    fails(Code.FAILED_PRECONDITION, profile.delete_member, 1)
    fails(Code.FAILED_PRECONDITION, profile.delete_member, 2)
    fails(Code.FAILED_PRECONDITION, profile.delete_group, 7)
    table.delete([2])
    profile.delete_group(7)
    profile.delete_member(2)
    table.modify([1], MemberRef(3))
    profile.delete_member(1)


def test_an_entry_needs_an_existing_member_or_group():
    _, table = profile_and_table()
    fails(Code.NOT_FOUND, table.insert, [1], MemberRef(9))
    fails(Code.NOT_FOUND, table.insert, [1], GroupRef(9))
    fails(Code.INVALID_ARGUMENT, table.insert, [1], ActionCall("set", (1,)))
    assert len(table) == 0


def test_weights_repeat_members_and_are_limited():
    profile, _ = profile_and_table(max_group_size=5)
    group = profile.insert_group(1, [GroupMember(1, 2), GroupMember(2, 3)])
    assert ids(group) == [1, 1, 2, 2, 2]
    fails(Code.RESOURCE_EXHAUSTED, profile.modify_group, 1, [GroupMember(1, 6)])
    fails(Code.INVALID_ARGUMENT, profile.modify_group, 1, [GroupMember(1, 0)])
    fails(Code.INVALID_ARGUMENT, profile.modify_group, 1, [GroupMember(1), GroupMember(1)])
    fails(Code.NOT_FOUND, profile.modify_group, 1, [GroupMember(9)])
    assert ids(group) == [1, 1, 2, 2, 2]
    fails(Code.RESOURCE_EXHAUSTED, profile.insert_group, 2, [GroupMember(1), GroupMember(2)], 1)


def test_members_that_watch_a_port_that_is_down_are_out():
    profile, table = profile_and_table()
    group = profile.insert_group(1, [GroupMember(1, watch_port=4), GroupMember(2, watch_port=5)])
    entry = table.insert(
        [1], OneShot(((ActionCall("set", (8,)), 1, b"\4"), (ActionCall("set", (9,)), 2, b"")))
    )
    profile.set_ports_down([4])
    assert ids(group) == [2]
    assert [m.call for m in entry.target.choices] == [(1, (9,))] * 2
    profile.set_ports_down([])
    assert ids(group) == [1, 2]
    assert len(entry.target.choices) == 3


def test_without_a_selector_there_are_no_groups():
    profile, table = profile_and_table(selector=False)
    fails(Code.INVALID_ARGUMENT, profile.insert_group, 1)
    fails(Code.INVALID_ARGUMENT, table.insert, [1], OneShot(((ActionCall("set", (1,)), 1, b""),)))

"""Action profile members and groups, and one-shot action sets."""

import time

import pytest
from finsy.proto import p4r

from tests.softswitch.p4runtime.helpers import RpcFailedError, delete, insert, modify

INVALID, NOT_FOUND, EXISTS, FULL, PRECONDITION, UNIMPLEMENTED = 3, 5, 6, 8, 9, 12


@pytest.fixture
def build(names):
    return Build(names)


class Build:
    def __init__(self, names):
        self.names = names
        self.profile = names.id["spreader"]

    def member(self, number, port=1, profile="spreader"):
        return p4r.ActionProfileMember(
            action_profile_id=self.names.id[profile],
            member_id=number,
            action=self.names.action("forward", port=port),
        )

    def group(self, number, *members, max_size=0):
        message = p4r.ActionProfileGroup(action_profile_id=self.profile, group_id=number, max_size=max_size)
        for member, weight, port in members:
            message.members.add(member_id=member, weight=weight, watch_port=port)
        return message

    def entry(self, table="spread", **action):
        message = self.names.entry(table, match={"dst": 1})
        for name, value in action.items():
            setattr(message.action, name, value)
        return message


def code(client, update):
    with pytest.raises(RpcFailedError) as caught:
        client.write(update)
    return caught.value.codes[0]


def test_members(client, build):
    one, two = build.member(1), build.member(2, port=2)
    client.write(insert(action_profile_member=one), insert(action_profile_member=two))
    everything = p4r.Entity(action_profile_member=p4r.ActionProfileMember())
    assert client.read(everything) == [one, two]
    assert client.read(p4r.Entity(action_profile_member=two)) == [two]
    assert code(client, insert(action_profile_member=one)) == EXISTS
    changed = build.member(1, port=7)
    client.write(modify(action_profile_member=changed))
    assert client.read(everything) == [changed, two]
    client.write(delete(action_profile_member=two))
    assert client.read(everything) == [changed]
    assert code(client, delete(action_profile_member=two)) == NOT_FOUND
    assert code(client, modify(action_profile_member=two)) == NOT_FOUND
    assert code(client, insert(action_profile_member=build.member(0))) == INVALID
    without = build.member(3)
    without.ClearField("action")
    assert code(client, insert(action_profile_member=without)) == INVALID
    learn = build.member(3)
    learn.action.action_id = build.names.id["learn"]
    assert code(client, insert(action_profile_member=learn)) == INVALID


def test_a_full_profile(client, build):
    client.write(*[insert(action_profile_member=build.member(i, profile="nexts")) for i in range(1, 9)])
    assert code(client, insert(action_profile_member=build.member(9, profile="nexts"))) == FULL


def test_groups(client, build):
    client.write(*[insert(action_profile_member=build.member(i)) for i in (1, 2)])
    group = build.group(1, (1, 1, b""), (2, 3, b"\x05"), max_size=8)
    client.write(insert(action_profile_group=group))
    everything = p4r.Entity(action_profile_group=p4r.ActionProfileGroup())
    [read] = client.read(everything)
    assert [(m.member_id, m.weight, m.watch_port) for m in read.members] == [(1, 1, b""), (2, 3, b"\x05")]
    assert (read.group_id, read.max_size) == (1, 8)
    assert code(client, insert(action_profile_group=group)) == EXISTS
    assert code(client, delete(action_profile_member=build.member(1))) == PRECONDITION
    client.write(modify(action_profile_group=build.group(1, (2, 1, b""), max_size=8)))
    assert [m.member_id for m in client.read(everything)[0].members] == [2]
    assert code(client, modify(action_profile_group=build.group(1, max_size=9))) == INVALID
    assert code(client, insert(action_profile_group=build.group(2, (9, 1, b"")))) == NOT_FOUND
    assert code(client, insert(action_profile_group=build.group(2, (1, 0, b"")))) == INVALID
    assert code(client, insert(action_profile_group=build.group(2, (1, 1, b""), (1, 1, b"")))) == INVALID
    assert code(client, insert(action_profile_group=build.group(2, (1, 9, b""), max_size=8))) == FULL
    assert code(client, insert(action_profile_group=build.group(0))) == INVALID
    client.write(delete(action_profile_group=build.group(1)), delete(action_profile_member=build.member(2)))
    assert client.read(everything) == []


def test_entries_that_refer_to_members_and_groups(client, build):
    client.write(insert(action_profile_member=build.member(1)))
    client.write(insert(action_profile_group=build.group(5, (1, 1, b""))))
    assert code(client, insert(table_entry=build.entry(action_profile_member_id=2))) == NOT_FOUND
    entry = build.entry(action_profile_group_id=5)
    client.write(insert(table_entry=entry))
    request = p4r.Entity(table_entry=p4r.TableEntry(table_id=build.names.id["spread"]))
    assert client.read(request) == [entry]
    assert code(client, delete(action_profile_group=build.group(5))) == PRECONDITION
    member = build.entry(action_profile_member_id=1)
    client.write(modify(table_entry=member))
    assert client.read(request) == [member]
    client.write(delete(action_profile_group=build.group(5)))
    assert code(client, delete(action_profile_member=build.member(1))) == PRECONDITION
    direct = build.names.entry("spread", "forward", args={"port": 1}, match={"dst": 1})
    assert code(client, modify(table_entry=direct)) == INVALID
    group = build.entry(table="shared_next", action_profile_group_id=1)
    assert code(client, insert(table_entry=group)) in (INVALID, NOT_FOUND)


def one_shot(build, *shares):
    entry = build.names.entry("spread", match={"dst": 1})
    for port, weight, watch in shares:
        entry.action.action_profile_action_set.action_profile_actions.add(
            action=build.names.action("forward", port=port), weight=weight, watch_port=watch
        )
    return entry


def test_one_shots_are_read_as_they_were_written(client, build):
    entry = one_shot(build, (1, 1, b"\x01"), (2, 2, b"\x02"))
    client.write(insert(table_entry=entry))
    [read] = client.read(p4r.Entity(table_entry=p4r.TableEntry(table_id=build.names.id["spread"])))
    actions = read.action.action_profile_action_set.action_profile_actions
    assert [(a.action.params[0].value, a.weight, a.watch_port) for a in actions] == [
        (b"\x01", 1, b"\x01"),
        (b"\x02", 2, b"\x02"),
    ]
    assert client.read(p4r.Entity(action_profile_member=p4r.ActionProfileMember())) == []


def test_one_shots_are_checked(client, build):
    assert code(client, insert(table_entry=one_shot(build, (1, 0, b"")))) == INVALID
    mode = one_shot(build, (1, 1, b""))
    mode.action.action_profile_action_set.action_selection_mode = p4r.ActionProfileActionSet.RANDOM
    assert code(client, insert(table_entry=mode)) == UNIMPLEMENTED


def wait_for_scan():
    time.sleep(0.6)


def test_members_whose_port_is_down_are_left_out(client, build, service):
    _, dataplane, device = service
    client.write(insert(table_entry=one_shot(build, (1, 1, b"\x01"), (2, 1, b"\x02"))))
    sent = []
    device.running.pipeline.transmit = lambda port, *_: sent.append(port)
    client.write(
        modify(table_entry=build.names.entry("mac", "forward", args={"port": 9}, is_default_action=True))
    )
    frame = bytes(12) + b"\x08\x00\x45" + bytes(15) + (1).to_bytes(4, "big")
    frames = [frame[:18] + number.to_bytes(2, "big") + frame[20:] for number in range(64)]
    dataplane._process(frames, 1)
    assert set(sent) == {1, 2}
    sent.clear()
    dataplane.ports_down = lambda: frozenset([1])  # there are no real ports under this fixture
    wait_for_scan()
    dataplane._process(frames, 1)
    assert set(sent) == {2}
    sent.clear()
    dataplane.ports_down = frozenset
    wait_for_scan()
    dataplane._process(frames, 1)
    assert set(sent) == {1, 2}

"""What the writer does with a switch's time; what it does with its refusals is in topics/."""

import asyncio
import time
from ipaddress import IPv4Address

import pytest

from controlplane.model import FiveTuple
from controlplane.southbound import Desired, Fabric, FlowEntry, GroupLevel, Result
from controlplane.southbound.diff import Change
from controlplane.southbound.encode import MAX_UPDATES, Encoder
from controlplane.southbound.tables import Call
from controlplane.southbound.writer import _UNDER_WAY
from tests.controlplane.southbound.helpers import PROGRAM, connected, flow, flow_key
from tests.controlplane.southbound.proxy import Proxy


async def test_the_next_writes_are_made_while_the_switch_works_on_the_last(switch, setup, monkeypatch):
    """Updates are noted as they are made, and Writes as they are passed on, 100 ms after they came."""
    encoded = Encoder.encoded
    history = []

    def noted(self, change):
        if change.table == "flow_group_v4":
            history.append("made")
        return encoded(self, change)

    def arrived(write):
        history.append("arrived")
        return write

    flows = {flow(number): FlowEntry(1, number) for number in range(1, 12 * MAX_UPDATES + 1)}
    async with Proxy(switch) as proxy, Fabric([proxy.target()], PROGRAM) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": Desired(setup, {}, {1: GroupLevel(3)})})
        monkeypatch.setattr(Encoder, "encoded", noted)
        proxy.change_write, proxy.delay_s = arrived, 0.1
        outcome = (await fabric.apply({"S1": Desired(setup, flows, {1: GroupLevel(3)})}))["S1"]
        assert (outcome.result, outcome.updates) == (Result.APPLIED, 12 * MAX_UPDATES)
        assert fabric.held("S1").flows == flows
    made_by = [history[:at].count("made") for at, event in enumerate(history) if event == "arrived"]
    assert made_by[0] == _UNDER_WAY * MAX_UPDATES, "by the time that the first is passed on, others are made"
    assert all(made <= (number + _UNDER_WAY + 1) * MAX_UPDATES for number, made in enumerate(made_by)), (
        "and not all"
    )
    assert proxy.most_under_way == _UNDER_WAY


async def test_it_is_read_back_only_when_all_writes_have_been_answered(switch, setup, stranger, onlooker):
    """The first of two Writes under way shows drift; the second takes long, and must not be missed."""
    flows = {flow(number): FlowEntry(1, number) for number in range(1, 2 * MAX_UPDATES + 1)}
    async with Proxy(switch) as proxy, Fabric([proxy.target()], PROGRAM) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": Desired(setup, {}, {1: GroupLevel(3)})})
        await stranger(fabric, Change("flow_group_v4", flow_key(5), Call("set_group", (7, 7)), replace=False))
        before = len(proxy.calls)
        proxy.delay_of = lambda write: 0.3 if len(write.updates) == MAX_UPDATES and not drifts(write) else 0.0
        outcome = (await fabric.apply({"S1": Desired(setup, flows, {1: GroupLevel(3)})}))["S1"]
        assert (outcome.result, outcome.refused) == (Result.APPLIED, 0)
        assert fabric.held("S1").flows == flows
        assert (await onlooker(switch).flows())[5] == (1, 5)
        after = [len(write.updates) for method, _, write in proxy.calls[before:] if method == "Write"]
        assert after == [MAX_UPDATES, MAX_UPDATES, 1], (
            "what the second wrote was read back, and is not written again"
        )


def drifts(write):
    """Whether the row that somebody else wrote is among the updates."""
    return any(b"\x03\xed" in match.exact.value for update in write.updates  # port 1005
               for match in update.entity.table_entry.match)  # fmt: skip


async def test_writing_is_given_up_in_the_middle_and_begun_anew(switch, setup, desire, onlooker):
    """The session ends while one Write is under way and the next is ready: nothing is left hanging."""
    flows = {flow(number): FlowEntry(1, number) for number in range(1, 3001)}
    async with Proxy(switch) as proxy:
        async with Fabric([proxy.target()], PROGRAM) as fabric:
            await connected(fabric)
            proxy.delay_s = 0.2
            task = asyncio.create_task(fabric.apply({"S1": Desired(setup, flows, {1: GroupLevel(3)})}))
            while not any(len(request.updates) == MAX_UPDATES for request in proxy.writes()):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert (await task)["S1"].result is Result.FAILED
        proxy.delay_s = 0.0
        async with Fabric([proxy.target()], PROGRAM) as fabric:
            await connected(fabric)
            assert (await fabric.apply({"S1": desire(4)}))["S1"].result is Result.APPLIED
            assert len(await onlooker(switch).flows()) == 1


def one_after_another(seconds):
    """Return what delays full Writes as a switch that works on them one by one, ``seconds`` each."""
    free_at = 0.0

    def delay(write):
        nonlocal free_at
        now = time.monotonic()
        free_at = max(now, free_at) + (seconds if len(write.updates) == MAX_UPDATES else 0.0)
        return free_at - now

    return delay


async def test_a_switch_that_takes_writes_one_by_one_has_its_deadline_for_each(switch, setup):
    """With six under way the last would take 1.2 s; each by itself takes 0.2 s, and the deadline is 0.6 s."""
    flows = {flow(number): FlowEntry(1, number) for number in range(1, 9 * MAX_UPDATES + 1)}
    async with Proxy(switch) as proxy, Fabric([proxy.target()], PROGRAM, deadline_s=0.6) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": Desired(setup, {}, {1: GroupLevel(3)})})
        proxy.delay_of = one_after_another(0.2)
        outcome = (await fabric.apply({"S1": Desired(setup, flows, {1: GroupLevel(3)})}))["S1"]
        assert (outcome.result, outcome.error, outcome.updates) == (Result.APPLIED, None, len(flows))
        assert 1.7 < outcome.total_s < 4.0
        assert fabric.held("S1").flows == flows
        assert fabric.status()["S1"].sessions == 1


async def test_a_slow_switch_has_one_write_at_a_time_so_that_a_ranking_waits_for_one(switch, setup, onlooker):
    flows = {flow(number): FlowEntry(1, number) for number in range(1, 14 * MAX_UPDATES + 1)}
    async with Proxy(switch) as proxy, Fabric([proxy.target()], PROGRAM) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": Desired(setup, {}, {1: GroupLevel(3)})})
        proxy.delay_of = one_after_another(0.3)
        first = asyncio.create_task(fabric.apply({"S1": Desired(setup, flows, {1: GroupLevel(3)})}))
        while len(full := [write for write in proxy.writes() if len(write.updates) == MAX_UPDATES]) < 8:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        outcome = (await fabric.apply({"S1": Desired(setup, flows, {1: GroupLevel(5)})}))["S1"]
        assert (await first)["S1"].result is Result.SUPERSEDED
        assert len(full) == 8
        assert outcome.flip_s < 0.6, "it waited for the one under way, 0.3 s, not for six"
        assert outcome.result is Result.APPLIED
        assert await onlooker(switch).levels() == {1: 5}
        assert fabric.held("S1").flows == flows


async def test_back_to_what_was_before_a_change_that_was_broken_off(switch, setup, onlooker):
    """The same mapping object as before: but the switch holds half of another by now."""
    before = {flow(number): FlowEntry(1, number) for number in range(1, 12 * MAX_UPDATES + 1)}
    between = {each: FlowEntry(1, entry.slot + 10_000) for each, entry in before.items()}
    groups = {1: GroupLevel(3)}
    async with Proxy(switch) as proxy, Fabric([proxy.target()], PROGRAM) as fabric:
        await connected(fabric)
        assert (await fabric.apply({"S1": Desired(setup, before, groups)}))["S1"].result is Result.APPLIED
        proxy.delay_of = one_after_another(0.1)
        broken_off = asyncio.create_task(fabric.apply({"S1": Desired(setup, between, groups)}))
        await asyncio.sleep(0.3)
        outcome = (await fabric.apply({"S1": Desired(setup, before, groups)}))["S1"]
        assert (await broken_off)["S1"].result is Result.SUPERSEDED
        assert outcome.result is Result.APPLIED
        assert MAX_UPDATES <= outcome.updates < len(before)
        assert fabric.held("S1").flows == before
    held = await onlooker(switch).flows()
    assert held == {number: (1, number) for number in range(1, 12 * MAX_UPDATES + 1)}


@pytest.mark.parametrize("entry", [None, FlowEntry(1, 9)], ids=["gone", "mended"])
async def test_a_refused_flow_is_forgotten_once_it_is_gone_or_taken(switch, setup, entry):
    groups = {1: GroupLevel(3)}
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        wrong = {flow(1): FlowEntry(70_000, 1), flow(2): FlowEntry(1, 2)}  # groups have 16 bits
        assert (await fabric.apply({"S1": Desired(setup, wrong, groups)}))["S1"].refused == 1
        assert fabric.status()["S1"].refused == {"flow_group_v4": 1}
        again = (await fabric.apply({"S1": Desired(setup, dict(wrong), groups)}))["S1"]
        assert (again.refused, again.updates) == (1, 0), "it is still wanted, and not tried again"
        right = {flow(2): FlowEntry(1, 2)} | ({} if entry is None else {flow(1): entry})
        outcome = (await fabric.apply({"S1": Desired(setup, right, groups)}))["S1"]
        assert (outcome.result, outcome.refused) == (Result.APPLIED, 0)
        assert (fabric.status()["S1"].refused, fabric.status()["S1"].error) == ({}, None)
        assert fabric.held("S1").flows == right


async def test_a_queue_pair_of_several_flows_is_one_row_the_last_of_them(switch, setup):
    """More than a Write of pairs, each of two flows with different source ports, far from each other."""

    def pair(number, source_port):
        return FiveTuple(IPv4Address("10.0.1.1"), IPv4Address("10.0.2.2"), 17, source_port, 4791, number)

    count = MAX_UPDATES + 100
    flows = {pair(n, 50_000): FlowEntry(1, n) for n in range(1, count + 1)}
    flows |= {pair(n, 50_001): FlowEntry(1, n + 1000) for n in range(1, count + 1)}
    async with Proxy(switch) as proxy, Fabric([proxy.target()], PROGRAM) as fabric:
        await connected(fabric)
        reads = len(proxy.calls) - len(proxy.writes())
        outcome = (await fabric.apply({"S1": Desired(setup, flows, {1: GroupLevel(3)})}))["S1"]
        assert (outcome.result, outcome.refused) == (Result.APPLIED, 0)
        held = fabric.held("S1").flows
        assert held == {pair(n, 0): FlowEntry(1, n + 1000) for n in range(1, count + 1)}
        assert sum(len(write.updates) for write in proxy.writes()) == outcome.updates
        assert len(proxy.calls) - len(proxy.writes()) == reads, "nothing showed drift"

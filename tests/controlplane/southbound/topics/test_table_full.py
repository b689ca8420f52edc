"""Table full: who keeps a place, what is counted and shown, and how it recovers."""

import asyncio
from collections import Counter
from dataclasses import replace
from ipaddress import ip_network

import pytest

from controlplane.southbound import Desired, Fabric, FlowEntry, GroupLevel, NextHop, Result
from controlplane.southbound import writer as writer_module
from controlplane.southbound.diff import Change
from controlplane.southbound.tables import Call
from tests.controlplane.southbound.helpers import PROGRAM, connected, flow, flow_key
from tests.controlplane.southbound.proxy import Proxy


async def test_table_full_of_routes_is_counted_shown_and_the_rest_applied(switch, desire, onlooker, setup):
    routes = {ip_network(f"fd00:{n:x}::/32"): (NextHop(3, "02:00:00:00:00:03"),) for n in range(1, 1101)}
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        wanted = desire(1, 2, setup=replace(setup, routes=routes))
        outcome = (await fabric.apply({"S1": wanted}))["S1"]
        status = fabric.status()["S1"]
        installed = len(await onlooker(switch).read("ipv6_lpm"))
        assert installed == PROGRAM.constants["ROUTES_V6"] == 1024
        assert (outcome.result, outcome.refused) == (Result.APPLIED, 1100 - installed)
        assert status.refused == {"ipv6_lpm": 1100 - installed}
        assert status.error.startswith("ipv6_lpm: ")
        assert await onlooker(switch).levels() == {1: 1, 2: 2}
        # What was refused is not tried over and over ...
        assert (await fabric.apply({"S1": wanted}))["S1"].updates == 0
        # ... until there is room.
        fewer = dict(list(routes.items())[100:])
        outcome = (await fabric.apply({"S1": desire(1, 2, setup=replace(setup, routes=fewer))}))["S1"]
        outcome = (await fabric.apply({"S1": desire(1, 2, setup=replace(setup, routes=dict(fewer)))}))["S1"]
        assert (outcome.refused, fabric.status()["S1"].error) == (0, None)
        assert len(await onlooker(switch).read("ipv6_lpm")) == 1000


ROOM = 24
"""Rows that flow_group_v4 of these tests' switches has room for."""


def crowd(setup, jobs, flows_each=10):
    """As many jobs, numbered from 1, one group each, with flows of their own."""
    members = {
        flow(10 * group + number): FlowEntry(group, 10 * group + number)
        for group in jobs
        for number in range(flows_each)
    }
    return Desired(setup, members, {group: GroupLevel(3) for group in jobs})


async def holders(onlooker, switch):
    """Group -> flows that the switch holds entries of."""
    return Counter(group for group, _ in (await onlooker(switch).flows()).values())


@pytest.mark.parametrize("p4info_too", [False, True], ids=["the size is a wish", "the size is true"])
async def test_table_full_of_flows_the_lowest_rates_keep_their_entries(
    switch, smaller, setup, onlooker, p4info_too
):
    """Whether the switch refuses them or P4Info says that it would: the same flows have entries."""
    async with Fabric([switch.target()], smaller(flow_group_v4=ROOM, p4info_too=p4info_too)) as fabric:
        await connected(fabric)
        fabric.prefer({1: 0.9, 2: 0.3, 3: 0.5, 4: 0.1})
        outcome = (await fabric.apply({"S1": crowd(setup, (1, 2, 3, 4))}))["S1"]
        assert (outcome.result, outcome.refused) == (Result.APPLIED, 40 - ROOM)
        assert await holders(onlooker, switch) == {4: 10, 2: 10, 3: 4}
        status = fabric.status()["S1"]
        assert status.left_out == {3: 6, 1: 10}
        assert status.refused == {"flow_group_v4": 16}
        assert status.error.startswith("flow_group_v4: no room for 16 of 40 flows")
        assert await onlooker(switch).levels() == {1: 3, 2: 3, 3: 3, 4: 3}


async def test_table_full_who_holds_entries_does_not_flap(switch, smaller, setup, onlooker, monkeypatch):
    """R that goes up and down by less than the margin moves no entry; R that falls behind for good does."""
    monkeypatch.setattr(writer_module, "_REVIEW_S", (0.02, 0.02))
    async with Fabric([switch.target()], smaller(flow_group_v4=ROOM)) as fabric:
        await connected(fabric)
        wanted = crowd(setup, (1, 2, 3))
        fabric.prefer({1: 0.50, 2: 0.50, 3: 0.51})
        await fabric.apply({"S1": wanted})
        before = await holders(onlooker, switch)
        assert before == {1: 10, 2: 10, 3: 4}
        updates = 0
        for turn in range(30):
            fabric.prefer({1: 0.50 + 0.04 * (turn % 2), 2: 0.52, 3: 0.51})
            updates += (await fabric.apply({"S1": wanted}))["S1"].updates
            await asyncio.sleep(0.01)
        assert await holders(onlooker, switch) == before
        assert updates <= 30 * 6, "only what is tried beyond what the table took may be written"
        fabric.prefer({1: 0.9, 2: 0.5, 3: 0.5})
        for _ in range(100):
            if await holders(onlooker, switch) == {1: 4, 2: 10, 3: 10}:
                break
            await asyncio.sleep(0.05)
        assert await holders(onlooker, switch) == {1: 4, 2: 10, 3: 10}


async def test_table_full_recovers_when_flows_go(switch, smaller, setup, onlooker):
    async with Fabric([switch.target()], smaller(flow_group_v4=ROOM)) as fabric:
        await connected(fabric)
        fabric.prefer({1: 0.1, 2: 0.2, 3: 0.3})
        await fabric.apply({"S1": crowd(setup, (1, 2, 3))})
        assert fabric.status()["S1"].left_out == {3: 6}
        outcome = (await fabric.apply({"S1": crowd(setup, (2, 3))}))["S1"]
        assert outcome.refused == 0
        assert await holders(onlooker, switch) == {2: 10, 3: 10}
        status = fabric.status()["S1"]
        assert (status.left_out, status.refused, status.error) == ({}, {}, None)


async def test_table_full_recovers_when_others_make_room(
    switch, smaller, setup, onlooker, stranger, monkeypatch, eventually
):
    """Rows that somebody else puts in and takes out again: nobody tells, so more is tried now and then."""
    monkeypatch.setattr(writer_module, "_REVIEW_S", (0.05, 0.1))
    foreign = [Change("flow_group_v4", flow_key(900 + n), Call("set_group", (9, 9)), False) for n in range(4)]
    async with Fabric([switch.target()], smaller(flow_group_v4=ROOM)) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": crowd(setup, (1, 2))})
        for change in foreign:
            await stranger(fabric, change)
        outcome = (await fabric.apply({"S1": crowd(setup, (1, 2, 3))}))["S1"]
        assert outcome.refused == 30 + len(foreign) - ROOM
        assert fabric.status()["S1"].left_out == {3: 10}
        for change in foreign:
            await stranger(fabric, change._replace(call=None))

        async def recovered():
            return fabric.status()["S1"].left_out == {3: 6}

        await eventually(recovered)
        assert await holders(onlooker, switch) == {1: 10, 2: 10, 3: 4}


@pytest.mark.parametrize("p4info_too", [False, True], ids=["the size is a wish", "the size is true"])
async def test_table_full_of_groups_ranks_the_lowest_rates(switch, smaller, setup, onlooker, p4info_too):
    """Each group has a row in both banks; flows of groups without one have no entry either."""
    async with Fabric([switch.target()], smaller(group_level=6, p4info_too=p4info_too)) as fabric:
        await connected(fabric)
        fabric.prefer({1: 0.9, 2: 0.3, 3: 0.5, 4: 0.1})
        wanted = crowd(setup, (1, 2, 3, 4), 2)
        outcome = (await fabric.apply({"S1": wanted}))["S1"]
        # Where nobody says it, the table is found full only when the second bank is written.
        assert (outcome.result, outcome.refused) == (Result.APPLIED, 2 if p4info_too else 0)
        for level in (2, 5):
            await fabric.apply(
                {"S1": replace(wanted, groups=dict.fromkeys(wanted.groups, GroupLevel(level)))}
            )
            assert await onlooker(switch).levels() == {2: level, 3: level, 4: level}
            assert await holders(onlooker, switch) == {2: 2, 3: 2, 4: 2}


async def test_table_full_more_is_tried_once_though_newer_wishes_go_before_it(
    switch, smaller, setup, monkeypatch
):
    monkeypatch.setattr(writer_module, "_REVIEW_S", (30.0, 30.0))
    async with (
        Proxy(switch) as proxy,
        Fabric([proxy.target()], smaller(flow_group_v4=ROOM)) as fabric,
    ):
        await connected(fabric)
        assert (await fabric.apply({"S1": crowd(setup, (1, 2, 3))}))["S1"].refused == 30 - ROOM
        writer, tried = fabric._sessions["S1"]._writer, []
        try_more = writer.room.try_more
        monkeypatch.setattr(writer.room, "try_more", lambda: (tried.append(1), try_more()))
        writer.batch, writer._review_at = 2, 0.0  # it is due
        proxy.delay_s = 0.05
        tasks = []
        for turn in range(1, 6):
            wanted = crowd(setup, (1, 2, 3))
            moved = {each: FlowEntry(entry.group, entry.slot + turn) for each, entry in wanted.flows.items()}
            tasks.append(asyncio.create_task(fabric.apply({"S1": replace(wanted, flows=moved)})))
            await asyncio.sleep(0.12)
        outcomes = [(await task)["S1"].result for task in tasks]
        assert outcomes[0] is Result.SUPERSEDED
        assert outcomes[-1] is Result.APPLIED
        assert len(tried) == 1
        assert fabric.held("S1").flows.items() <= moved.items()
        assert 29 < writer.review_in_s() <= 30, "and it is due again after the next pause"

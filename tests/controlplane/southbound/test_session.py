"""Bank flips, reconciliation and refusals, on real switches."""

import asyncio
from dataclasses import replace
from ipaddress import IPv4Address, ip_network

import grpc
import pytest
from finsy.proto import U128, p4r, p4r_grpc

import p4src
from controlplane.model import FiveTuple
from controlplane.southbound import Desired, Fabric, FlowEntry, GroupLevel, NextHop, Result, SwitchError
from controlplane.southbound import connection as connection_module
from controlplane.southbound import session as session_module
from controlplane.southbound.diff import Change
from controlplane.southbound.tables import Call

PROGRAM = p4src.program("v1model")


def flow_key(number):
    return (0x0A000101, 0x0A000202, 6, 1000 + number, 29500)


@pytest.fixture
def stranger(switch):
    """Write something with the controller's own election id, but without its knowing."""

    async def write(fabric, change):
        session = fabric._sessions["S1"]
        async with grpc.aio.insecure_channel(switch.address) as channel:
            await p4r_grpc.P4RuntimeStub(channel).Write(
                p4r.WriteRequest(
                    device_id=switch.device_id,
                    election_id=U128.encode(session._election.id),
                    updates=[session._encoder.update(change)],
                )
            )

    return write


async def test_a_ranking_is_installed_and_flipped(switch, desire, onlooker):
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await asyncio.wait_for(fabric.connected(), 20)
        first = (await fabric.apply({"S1": desire(6, 5, 0)}))["S1"]
        assert (first.result, first.refused, first.error) == (Result.APPLIED, 0, None)
        assert 0 < first.flip_s <= first.total_s
        assert await onlooker(switch).levels() == {1: 6, 2: 5, 3: 0}
        assert await onlooker(switch).flows() == {1: (1, 1), 2: (2, 2), 3: (3, 3)}
        bank = await onlooker(switch).bank()
        second = (await fabric.apply({"S1": desire(0, 5, 6)}))["S1"]
        assert await onlooker(switch).bank() == 1 - bank
        assert await onlooker(switch).levels() == {1: 0, 2: 5, 3: 6}
        assert second.updates == 4  # all three groups are new to that bank, and the flip
        third = (await fabric.apply({"S1": desire(0, 4, 6)}))["S1"]
        assert await onlooker(switch).levels() == {1: 0, 2: 4, 3: 6}
        assert third.updates == 4  # the bank held 6, 5, 0
        again = (await fabric.apply({"S1": desire(0, 4, 6)}))["S1"]
        assert (again.result, again.updates, again.flip_s) == (Result.APPLIED, 0, None)


async def test_flows_and_groups_that_are_gone_are_deleted(switch, desire, onlooker):
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await asyncio.wait_for(fabric.connected(), 20)
        await fabric.apply({"S1": desire(1, 2, 3)})
        await fabric.apply({"S1": desire(3)})
        assert await onlooker(switch).levels() == {1: 3}
        assert await onlooker(switch).flows() == {1: (1, 1)}
        assert {entry.match["group"] for entry in await onlooker(switch).read("group_level")} == {1}
        assert fabric.status()["S1"].entries["flow_group_v4"] == 1


async def test_reconcile_by_value_writes_only_the_difference(switch, desire, onlooker):
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await asyncio.wait_for(fabric.connected(), 20)
        await fabric.apply({"S1": desire(1, 2, 3)})
        await fabric.apply({"S1": desire(2, 2, 3)})
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await asyncio.wait_for(fabric.connected(), 20)
        assert fabric.status()["S1"].pipeline_pushes == 0
        held = fabric.held("S1")
        assert held.groups == {1: GroupLevel(2), 2: GroupLevel(2), 3: GroupLevel(3)}
        assert held.flows == desire(1, 2, 3).flows
        assert (await fabric.apply({"S1": desire(2, 2, 3)}))["S1"].updates == 0
        # The idle bank was read back too: it still holds 1, 2, 3, so that only the flip is left to write.
        assert (await fabric.apply({"S1": desire(1, 2, 3)}))["S1"].updates == 1
        assert await onlooker(switch).levels() == {1: 1, 2: 2, 3: 3}


async def test_a_controller_that_knows_nothing_yet_leaves_the_ranking_alone(switch, desire, onlooker, setup):
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await asyncio.wait_for(fabric.connected(), 20)
        await fabric.apply({"S1": desire(1, 2, 3)})
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await asyncio.wait_for(fabric.connected(), 20)
        outcome = (await fabric.apply({"S1": Desired(replace(setup, burst_gap_us=777))}))["S1"]
        assert outcome.updates == 1
        assert await onlooker(switch).levels() == {1: 1, 2: 2, 3: 3}
        assert len(await onlooker(switch).flows()) == 3


async def test_death_in_the_middle_of_a_re_ranking_leaves_the_old_one_whole(
    switch, desire, onlooker, monkeypatch
):
    """The first controller's session dies between two writes into the idle bank; the next one finishes."""
    levels, turned = range(7), range(6, -1, -1)
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await asyncio.wait_for(fabric.connected(), 20)
        await fabric.apply({"S1": desire(*levels)})
        bank = await onlooker(switch).bank()
        writes = 0
        write = connection_module.Connection.write

        async def dying_write(self, updates):
            nonlocal writes
            writes += 1
            if writes == 3:
                raise SwitchError("killed here")
            return await write(self, updates)

        with monkeypatch.context() as patch:
            patch.setattr(connection_module.Connection, "write", dying_write)
            fabric._sessions["S1"]._batch = 2
            outcome = (await fabric.apply({"S1": desire(*turned)}))["S1"]
            assert (outcome.result, outcome.error, outcome.flip_s) == (Result.FAILED, "killed here", None)
            fabric._sessions["S1"]._desired = None  # this controller is dead
    assert await onlooker(switch).bank() == bank
    assert await onlooker(switch).levels() == {group: group - 1 for group in range(1, 8)}
    idle = {e.match["group"] for e in await onlooker(switch).read("group_level") if e.match["bank"] != bank}
    assert len(idle) == 4, "the test must have died half-way"
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await asyncio.wait_for(fabric.connected(), 20)
        outcome = (await fabric.apply({"S1": desire(*turned)}))["S1"]
        assert outcome.updates == 3 + 1  # what was missing in the idle bank, and the flip
        assert await onlooker(switch).levels() == {group: 7 - group for group in range(1, 8)}


async def test_the_newest_of_many_wins_and_none_piles_up(switch, desire, onlooker):
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await asyncio.wait_for(fabric.connected(), 20)
        rounds = [asyncio.create_task(fabric.apply({"S1": desire(turn % 7, 3)})) for turn in range(60)]
        results = [(await each)["S1"].result for each in rounds]
        assert results[-1] is Result.APPLIED
        assert results.count(Result.SUPERSEDED) >= 55
        assert set(results) == {Result.APPLIED, Result.SUPERSEDED}
        assert await onlooker(switch).levels() == {1: 59 % 7, 2: 3}


async def test_a_new_ranking_does_not_wait_for_many_flows(switch, desire, onlooker, setup):
    many = desire(*([3] * 3000))
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await asyncio.wait_for(fabric.connected(), 20)
        first = asyncio.create_task(fabric.apply({"S1": many}))
        while not fabric.status()["S1"].entries["flow_group_v4"]:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.001)
        second = await fabric.apply(
            {"S1": Desired(setup, many.flows, dict.fromkeys(many.groups, GroupLevel(4)))}
        )
        assert (await first)["S1"].result is Result.SUPERSEDED
        assert second["S1"].result is Result.APPLIED
        assert set((await onlooker(switch).levels()).values()) == {4}
        assert len(await onlooker(switch).flows()) == 3000


async def test_table_full_is_counted_shown_and_the_rest_applied(switch, desire, onlooker, setup):
    routes = {ip_network(f"fd00:{n:x}::/32"): (NextHop(3, "02:00:00:00:00:03"),) for n in range(1, 1101)}
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await asyncio.wait_for(fabric.connected(), 20)
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


async def test_a_status_that_outgrows_its_metadata_makes_writes_smaller(
    switch, desire, onlooker, setup, monkeypatch
):
    small = (("grpc.max_metadata_size", 8192), ("grpc.absolute_max_metadata_size", 8192))
    monkeypatch.setattr(connection_module, "_CHANNEL_OPTIONS", small)
    routes = {ip_network(f"fd00:{n:x}::/32"): (NextHop(3, "02:00:00:00:00:03"),) for n in range(1, 1501)}
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await asyncio.wait_for(fabric.connected(), 20)
        outcome = (await fabric.apply({"S1": desire(1, 2, setup=replace(setup, routes=routes))}))["S1"]
        assert (outcome.result, outcome.refused) == (Result.APPLIED, 1500 - 1024)
        assert await onlooker(switch).levels() == {1: 1, 2: 2}


async def test_what_changed_behind_our_back_is_read_back_and_mended(switch, desire, onlooker, stranger):
    levels = (3, 2, 1, 4, 4, 4, 4, 4, 5)
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await asyncio.wait_for(fabric.connected(), 20)
        await fabric.apply({"S1": desire(1, 2, 3)})
        await stranger(fabric, Change("flow_group_v4", flow_key(9), Call("set_group", (7, 7)), replace=False))
        await stranger(fabric, Change("group_level", (await onlooker(switch).bank(), 2), None))
        outcome = (await fabric.apply({"S1": desire(*levels)}))["S1"]
        assert (outcome.result, outcome.refused) == (Result.APPLIED, 0)
        assert await onlooker(switch).levels() == dict(enumerate(levels, start=1))
        assert await onlooker(switch).flows() == {number: (number, number) for number in range(1, 10)}
        assert fabric.status()["S1"].sessions == 1


async def test_an_idle_switch_is_looked_in_on(switch, desire, onlooker, stranger, monkeypatch, eventually):
    monkeypatch.setattr(session_module, "_IDLE_S", 0.2)
    async with Fabric([switch.target()], PROGRAM, deadline_s=0.5) as fabric:
        await asyncio.wait_for(fabric.connected(), 20)
        await fabric.apply({"S1": desire(1, 2, 3)})
        bank = await onlooker(switch).bank()
        await stranger(fabric, Change("active_bank", (), Call("set_bank", (1 - bank,))))

        async def mended():
            return await onlooker(switch).levels() == {1: 1, 2: 2, 3: 3}

        await eventually(mended)
        switch.freeze()

        async def noticed():
            return not fabric.status()["S1"].connected

        await eventually(noticed)


@pytest.mark.parametrize("wrong", [77])
async def test_a_wrong_device_id_is_said(switch, wrong):
    target = replace(switch.target(), device_id=wrong)
    async with Fabric([target], PROGRAM) as fabric:
        for _ in range(100):
            if fabric.status()["S1"].error:
                break
            await asyncio.sleep(0.05)
        status = fabric.status()["S1"]
        assert (status.connected, status.primary) == (False, False)
        assert "device" in status.error.lower()


async def test_reading_back_more_than_four_megabytes(switch, setup):
    flows = {
        FiveTuple(IPv4Address("10.0.1.1"), IPv4Address("10.0.2.2"), 6, port, 29500): FlowEntry(1, port + 1)
        for port in range(50_000)
    }
    wanted = Desired(setup, flows, {1: GroupLevel(3)})
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await asyncio.wait_for(fabric.connected(), 20)
        assert (await fabric.apply({"S1": wanted}))["S1"].result is Result.APPLIED
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await asyncio.wait_for(fabric.connected(), 30)
        assert fabric.status()["S1"].entries["flow_group_v4"] == 50_000
        assert (await fabric.apply({"S1": wanted}))["S1"].updates == 0

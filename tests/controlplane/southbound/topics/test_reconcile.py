"""Reconcile by value: what a switch holds is read and compared, and only the difference is written."""

from dataclasses import replace
from ipaddress import ip_network

from controlplane.southbound import Desired, Fabric, GroupLevel, NextHop, Result
from controlplane.southbound import session as session_module
from controlplane.southbound.diff import Change
from controlplane.southbound.tables import Call
from tests.controlplane.southbound.helpers import PROGRAM, connected, flow_key
from tests.controlplane.southbound.proxy import Proxy


async def test_reconcile_by_value_writes_only_the_difference(switch, desire, onlooker):
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": desire(1, 2, 3)})
        await fabric.apply({"S1": desire(2, 2, 3)})
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        assert fabric.status()["S1"].pipeline_pushes == 0
        held = fabric.held("S1")
        assert held.groups == {1: GroupLevel(2), 2: GroupLevel(2), 3: GroupLevel(3)}
        assert held.flows == desire(1, 2, 3).flows
        assert (await fabric.apply({"S1": desire(2, 2, 3)}))["S1"].updates == 0
        # The idle bank was read back too: it still holds 1, 2, 3, so that only the flip is left to write.
        assert (await fabric.apply({"S1": desire(1, 2, 3)}))["S1"].updates == 1
        assert await onlooker(switch).levels() == {1: 1, 2: 2, 3: 3}


async def test_reconcile_a_controller_that_knows_nothing_yet_leaves_the_ranking_alone(
    switch, desire, onlooker, setup
):
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": desire(1, 2, 3)})
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        outcome = (await fabric.apply({"S1": Desired(replace(setup, burst_gap_us=777))}))["S1"]
        assert outcome.updates == 1
        assert await onlooker(switch).levels() == {1: 1, 2: 2, 3: 3}
        assert len(await onlooker(switch).flows()) == 3


async def test_reconcile_what_changed_behind_our_back(switch, desire, onlooker, stranger):
    levels = (3, 2, 1, 4, 4, 4, 4, 4, 5)
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": desire(1, 2, 3)})
        await stranger(fabric, Change("flow_group_v4", flow_key(9), Call("set_group", (7, 7)), replace=False))
        await stranger(fabric, Change("group_level", (await onlooker(switch).bank(), 2), None))
        outcome = (await fabric.apply({"S1": desire(*levels)}))["S1"]
        assert (outcome.result, outcome.refused) == (Result.APPLIED, 0)
        assert await onlooker(switch).levels() == dict(enumerate(levels, start=1))
        assert await onlooker(switch).flows() == {number: (number, number) for number in range(1, 10)}
        assert fabric.status()["S1"].sessions == 1


async def test_reconcile_an_idle_switch_is_looked_in_on(
    switch, desire, onlooker, stranger, monkeypatch, eventually
):
    monkeypatch.setattr(session_module, "_LOOK_IN_S", 0.2)
    async with Fabric([switch.target()], PROGRAM, deadline_s=0.5) as fabric:
        await connected(fabric)
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


def padded(answer):
    """Write every value of a ReadResponse as wide as its field is, or wider: not canonical, but as true."""
    for entity in answer.entities:
        entry = entity.table_entry
        for match in entry.match:
            which = getattr(match, match.WhichOneof("field_match_type"))
            which.value = which.value.rjust(17, b"\0")
        for param in entry.action.action.params:
            param.value = param.value.rjust(8, b"\0")


async def test_reconcile_by_value_of_padded_bytes_read_back(switch, desire, onlooker, setup):
    hops = (NextHop(1, "02:00:00:00:00:01"), NextHop(2, "02:00:00:00:00:02"))
    routes = {ip_network("10.0.2.0/24"): hops[:1], ip_network("fd00::/17"): hops}
    wanted = desire(1, 0, 3, setup=replace(setup, routes=routes))
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": wanted})
    async with Proxy(switch) as proxy:
        proxy.change_read = padded
        async with Fabric([proxy.target()], PROGRAM) as fabric:
            await connected(fabric)
            assert fabric.held("S1").flows == wanted.flows
            assert (await fabric.apply({"S1": wanted}))["S1"].updates == 0
            assert (await fabric.apply({"S1": desire(1, 0, 4, setup=wanted.setup)}))["S1"].updates == 3 + 1
    assert await onlooker(switch).levels() == {1: 1, 2: 0, 3: 4}
    assert proxy.writes(), "the Writes must have gone through the proxy"

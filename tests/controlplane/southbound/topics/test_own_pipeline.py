"""A pipeline of one's own that includes the level control: the example, an L2 switch."""

from dataclasses import replace

import finsy

import p4src
from controlplane.southbound import Fabric, GroupLevel, Result
from tests.controlplane.southbound.helpers import connected, flow

OWN = p4src.program("l2")


async def test_own_pipeline_is_pushed_ranked_and_read_back(switch, setup, desire):
    without = replace(setup, routes=None)
    async with Fabric([switch.target()], OWN) as fabric:
        await connected(fabric)
        for levels in ((4, 5), (6, 0)):
            outcome = (await fabric.apply({"S1": desire(*levels, setup=without)}))["S1"]
            assert (outcome.result, outcome.refused) == (Result.APPLIED, 0)
        assert fabric.status()["S1"].pipeline_pushes == 1
    async with Fabric([switch.target()], OWN, election_id=2) as fabric:
        await connected(fabric)
        held = fabric.held("S1")
        assert held.groups == {1: GroupLevel(6), 2: GroupLevel(0)}
        assert held.flows.keys() == {flow(1), flow(2)}
        assert fabric.status()["S1"].pipeline_pushes == 0


async def test_own_pipeline_its_other_tables_are_the_other_controllers(kind, switch, setup, desire):
    options = finsy.SwitchOptions(p4info=OWN.p4info, p4blob=OWN.json, device_id=switch.device_id)
    mac = finsy.P4TableEntry(
        "mac", match=finsy.P4TableMatch(dst=0x020000000001), action=finsy.P4TableAction("forward", port=1)
    )
    async with finsy.Switch("theirs", switch.address, options) as theirs:  # pushes the pipeline
        await theirs.write([+mac])
        if kind == "bmv2":  # has no roles, so the higher election id takes over
            target, election_id = switch.target(), 99
        else:
            target, election_id = replace(switch.target(), role="leveller"), 1
        async with Fabric([target], OWN, election_id=election_id) as ours:
            await connected(ours)
            outcome = (await ours.apply({"S1": desire(4, 5, setup=replace(setup, routes=None))}))["S1"]
            assert (outcome.result, outcome.refused) == (Result.APPLIED, 0)
            assert ours.status()["S1"].pipeline_pushes == 0
            assert ours.held("S1").groups == {1: GroupLevel(4), 2: GroupLevel(5)}
        assert [entry.action.args async for entry in theirs.read(finsy.P4TableEntry("mac"))] == [{"port": 1}]

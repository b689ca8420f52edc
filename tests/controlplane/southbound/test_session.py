"""One switch kept at the newest ranking. What P4Runtime asks for is in topics/."""

import asyncio
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from controlplane.southbound import Desired, Fabric, GroupLevel, Result
from tests.controlplane.southbound.helpers import PROGRAM, connected


async def test_a_ranking_is_installed_and_flipped(switch, desire, onlooker):
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
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
        await connected(fabric)
        await fabric.apply({"S1": desire(1, 2, 3)})
        await fabric.apply({"S1": desire(3)})
        assert await onlooker(switch).levels() == {1: 3}
        assert await onlooker(switch).flows() == {1: (1, 1)}
        assert {entry.match["group"] for entry in await onlooker(switch).read("group_level")} == {1}
        assert fabric.status()["S1"].entries["flow_group_v4"] == 1


async def test_the_newest_of_many_wins_and_none_piles_up(switch, desire, onlooker):
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        rounds = [asyncio.create_task(fabric.apply({"S1": desire(turn % 7, 3)})) for turn in range(60)]
        results = [(await each)["S1"].result for each in rounds]
        assert results[-1] is Result.APPLIED
        assert results.count(Result.SUPERSEDED) >= 55
        assert set(results) == {Result.APPLIED, Result.SUPERSEDED}
        assert await onlooker(switch).levels() == {1: 59 % 7, 2: 3}


async def test_a_new_ranking_does_not_wait_for_many_flows(switch, desire, onlooker, setup):
    many = desire(*([3] * 3000))
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
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


async def test_a_session_that_always_fails_the_same_way_is_told_once(switch, tmp_path, eventually):
    bad = tmp_path / "bad.json"
    bad.write_text("no program")
    with capture_logs() as logs:
        async with Fabric([switch.target()], replace(PROGRAM, json=bad)) as fabric:

            async def tried_often():
                return fabric.status()["S1"].sessions >= 4

            await eventually(tried_often)
    errors = [line["error"] for line in logs if line["event"] == "switch not connected"]
    assert 1 <= len(errors) == len(set(errors))
    assert not [line for line in logs if line["event"] in ("switch connected", "switch lost")]


async def test_becoming_a_backup_and_the_primary_again_is_told(switch, eventually):
    with capture_logs() as logs:
        async with Fabric([switch.target()], PROGRAM, election_id=1) as fabric:
            await connected(fabric)

            def roles():
                return [line["primary"] for line in logs if line["event"] == "role changed"]

            async with Fabric([switch.target()], PROGRAM, election_id=2) as other:
                await connected(other)

                async def deposed():
                    return roles() == [False]

                await eventually(deposed)

            async def primary_again():
                return roles() == [False, True] and fabric.status()["S1"].primary

            await eventually(primary_again)

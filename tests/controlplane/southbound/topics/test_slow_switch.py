"""Switches that are slow, hang, or answer one write in ten: none delays another."""

import asyncio
import time

import pytest

from controlplane.southbound import Fabric, Result
from controlplane.southbound import session as session_module
from tests.controlplane.southbound.helpers import PROGRAM, connected
from tests.controlplane.southbound.proxy import Proxy


async def test_a_switch_that_hangs_delays_no_other_and_is_reconciled_when_it_wakes(
    switches, desire, onlooker, eventually
):
    hung, well = switches(), switches()
    async with Fabric([hung.target("S1"), well.target("S2")], PROGRAM, deadline_s=1.0) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": desire(1), "S2": desire(1)})
        hung.freeze()
        both = asyncio.create_task(fabric.apply({"S1": desire(2), "S2": desire(2)}))
        await asyncio.sleep(0.01)
        for level in (3, 4, 5):
            began = time.monotonic()
            assert (await fabric.apply({"S2": desire(level)}))["S2"].result is Result.APPLIED
            assert time.monotonic() - began < 0.5
        outcome = (await both)["S1"]
        assert (outcome.result, outcome.flip_s) == (Result.FAILED, None)
        assert "no answer" in outcome.error
        assert 0.9 < outcome.total_s < 3.0
        assert not fabric.status()["S1"].connected
        assert (await fabric.apply({"S1": desire(6)}))["S1"].result is Result.DISCONNECTED
        hung.thaw()

        async def reconciled():
            return fabric.status()["S1"].connected and await onlooker(hung).levels() == {1: 6}

        await eventually(reconciled)
        assert await onlooker(well).levels() == {1: 5}


async def test_slow_switch_gets_the_newest_ranking_and_delays_no_other(switches, desire, onlooker):
    slow, well = switches(), switches()
    async with Proxy(slow) as proxy:
        async with Fabric([proxy.target("S1"), well.target("S2")], PROGRAM) as fabric:
            await connected(fabric)
            await fabric.apply({"S1": desire(1), "S2": desire(1)})
            proxy.delay_s, before = 0.25, len(proxy.writes())
            pending, longest = [], 0.0
            for turn in range(40):
                pending.append(asyncio.create_task(fabric.apply({"S1": desire(turn % 7)})))
                began = time.monotonic()
                assert (await fabric.apply({"S2": desire(turn % 7)}))["S2"].result is Result.APPLIED
                longest = max(longest, time.monotonic() - began)
                await asyncio.sleep(0.02)
            outcomes = [(await each)["S1"].result for each in pending]
            assert longest < 0.25, "the well switch waited for the slow one"
            assert outcomes[-1] is Result.APPLIED
            assert outcomes.count(Result.SUPERSEDED) > 30
            assert len(proxy.writes()) - before < 16, "rankings must not queue up before a slow switch"
            assert fabric.status()["S1"].sessions == 1
        proxy.delay_s = 0.0
        assert await onlooker(slow).levels() == {1: 39 % 7}
        assert await onlooker(well).levels() == {1: 39 % 7}


@pytest.mark.parametrize("applied", [True, False], ids=["unanswered but applied", "lost"])
async def test_switch_that_answers_one_write_in_ten_is_brought_up_all_the_same(
    switches, desire, onlooker, monkeypatch, eventually, applied
):
    """Nine Writes of ten get no answer, whether they were applied or not; what is true is read back."""
    monkeypatch.setattr(session_module, "_BACKOFF_S", (0.01, 0.02))
    deaf, well = switches(), switches()
    count = 0

    async with Proxy(deaf) as proxy:

        def one_in_ten(write):
            nonlocal count
            count += 1
            if count % 10 == 0:
                return write
            if applied:
                passing.add(asyncio.create_task(proxy.apply(write)))
            return None

        passing = set()
        async with Fabric([proxy.target("S1"), well.target("S2")], PROGRAM, deadline_s=0.1) as fabric:
            await connected(fabric)
            proxy.change_write = one_in_ten
            for turn in range(3):
                levels = [(turn + group) % 7 for group in range(5)]
                task = asyncio.create_task(fabric.apply({"S1": desire(*levels)}))
                began = time.monotonic()
                assert (await fabric.apply({"S2": desire(*levels)}))["S2"].result is Result.APPLIED
                assert time.monotonic() - began < 0.5
                await task

                async def arrived(levels=levels):
                    return await onlooker(deaf).levels() == dict(enumerate(levels, start=1))

                await eventually(arrived, 60)
            assert fabric.status()["S2"].sessions == 1
        await asyncio.gather(*passing, return_exceptions=True)

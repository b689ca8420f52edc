"""Updates of one Write may be applied in any order, so what depends on others waits (specification, 12.2)."""

import random
from dataclasses import replace
from ipaddress import ip_network

from finsy.proto import p4i
from google.protobuf import text_format

from controlplane.southbound import Fabric, NextHop, Result, SwitchError
from controlplane.southbound import connection as connection_module
from tests.controlplane.southbound.helpers import PROGRAM, connected
from tests.controlplane.southbound.proxy import Proxy


async def test_dependent_updates_death_in_the_middle_leaves_the_old_ranking_whole(
    switch, desire, onlooker, monkeypatch
):
    """The first controller's session dies between two writes into the idle bank; the next one finishes."""
    levels, turned = range(7), range(6, -1, -1)
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": desire(*levels)})
        bank = await onlooker(switch).bank()
        writes = 0
        write = connection_module.Connection.write

        async def dying_write(self, updates):
            nonlocal writes
            writes += 1
            if writes >= 3:
                raise SwitchError("killed here")
            return await write(self, updates)

        with monkeypatch.context() as patch:
            patch.setattr(connection_module.Connection, "write", dying_write)
            fabric._sessions["S1"]._writer.batch = 2
            outcome = (await fabric.apply({"S1": desire(*turned)}))["S1"]
            assert (outcome.result, outcome.error, outcome.flip_s) == (Result.FAILED, "killed here", None)
            fabric._sessions["S1"]._desired = None  # this controller is dead
    assert await onlooker(switch).bank() == bank
    assert await onlooker(switch).levels() == {group: group - 1 for group in range(1, 8)}
    idle = {e.match["group"] for e in await onlooker(switch).read("group_level") if e.match["bank"] != bank}
    assert len(idle) == 4, "the test must have died half-way"
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        outcome = (await fabric.apply({"S1": desire(*turned)}))["S1"]
        assert outcome.updates == 3 + 1  # what was missing in the idle bank, and the flip
        assert await onlooker(switch).levels() == {group: 7 - group for group in range(1, 8)}


async def test_dependent_updates_any_order_within_a_write_will_do(switch, desire, onlooker, setup):
    """A switch may apply the updates of a Write in any order: here it applies them backwards, or shuffled."""
    hops = (NextHop(1, "02:00:00:00:00:01"), NextHop(2, "02:00:00:00:00:02"))
    routes = {ip_network(f"10.{n}.0.0/16"): hops[: 1 + n % 2] for n in range(1, 9)}
    order = random.Random(4)

    def shuffled(write):
        updates = list(write.updates)
        order.shuffle(updates)
        del write.updates[:]
        write.updates.extend(updates)
        return write

    async with Proxy(switch) as proxy:
        proxy.change_write = shuffled
        async with Fabric([proxy.target()], PROGRAM) as fabric:
            await connected(fabric)
            for levels in ((1, 2, 3, 4), (4, 3, 2), (0, 0, 0, 0, 6)):
                outcome = (await fabric.apply({"S1": desire(*levels, setup=replace(setup, routes=routes))}))[
                    "S1"
                ]
                assert (outcome.result, outcome.refused) == (Result.APPLIED, 0)
                assert await onlooker(switch).levels() == dict(enumerate(levels, start=1))
                assert len(await onlooker(switch).flows()) == len(levels)


async def test_dependent_updates_are_in_separate_awaited_writes(switch, desire, setup):
    """No Write holds an update and one that relies on it, and none begins before the last has ended."""
    info = text_format.Parse(PROGRAM.p4info.read_text(), p4i.P4Info())
    names = {table.preamble.id: table.preamble.alias for table in info.tables}
    hops = (NextHop(1, "02:00:00:00:00:01"), NextHop(2, "02:00:00:00:00:02"))
    async with Proxy(switch) as proxy:
        proxy.delay_s = 0.005
        async with Fabric([proxy.target()], PROGRAM) as fabric:
            await connected(fabric)
            wanted = desire(1, 2, setup=replace(setup, routes={ip_network("10.1.0.0/16"): hops}))
            await fabric.apply({"S1": wanted})
            await fabric.apply({"S1": desire(2, 1, 3, setup=setup)})
        tables = [
            {names[update.entity.table_entry.table_id] for update in request.updates}
            for request in proxy.writes()
        ]
    relies_on = {"flow_group_v4": {"group_level", "active_bank"}, "active_bank": {"group_level"},
                 "group_level": {"level_queue"}, "ipv4_lpm": {"ecmp"}}  # fmt: skip
    for together in tables:
        for table in together:
            assert not together & relies_on.get(table, set()), tables
    first = {table: next(at for at, each in enumerate(tables) if table in each) for table in names.values()
             if any(table in each for each in tables)}  # fmt: skip
    assert first["level_queue"] < first["group_level"] < first["active_bank"] < first["flow_group_v4"]
    assert first["ecmp"] < first["ipv4_lpm"]
    assert proxy.most_under_way == 1

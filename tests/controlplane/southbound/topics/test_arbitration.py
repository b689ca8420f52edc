"""Who is primary: arbitration, backups, no primary, duplicate and decreasing ids (specification, 5)."""

import asyncio
import contextlib

import grpc
import pytest
from finsy import P4Schema
from finsy.grpcutil import GRPCStatusCode
from finsy.proto import U128, p4r, p4r_grpc

from controlplane.southbound import Fabric, Result
from controlplane.southbound.arbitration import Election
from controlplane.southbound.connection import Connection, LostPrimacyError
from controlplane.southbound.contract import bind
from controlplane.southbound.diff import Change
from controlplane.southbound.encode import Encoder
from controlplane.southbound.tables import Call
from tests.controlplane.southbound.helpers import PROGRAM, connected


async def test_arbitration_the_higher_rank_is_primary_and_a_backup_takes_over(
    switch, desire, onlooker, eventually
):
    async with Fabric([switch.target()], PROGRAM, election_id=1) as backup:
        await connected(backup)
        assert backup.status()["S1"].primary
        async with Fabric([switch.target()], PROGRAM, election_id=2) as primary:
            await connected(primary)

            async def deposed():
                return not backup.status()["S1"].primary

            await eventually(deposed)
            assert (backup.status()["S1"].connected, primary.status()["S1"].primary) == (True, True)
            assert (await primary.apply({"S1": desire(1, 2)}))["S1"].result is Result.APPLIED
            assert (await backup.apply({"S1": desire(6, 5)}))["S1"].result is Result.BACKUP
            assert await onlooker(switch).levels() == {1: 1, 2: 2}

        async def taken_over():
            return await onlooker(switch).levels() == {1: 6, 2: 5}

        await eventually(taken_over)
        assert backup.status()["S1"].primary
        assert (backup.status()["S1"].sessions, backup.status()["S1"].pipeline_pushes) == (1, 1)


async def test_arbitration_of_the_same_rank_the_newer_leads_and_they_do_not_fight(
    switch, desire, onlooker, eventually
):
    async with Fabric([switch.target()], PROGRAM) as older:
        await connected(older)
        async with Fabric([switch.target()], PROGRAM) as newer:
            await connected(newer)
            await asyncio.sleep(0.5)
            assert (older.status()["S1"].primary, newer.status()["S1"].primary) == (False, True)
            assert (await older.apply({"S1": desire(1)}))["S1"].result is Result.BACKUP
            assert (await newer.apply({"S1": desire(2)}))["S1"].result is Result.APPLIED
            assert (older.status()["S1"].sessions, newer.status()["S1"].sessions) == (1, 1)

        async def taken_over():
            return await onlooker(switch).levels() == {1: 1}

        await eventually(taken_over)


async def test_duplicate_election_id_ends_a_session_and_the_next_has_another(
    switch, desire, monkeypatch, eventually
):
    fixed = iter((1_000_000_000, 1_000_000_000))
    begin = Election.begin

    def begin_alike(self):
        self.id = begin(self)
        if (same := next(fixed, None)) is not None:
            self.id = 1 << 64 | same
        return self.id

    monkeypatch.setattr(Election, "begin", begin_alike)
    async with Fabric([switch.target()], PROGRAM) as first:
        await connected(first)
        seen = []
        async with Fabric([switch.target()], PROGRAM, on_status=seen.append) as second:
            await connected(second)
            assert "another client has election id" in seen[0].error
            assert second.status()["S1"].primary
            assert (await second.apply({"S1": desire(2)}))["S1"].result is Result.APPLIED


async def test_arbitration_the_ghost_of_a_lost_session_does_not_keep_its_controller_out(
    switch, desire, onlooker
):
    """The switch still holds the stream of a session that its controller has given up."""
    schema = P4Schema(PROGRAM.p4info, PROGRAM.json)
    encoder = Encoder(bind(schema.p4info, "leveller.p4info.txtpb"))
    ghost = Connection(switch.target(), schema, encoder, Election(1), 5.0)
    await ghost.open()
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        assert fabric.status()["S1"].primary
        assert (await fabric.apply({"S1": desire(3)}))["S1"].result is Result.APPLIED
        stale = ghost.prepare([Change("active_bank", (), Call("set_bank", (0,)))])
        with pytest.raises(LostPrimacyError):
            await ghost.write(stale)
        assert await onlooker(switch).levels() == {1: 3}
        await ghost.close()


async def test_arbitration_a_tool_that_connects_does_not_depose_the_controller(switch, desire, onlooker):
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": desire(3)})
        assert await onlooker(switch).levels() == {1: 3}
        assert fabric.status()["S1"].primary
        assert (await fabric.apply({"S1": desire(4)}))["S1"].result is Result.APPLIED


class Stranger:
    """Another client's stream, with whatever election id a test wants."""

    def __init__(self, switch, election_id):
        self._id, self._device_id = election_id, switch.device_id
        self._channel = grpc.aio.insecure_channel(switch.address)

    async def __aenter__(self):
        self._stream = p4r_grpc.P4RuntimeStub(self._channel).StreamChannel()
        assert await self.claims(self._id) == GRPCStatusCode.OK
        return self

    async def claims(self, election_id):
        """Assert an id; return the status that the switch answers with."""
        arbitration = p4r.MasterArbitrationUpdate(
            device_id=self._device_id, election_id=U128.encode(election_id)
        )
        await self._stream.write(p4r.StreamMessageRequest(arbitration=arbitration))
        return (await self._stream.read()).arbitration.status.code

    async def __aexit__(self, *error):
        await self._channel.close(None)


async def test_backups_stand_by_and_the_highest_of_them_takes_over(switch, desire, onlooker, eventually):
    async with contextlib.AsyncExitStack() as backups:
        first, second = [
            await backups.enter_async_context(Fabric([switch.target()], PROGRAM, election_id=rank))
            for rank in (1, 2)
        ]
        async with Fabric([switch.target()], PROGRAM, election_id=3) as primary:
            for fabric in (first, second, primary):
                await connected(fabric)
            await primary.apply({"S1": desire(3)})

            async def settled():
                states = [fabric.status()["S1"].primary for fabric in (first, second, primary)]
                return states == [False, False, True]

            await eventually(settled)
            for level, fabric in ((1, first), (2, second)):
                outcome = (await fabric.apply({"S1": desire(level)}))["S1"]
                assert (outcome.result, outcome.updates) == (Result.BACKUP, 0)
            assert await onlooker(switch).levels() == {1: 3}

        async def taken_over():
            return await onlooker(switch).levels() == {1: 2}

        await eventually(taken_over)
        assert [fabric.status()["S1"].primary for fabric in (first, second)] == [False, True]
        assert first.status()["S1"].sessions == 1


async def test_no_primary_a_backup_asserts_above_the_highest_ever(switch, desire, onlooker, eventually):
    """The primary of a far higher id leaves; whatever the switch does then, somebody has to lead."""
    async with contextlib.AsyncExitStack() as theirs:
        await theirs.enter_async_context(Stranger(switch, 9 << 64))
        async with Fabric([switch.target()], PROGRAM) as fabric:
            await connected(fabric)
            assert (await fabric.apply({"S1": desire(4)}))["S1"].result is Result.BACKUP
            await asyncio.sleep(0.2)
            assert not fabric.status()["S1"].primary, "a backup must not depose a primary that lives"
            await theirs.aclose()

            async def leads():
                return fabric.status()["S1"].primary and await onlooker(switch).levels() == {1: 4}

            await eventually(leads)
            assert fabric.status()["S1"].sessions == 1


async def test_decreasing_id_of_a_new_controller_is_raised_above_the_highest_ever(switch, desire, onlooker):
    """Ranks were lowered in every controller's file: the switch remembers the higher one of before."""
    async with Fabric([switch.target()], PROGRAM, election_id=7) as before:
        await connected(before)
        await before.apply({"S1": desire(1)})
    async with Fabric([switch.target()], PROGRAM, election_id=2) as after:
        await connected(after)
        status = after.status()["S1"]
        assert (status.primary, status.sessions, status.pipeline_pushes) == (True, 1, 0)
        assert (await after.apply({"S1": desire(6)}))["S1"].result is Result.APPLIED
        assert await onlooker(switch).levels() == {1: 6}


async def test_decreasing_id_of_a_primary_that_steps_down_makes_room(switch, desire, eventually):
    """A primary that asserts a lower id than before is none any more; the controller behind it leads."""
    async with Stranger(switch, 9 << 64) as stranger, Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        assert not fabric.status()["S1"].primary
        await stranger.claims(1)

        async def leads():
            return fabric.status()["S1"].primary

        await eventually(leads)
        await connected(fabric)
        assert (await fabric.apply({"S1": desire(6)}))["S1"].result is Result.APPLIED

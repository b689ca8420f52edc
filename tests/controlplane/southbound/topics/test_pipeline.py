"""The pipeline: pushed where its cookie differs, and never otherwise, since a push wipes (7.1)."""

from dataclasses import replace

import grpc
import pytest
from finsy import P4Schema
from finsy.proto import U128, p4r, p4r_grpc

from controlplane.southbound import Fabric, Result
from tests.controlplane.southbound.helpers import PROGRAM, connected


async def test_pipeline_mismatch_is_a_push_and_nothing_else_is(switch, desire, onlooker, tmp_path):
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        assert fabric.status()["S1"].pipeline_pushes == 1
        await fabric.apply({"S1": desire(1, 2)})
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        assert fabric.status()["S1"].pipeline_pushes == 0
    assert await onlooker(switch).levels() == {1: 1, 2: 2}
    other = tmp_path / "other.json"
    other.write_text(PROGRAM.json.read_text() + "\n")
    async with Fabric([switch.target()], replace(PROGRAM, json=other)) as fabric:
        await connected(fabric)
        assert fabric.status()["S1"].pipeline_pushes == 1
        assert fabric.held("S1").groups == {}
        await fabric.apply({"S1": desire(5)})
        assert await onlooker(switch).levels() == {1: 5}


async def test_pipeline_that_the_switch_refuses_is_said(switch, tmp_path, eventually):
    bad = tmp_path / "bad.json"
    bad.write_text("no program")
    async with Fabric([switch.target()], replace(PROGRAM, json=bad)) as fabric:

        async def said():
            return (fabric.status()["S1"].error or "").startswith(
                f"pushing the pipeline to device {switch.device_id}: "
            )

        await eventually(said)
        assert not fabric.status()["S1"].connected


async def test_preloaded_pipeline_of_another_controllers_push_is_kept(switch, desire, onlooker):
    """Our program is there already, by whoever pushed it: nothing is pushed and no entry lost."""
    async with Fabric([switch.target()], PROGRAM, election_id=5) as other:
        await connected(other)
        await other.apply({"S1": desire(1, 2)})
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        assert fabric.status()["S1"].pipeline_pushes == 0
        assert fabric.held("S1").groups == desire(1, 2).groups
    assert await onlooker(switch).levels() == {1: 1, 2: 2}


async def test_preloaded_pipeline_of_the_command_line_has_no_cookie_and_is_pushed_over(
    switches, desire, onlooker
):
    """A program that a switch was started with comes without P4Info: P4Runtime can do nothing with it."""
    switch = switches(preloaded=PROGRAM.json)
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        assert fabric.status()["S1"].pipeline_pushes == 1
        assert (await fabric.apply({"S1": desire(1, 2)}))["S1"].result is Result.APPLIED
        assert await onlooker(switch).levels() == {1: 1, 2: 2}


async def test_pipeline_mismatch_seen_by_a_backup_changes_nothing(switch, desire, onlooker, tmp_path):
    """Only a primary pushes: a backup of another release leaves the program and its tables alone."""
    other = tmp_path / "other.json"
    other.write_text(PROGRAM.json.read_text() + "\n")
    async with Fabric([switch.target()], PROGRAM, election_id=5) as primary:
        await connected(primary)
        await primary.apply({"S1": desire(1, 2)})
        async with Fabric([switch.target()], replace(PROGRAM, json=other)) as backup:
            await connected(backup)
            assert (await backup.apply({"S1": desire(6)}))["S1"].result is Result.BACKUP
            assert backup.status()["S1"].pipeline_pushes == 0
        assert await onlooker(switch).levels() == {1: 1, 2: 2}


@pytest.mark.parametrize("rankings", [1, 2])
async def test_pipeline_pushed_again_beside_our_role_is_noticed(
    kind, switch, desire, onlooker, eventually, rankings
):
    """By the client with the default role (docs/library.md): the tables are empty, and no stream tells."""
    if kind == "bmv2":
        pytest.skip("bmv2 has no roles")
    await push(switch, 1)
    async with Fabric([replace(switch.target(), role="leveller")], PROGRAM) as fabric:
        await connected(fabric)
        for level in range(rankings):  # either bank is in force: an empty table means bank 0
            await fabric.apply({"S1": desire(1, level)})
        await push(switch, 2)
        assert await onlooker(switch).levels() == {}

        async def back():
            return await onlooker(switch).levels() == {1: 1, 2: rankings - 1}

        await eventually(back)
        assert fabric.status()["S1"].pipeline_pushes == 0


async def push(switch, election_id):
    """Push our program as another controller would."""
    async with grpc.aio.insecure_channel(switch.address) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        stream = stub.StreamChannel()
        who = {"device_id": switch.device_id, "election_id": U128.encode(election_id)}
        await stream.write(p4r.StreamMessageRequest(arbitration=p4r.MasterArbitrationUpdate(**who)))
        await stream.read()
        await stub.SetForwardingPipelineConfig(
            p4r.SetForwardingPipelineConfigRequest(
                **who,
                action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
                config=P4Schema(PROGRAM.p4info, PROGRAM.json).get_pipeline_config(),
            )
        )

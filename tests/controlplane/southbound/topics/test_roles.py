"""Roles: beside another controller, which has the pipeline and the forwarding (specification, 5.2)."""

from dataclasses import replace
from ipaddress import ip_network

import pytest

from controlplane.southbound import Fabric, NextHop, Result
from tests.controlplane.southbound.helpers import PROGRAM, connected


@pytest.fixture
def with_role(switch):
    return replace(switch.target(), role="leveller")


async def test_roles_two_controllers_of_different_roles_are_both_primary(
    kind, switch, with_role, setup, desire, onlooker, eventually
):
    if kind == "bmv2":
        pytest.skip("bmv2 has no roles")
    routes = {ip_network("10.0.2.0/24"): (NextHop(3, "02:00:00:00:00:03"),)}
    async with Fabric([with_role], PROGRAM) as ours:

        async def waits():
            return "does not run our program yet" in (ours.status()["S1"].error or "")

        await eventually(waits)
        async with Fabric([switch.target()], PROGRAM, election_id=9) as theirs:
            await connected(theirs)
            await theirs.apply({"S1": desire(setup=replace(setup, routes=routes))})
            await connected(ours)
            outcome = (await ours.apply({"S1": desire(4, 5, setup=replace(setup, routes=None))}))["S1"]
            assert (outcome.result, outcome.refused) == (Result.APPLIED, 0)
            assert ours.status()["S1"].primary
            assert theirs.status()["S1"].primary
            assert ours.status()["S1"].pipeline_pushes == 0
            assert await onlooker(switch).levels() == {1: 4, 2: 5}
            assert len(await onlooker(switch).read("ipv4_lpm")) == 1, "the routes are the other controller's"
            more = routes | {ip_network("10.0.3.0/24"): (NextHop(3, "02:00:00:00:00:03"),)}
            await theirs.apply({"S1": desire(setup=replace(setup, routes=more))})
            assert len(await onlooker(switch).read("ipv4_lpm")) == 2
            # What is ours alone, the other one may not touch, and so does not.
            assert await onlooker(switch).levels() == {1: 4, 2: 5}


async def test_roles_a_switch_without_them_is_said_and_not_written(
    kind, switch, with_role, desire, onlooker, eventually
):
    if kind != "bmv2":
        pytest.skip("the softswitch has roles")
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": desire(3)})
        async with Fabric([with_role], PROGRAM) as ours:

            async def said():
                return "the switch has no roles" in (ours.status()["S1"].error or "")

            await eventually(said)
            assert (await ours.apply({"S1": desire(6)}))["S1"].result is Result.DISCONNECTED
            assert await onlooker(switch).levels() == {1: 3}

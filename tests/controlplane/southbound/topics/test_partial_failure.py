"""Partial failure: status UNKNOWN with one p4.Error an update, in order (specification, 12.3)."""

from finsy.proto import U128

from controlplane.southbound import Desired, Fabric, FlowEntry, GroupLevel, Result
from controlplane.southbound.diff import Change
from controlplane.southbound.tables import Call
from tests.controlplane.southbound.helpers import PROGRAM, connected, flow, flow_key


async def test_partial_failure_mixed_results_are_taken_in_one_by_one(
    switch, smaller, setup, onlooker, stranger
):
    """In one Write: rows that go in, one that is there already, rows that find the table full."""
    many = {flow(n): FlowEntry(1, n) for n in range(1, 31)}
    async with Fabric([switch.target()], smaller(flow_group_v4=20)) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": Desired(setup, {}, {1: GroupLevel(3)})})
        await stranger(fabric, Change("flow_group_v4", flow_key(5), Call("set_group", (7, 7)), replace=False))
        outcome = (await fabric.apply({"S1": Desired(setup, many, {1: GroupLevel(3)})}))["S1"]
        assert (outcome.result, outcome.refused) == (Result.APPLIED, 10)
        held = await onlooker(switch).flows()
        assert len(held) == 20
        assert held[5] == (1, 5), "what somebody else wrote is written over"
        assert held == {number: (1, number) for number in held}
        assert fabric.held("S1").flows == {flow(number): FlowEntry(1, number) for number in held}
        assert fabric.status()["S1"].sessions == 1


async def test_partial_failure_each_error_is_its_own_updates(switch, desire, setup):
    """The errors of a Write come back at the positions of the updates that failed, and the rest is done."""
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": desire(1)})
        session = fabric._sessions["S1"]
        rows = [Change("edge_port", (port,), Call("host_facing"), replace=False) for port in (7, 1, 8)]
        rows += [
            Change("edge_port", (9,), None),
            Change("edge_port", (11,), Call("host_facing"), replace=False),
        ]
        errors = await session.device().write(session.device().prepare(rows))
        assert {at: error.canonical_code.name for at, error in errors.items()}.keys() == {1, 3}
        assert errors[1].canonical_code.name == "ALREADY_EXISTS"
        assert errors[3].canonical_code.name == "NOT_FOUND"
        assert U128.encode(session.device()._election.id).high == 1

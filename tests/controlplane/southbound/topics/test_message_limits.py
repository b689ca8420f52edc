"""Metadata limits of a status, and messages over gRPC's 4 MB."""

import asyncio
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, ip_network

import grpc

from controlplane.model import FiveTuple
from controlplane.southbound import Desired, Fabric, FlowEntry, GroupLevel, NextHop, Result
from controlplane.southbound import target as target_module
from controlplane.southbound import writer as writer_module
from controlplane.southbound.encode import MAX_UPDATES
from tests.controlplane.southbound.helpers import PROGRAM, connected, flow
from tests.controlplane.southbound.proxy import Proxy


async def test_metadata_limits_a_status_that_outgrows_them_makes_writes_smaller(
    switch, desire, onlooker, setup, monkeypatch
):
    small = (("grpc.max_metadata_size", 8192), ("grpc.absolute_max_metadata_size", 8192))
    monkeypatch.setattr(target_module, "CHANNEL_OPTIONS", small)
    routes = {ip_network(f"fd00:{n:x}::/32"): (NextHop(3, "02:00:00:00:00:03"),) for n in range(1, 1501)}
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        outcome = (await fabric.apply({"S1": desire(1, 2, setup=replace(setup, routes=routes))}))["S1"]
        assert (outcome.result, outcome.refused) == (Result.APPLIED, 1500 - 1024)
        assert await onlooker(switch).levels() == {1: 1, 2: 2}


async def test_messages_over_4_mb_are_read_back(switch, setup):
    flows = {
        FiveTuple(IPv4Address("10.0.1.1"), IPv4Address("10.0.2.2"), 6, port, 29500): FlowEntry(1, port + 1)
        for port in range(50_000)
    }
    wanted = Desired(setup, flows, {1: GroupLevel(3)})
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        assert (await fabric.apply({"S1": wanted}))["S1"].result is Result.APPLIED
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        assert fabric.status()["S1"].entries["flow_group_v4"] == 50_000
        assert (await fabric.apply({"S1": wanted}))["S1"].updates == 0


def test_metadata_limits_of_the_channel_fit_the_largest_write():
    """Specification, 12.3: 8192 bytes and 100 for each update of a Write, at least."""
    options = dict(target_module.CHANNEL_OPTIONS)
    assert options["grpc.max_metadata_size"] >= 8192 + 100 * MAX_UPDATES
    assert options["grpc.absolute_max_metadata_size"] >= options["grpc.max_metadata_size"]


async def test_metadata_limits_that_were_not_the_cause_make_writes_smaller_for_a_while_only(
    switch, setup, monkeypatch
):
    """A switch that is out of something else says the same: once it is over, Writes are full again."""
    monkeypatch.setattr(writer_module, "_SMALLER_S", 0.5)
    flows = {flow(number): FlowEntry(1, number) for number in range(1, 2 * MAX_UPDATES + 1)}
    groups = {1: GroupLevel(3)}
    async with Proxy(switch) as proxy, Fabric([proxy.target()], PROGRAM) as fabric:
        await connected(fabric)
        proxy.fail_write = lambda write: (
            grpc.StatusCode.RESOURCE_EXHAUSTED if len(write.updates) > 200 else None
        )
        outcome = (await fabric.apply({"S1": Desired(setup, flows, groups)}))["S1"]
        assert (outcome.result, outcome.refused) == (Result.APPLIED, 0)
        assert fabric.held("S1").flows == flows
        assert fabric._sessions["S1"]._writer.batch == MAX_UPDATES // 4
        proxy.fail_write = None
        await asyncio.sleep(0.5)
        proxy.calls.clear()
        others = {each: FlowEntry(1, entry.slot + 5000) for each, entry in flows.items()}
        assert (await fabric.apply({"S1": Desired(setup, others, groups)}))["S1"].result is Result.APPLIED
        assert [len(write.updates) for write in proxy.writes()] == [MAX_UPDATES, MAX_UPDATES]


async def test_metadata_limits_a_write_in_which_every_update_fails_is_understood(switch, setup, smaller):
    flows = {flow(number): FlowEntry(1, number) for number in range(1, 2 * MAX_UPDATES)}
    async with Fabric([switch.target()], smaller(flow_group_v4=1)) as fabric:
        await connected(fabric)
        outcome = (await fabric.apply({"S1": Desired(setup, flows, {1: GroupLevel(3)})}))["S1"]
        assert (outcome.result, outcome.refused) == (Result.APPLIED, len(flows) - 1)
        assert fabric._sessions["S1"]._writer.batch == MAX_UPDATES, "no Write had to be made smaller"
        assert fabric.status()["S1"].sessions == 1


async def test_messages_over_4_mb_are_never_sent(switch, setup):
    """The longest rows, IPv6 flows, as many as a switch takes: every Write stays far below gRPC's 4 MB."""
    flows = {
        FiveTuple(IPv6Address(2**127 + n), IPv6Address(2**126 + n), 6, 65535, 65534): FlowEntry(1, n)
        for n in range(1, 16_001)
    }
    async with Proxy(switch) as proxy, Fabric([proxy.target()], PROGRAM) as fabric:
        await connected(fabric)
        assert (await fabric.apply({"S1": Desired(setup, flows, {1: GroupLevel(3)})}))["S1"].refused == 0
        largest = max(size for method, size, _ in proxy.calls if method == "Write")
        assert 50_000 < largest < 1_000_000
        assert sum(len(request.updates) for request in proxy.writes()) > 16_000

"""What the writer does with a switch's time; what it does with its refusals is in topics/."""

import asyncio

from controlplane.southbound import Desired, Fabric, FlowEntry, GroupLevel, Result
from controlplane.southbound.diff import Change
from controlplane.southbound.encode import MAX_UPDATES, Encoder
from controlplane.southbound.tables import Call
from controlplane.southbound.writer import _UNDER_WAY
from tests.controlplane.southbound.helpers import PROGRAM, connected, flow, flow_key
from tests.controlplane.southbound.proxy import Proxy


async def test_the_next_writes_are_made_while_the_switch_works_on_the_last(switch, setup, monkeypatch):
    """Updates are noted as they are made, and Writes as they are passed on, 100 ms after they came."""
    encoded = Encoder.encoded
    history = []

    def noted(self, change):
        if change.table == "flow_group_v4":
            history.append("made")
        return encoded(self, change)

    def arrived(write):
        history.append("arrived")
        return write

    flows = {flow(number): FlowEntry(1, number) for number in range(1, 12 * MAX_UPDATES + 1)}
    async with Proxy(switch) as proxy, Fabric([proxy.target()], PROGRAM) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": Desired(setup, {}, {1: GroupLevel(3)})})
        monkeypatch.setattr(Encoder, "encoded", noted)
        proxy.change_write, proxy.delay_s = arrived, 0.1
        outcome = (await fabric.apply({"S1": Desired(setup, flows, {1: GroupLevel(3)})}))["S1"]
        assert (outcome.result, outcome.updates) == (Result.APPLIED, 12 * MAX_UPDATES)
        assert fabric.held("S1").flows == flows
    made_by = [history[:at].count("made") for at, event in enumerate(history) if event == "arrived"]
    assert made_by[0] == _UNDER_WAY * MAX_UPDATES, "by the time that the first is passed on, others are made"
    assert all(made <= (number + _UNDER_WAY + 1) * MAX_UPDATES for number, made in enumerate(made_by)), (
        "and not all"
    )
    assert proxy.most_under_way == _UNDER_WAY


async def test_it_is_read_back_only_when_all_writes_have_been_answered(switch, setup, stranger, onlooker):
    """The first of two Writes under way shows drift; the second takes long, and must not be missed."""
    flows = {flow(number): FlowEntry(1, number) for number in range(1, 2 * MAX_UPDATES + 1)}
    async with Proxy(switch) as proxy, Fabric([proxy.target()], PROGRAM) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": Desired(setup, {}, {1: GroupLevel(3)})})
        await stranger(fabric, Change("flow_group_v4", flow_key(5), Call("set_group", (7, 7)), replace=False))
        before = len(proxy.calls)
        proxy.delay_of = lambda write: 0.3 if len(write.updates) == MAX_UPDATES and not drifts(write) else 0.0
        outcome = (await fabric.apply({"S1": Desired(setup, flows, {1: GroupLevel(3)})}))["S1"]
        assert (outcome.result, outcome.refused) == (Result.APPLIED, 0)
        assert fabric.held("S1").flows == flows
        assert (await onlooker(switch).flows())[5] == (1, 5)
        after = [len(write.updates) for method, _, write in proxy.calls[before:] if method == "Write"]
        assert after == [MAX_UPDATES, MAX_UPDATES, 1], (
            "what the second wrote was read back, and is not written again"
        )


def drifts(write):
    """Whether the row that somebody else wrote is among the updates."""
    return any(b"\x03\xed" in match.exact.value for update in write.updates  # port 1005
               for match in update.entity.table_entry.match)  # fmt: skip


async def test_writing_is_given_up_in_the_middle_and_begun_anew(switch, setup, desire, onlooker):
    """The session ends while one Write is under way and the next is ready: nothing is left hanging."""
    flows = {flow(number): FlowEntry(1, number) for number in range(1, 3001)}
    async with Proxy(switch) as proxy:
        async with Fabric([proxy.target()], PROGRAM) as fabric:
            await connected(fabric)
            proxy.delay_s = 0.2
            task = asyncio.create_task(fabric.apply({"S1": Desired(setup, flows, {1: GroupLevel(3)})}))
            while not any(len(request.updates) == MAX_UPDATES for request in proxy.writes()):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert (await task)["S1"].result is Result.FAILED
        proxy.delay_s = 0.0
        async with Fabric([proxy.target()], PROGRAM) as fabric:
            await connected(fabric)
            assert (await fabric.apply({"S1": desire(4)}))["S1"].result is Result.APPLIED
            assert len(await onlooker(switch).flows()) == 1

"""What the writer does with a switch's time; what it does with its refusals is in topics/."""

import asyncio

from controlplane.southbound import Desired, Fabric, FlowEntry, GroupLevel, Result
from controlplane.southbound.encode import Encoder
from tests.controlplane.southbound.helpers import PROGRAM, connected, flow
from tests.controlplane.southbound.proxy import Proxy


async def test_the_next_write_is_made_while_the_switch_works_on_the_last(switch, setup, monkeypatch):
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

    flows = {flow(number): FlowEntry(1, number) for number in range(1, 4001)}
    async with Proxy(switch) as proxy, Fabric([proxy.target()], PROGRAM) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": Desired(setup, {}, {1: GroupLevel(3)})})
        monkeypatch.setattr(Encoder, "encoded", noted)
        proxy.change_write, proxy.delay_s = arrived, 0.1
        outcome = (await fabric.apply({"S1": Desired(setup, flows, {1: GroupLevel(3)})}))["S1"]
        assert (outcome.result, outcome.updates) == (Result.APPLIED, 4000)
    made_by = [history[:at].count("made") for at, event in enumerate(history) if event == "arrived"]
    assert made_by == [2000, 3000, 4000, 4000], (
        "each Write is passed on 100 ms after it came, the next is made by then"
    )
    assert proxy.most_under_way == 1


async def test_writing_is_given_up_in_the_middle_and_begun_anew(switch, setup, desire, onlooker):
    """The session ends while one Write is under way and the next is ready: nothing is left hanging."""
    flows = {flow(number): FlowEntry(1, number) for number in range(1, 3001)}
    async with Proxy(switch) as proxy:
        async with Fabric([proxy.target()], PROGRAM) as fabric:
            await connected(fabric)
            proxy.delay_s = 0.2
            task = asyncio.create_task(fabric.apply({"S1": Desired(setup, flows, {1: GroupLevel(3)})}))
            while not any(len(request.updates) == 1000 for request in proxy.writes()):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert (await task)["S1"].result is Result.FAILED
        proxy.delay_s = 0.0
        async with Fabric([proxy.target()], PROGRAM) as fabric:
            await connected(fabric)
            assert (await fabric.apply({"S1": desire(4)}))["S1"].result is Result.APPLIED
            assert len(await onlooker(switch).flows()) == 1

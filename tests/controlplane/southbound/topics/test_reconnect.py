"""Switches that come late, restart, or are not there: reconnect with back-off."""

import asyncio
import contextlib
import itertools
import time
from dataclasses import replace

import pytest

from controlplane.southbound import Fabric, Result, SwitchError
from controlplane.southbound import session as session_module
from tests.controlplane.southbound.helpers import PROGRAM, connected


async def test_reconnect_a_switch_that_comes_late_is_served_then(switches, desire, onlooker, eventually):
    late = switches(started=False)
    async with Fabric([late.target()], PROGRAM) as fabric:
        began = time.monotonic()
        outcome = (await fabric.apply({"S1": desire(4, 5)}))["S1"]
        assert outcome.result is Result.DISCONNECTED
        assert time.monotonic() - began < 0.5
        assert fabric.held("S1") is None
        with pytest.raises(SwitchError, match="S1"):
            await fabric.read_flow_counters("S1")
        late.start()

        async def served():
            return fabric.status()["S1"].connected and await onlooker(late).levels() == {1: 4, 2: 5}

        await eventually(served)


async def test_reconnect_a_switch_that_restarts_is_filled_again_and_the_others_served(
    switches, desire, onlooker, eventually
):
    one, two = switches(), switches()
    seen = []
    targets = [one.target("S1"), two.target("S2")]
    async with Fabric(targets, PROGRAM, on_status=seen.append) as fabric:
        await connected(fabric)
        await fabric.apply({"S1": desire(1), "S2": desire(1)})
        one.kill()

        async def noticed():
            return not fabric.status()["S1"].connected

        await eventually(noticed)
        outcomes = await fabric.apply({"S1": desire(5), "S2": desire(5)})
        assert [outcomes[name].result for name in ("S1", "S2")] == [Result.DISCONNECTED, Result.APPLIED]
        one.start()

        async def filled():
            return fabric.status()["S1"].connected and await onlooker(one).levels() == {1: 5}

        await eventually(filled)
        assert fabric.status()["S1"].pipeline_pushes == 2
        assert (fabric.status()["S2"].sessions, fabric.status()["S1"].error) == (1, None)
    states = [status.connected for status in seen if status.name == "S1"]
    assert (states[0], states[-1], False in states) == (True, True, True)


async def test_reconnect_with_back_off_that_grows_and_starts_anew_after_a_good_session(
    monkeypatch, switch, eventually
):
    """A listener that closes at once counts the attempts; then a real switch stands behind it for a while."""
    monkeypatch.setattr(session_module, "_BACKOFF_S", (0.05, 0.8))
    monkeypatch.setattr(session_module, "_SETTLED_S", 0.3)
    monkeypatch.setattr(session_module.random, "uniform", lambda low, high: high)
    attempts = []
    behind = None
    pipes = []

    async def attempted(count):
        return len(attempts) >= count

    async def pump(reader, writer):
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def accept(reader, writer):
        attempts.append(time.monotonic())
        if behind is None:
            writer.close()
            return
        host, _, port = behind.rpartition(":")
        there = await asyncio.open_connection(host, int(port))
        pipes.extend((writer, there[1]))
        await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    target = replace(switch.target(), address=f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
    async with Fabric([target], PROGRAM) as fabric:
        await eventually(lambda: attempted(8))
        gaps = [later - earlier for earlier, later in itertools.pairwise(attempts)]
        assert all(
            gap >= at_least * 0.9
            for gap, at_least in zip(gaps, (0.05, 0.1, 0.2, 0.4, 0.8, 0.8), strict=False)
        )
        assert max(gaps) < 5, "back-off has a ceiling"
        behind = switch.address
        await connected(fabric)
        await asyncio.sleep(0.5)  # a good session
        behind, seen = None, len(attempts)
        for pipe in pipes:
            pipe.close()
        await eventually(lambda: attempted(seen + 2))
        assert attempts[seen + 1] - attempts[seen] < 0.4, "after a good session the pauses begin anew"
    server.close()

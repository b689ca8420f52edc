import asyncio
import socket
from collections.abc import Callable

import pytest

from controlplane.openflow.hub import Hub
from leveller.errors import UserError


def test_an_address_in_use_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UserError, match=f"openflow.listen = '{address}': Address already in use"):
            Hub().listen(address)


def test_there_is_one_listener_a_process() -> None:
    hub = Hub()
    hub.address = "127.0.0.1:6653"
    hub.listen("127.0.0.1:6653")
    with pytest.raises(UserError, match=r"OpenFlow is listened for on 127\.0\.0\.1:6653 already"):
        hub.listen("127.0.0.1:6654")


class Datapath:
    def __init__(self, number: int) -> None:
        self.id = number


class Message:
    def __init__(self, datapath: Datapath) -> None:
        self.datapath = datapath


async def test_a_switch_is_its_newest_connection() -> None:
    hub, seen = Hub(), []
    first, second = Datapath(7), Datapath(7)
    hub.attach(7, lambda switch, message: seen.append((switch and switch.datapath, message)))
    said = Message(second)
    hub.came(first)
    hub.came(second)
    hub.said(Message(first))
    hub.said(said)
    hub.went(first)
    hub.went(second)
    await asyncio.sleep(0)
    assert seen == [(first, None), (second, None), (second, said), (None, None)]


async def test_who_comes_late_finds_the_switch_there() -> None:
    hub, seen = Hub(), []
    datapath = Datapath(7)
    hub.came(datapath)
    hub.attach(7, lambda switch, message: seen.append(switch.datapath))
    assert seen == [datapath]
    hub.detach(7)
    hub.went(datapath)
    await asyncio.sleep(0)
    assert seen == [datapath]


class OnRelease:
    """A lock that has something done as soon as it is let go for the first time."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then: Callable[[], None] | None = then

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        then, self._then = self._then, None
        if then is not None:
            then()


async def test_who_attaches_while_the_switch_comes_is_told_once() -> None:
    hub, seen = Hub(), []
    datapath = Datapath(7)
    hub._lock = OnRelease(lambda: hub.attach(7, lambda switch, message: seen.append(switch.datapath)))
    hub.came(datapath)
    await asyncio.sleep(0)
    assert seen == [datapath]

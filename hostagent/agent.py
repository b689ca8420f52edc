"""The agent: looking at the host and reporting to the controllers, in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from ipaddress import ip_address

import structlog

from hostagent.config import AgentSection
from hostagent.interface import find
from hostagent.logs.watch import Watcher
from hostagent.observer import Observer
from hostagent.probe.sender import ProbeSender
from hostagent.session import ControllerSession, Identity
from hostagent.state import HostState
from leveller import __version__
from leveller.errors import UserError
from leveller.signals import stop_signals


async def run(config: AgentSection) -> None:
    """Run the agent until SIGINT or SIGTERM, or until cancelled; leave nothing behind.

    Raises UserError for what the configuration asks and the host does not have.
    """
    port = find(config.interface, config.addresses)
    gateway_mac = bytes.fromhex(config.gateway_mac.replace(":", "")) if config.gateway_mac else None
    sender = ProbeSender(port, gateway_mac)
    sessions: list[ControllerSession] = []

    def wake() -> None:
        for session in sessions:
            session.wake()

    state = HostState(wake)
    try:
        observer = Observer(config, port, state)
    except OSError as error:
        sender.close()
        raise UserError(
            f"this host's processes or connections cannot be listed ({error})",
            "agent.proc must be a mounted proc file system, and the kernel needs inet_diag (tcp_diag)",
        ) from None
    addresses = tuple(str(ip_address(address)) for address in port.addresses)
    identity = Identity(config.host, addresses, __version__, uuid.uuid4().hex)
    sessions += [
        ControllerSession(target, identity, state, sender.send, config.report_ms / 1000)
        for target in config.controllers
    ]
    structlog.get_logger().info(
        "agent started", host=config.host, interface=port.name, addresses=",".join(addresses)
    )
    try:
        observer.look(time.monotonic_ns())  # so that the first Report, which is full, is
        await _until_stopped(observer, sessions, config.poll_ms / 1000)
    finally:
        observer.close()
        sender.close()


async def _until_stopped(observer: Observer, sessions: list[ControllerSession], poll_s: float) -> None:
    stop = asyncio.Event()
    loop, numbers = asyncio.get_running_loop(), stop_signals()
    for number in numbers:
        loop.add_signal_handler(number, stop.set)
    work = [session.run() for session in sessions] + [_observe(observer, poll_s)]
    tasks: list[asyncio.Task[object]] = [asyncio.create_task(part) for part in (*work, stop.wait())]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for number in numbers:
            loop.remove_signal_handler(number)


async def _observe(observer: Observer, poll_s: float) -> None:
    """Look at the host when a log has grown or something is due."""
    loop, grown = asyncio.get_running_loop(), asyncio.Event()
    grown.set()
    try:
        while True:
            if grown.is_set():
                grown.clear()
                loop.add_reader(observer.watcher, _once, loop, observer.watcher, grown)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout((observer.due_ns - time.monotonic_ns()) / 1e9):
                    await grown.wait()
            try:
                observer.look(time.monotonic_ns())
            except OSError as error:
                # Out of descriptors or memory: say so, and go on when there are some again.
                structlog.get_logger().error("the host could not be looked at", reason=str(error))
                await asyncio.sleep(1.0)
            if grown.is_set():
                await asyncio.sleep(poll_s)
    finally:
        loop.remove_reader(observer.watcher)


def _once(loop: asyncio.AbstractEventLoop, watcher: Watcher, grown: asyncio.Event) -> None:
    # Until the next look it is enough to know: a log that grows all the time does not call us each time.
    loop.remove_reader(watcher)
    grown.set()

"""The agent: looking at the host and reporting to the controllers, in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import time
import uuid
from ipaddress import ip_address

import structlog

from hostagent.config import AgentSection, in_unit
from hostagent.interface import find
from hostagent.nccl.receiver import Receiver
from hostagent.observer import Observer
from hostagent.probe.sender import ProbeSender
from hostagent.session import ControllerSession, Identity
from hostagent.state import HostState
from leveller import __version__
from leveller.errors import UserError
from leveller.signals import stop_signals

OPEN_FILES = 65_536
"""Files that may be open, where the hard limit allows that."""


async def run(config: AgentSection) -> None:
    """Run the agent until SIGINT or SIGTERM, or until cancelled; leave nothing behind.

    Raises UserError for what the configuration asks and the host does not have.
    """
    config = in_unit(config)
    _allow_open_files()
    port = find(config.interface, config.addresses)
    gateway_mac = bytes.fromhex(config.gateway_mac.replace(":", "")) if config.gateway_mac else None
    sender = ProbeSender(port, gateway_mac)
    sessions: list[ControllerSession] = []

    def wake() -> None:
        for session in sessions:
            session.wake()

    def note() -> None:
        for session in sessions:
            session.note()

    boot = uuid.uuid4().hex

    def identity(addresses: tuple[bytes, ...]) -> Identity:
        texts = tuple(str(ip_address(address)) for address in addresses)
        return Identity(config.host, texts, __version__, boot)

    def speak_for(addresses: tuple[bytes, ...]) -> None:
        sender.speak_for(addresses)
        for session in sessions:
            session.introduce(identity(addresses))

    state = HostState(wake, note)
    try:
        observer = Observer(config, port, state, speak_for)
    except OSError as error:
        sender.close()
        raise UserError(
            f"this host's processes or connections cannot be listed ({error})",
            "agent.proc must be a mounted proc file system, and the kernel needs inet_diag (tcp_diag)",
        ) from None
    try:
        receiver = _nccl_receiver(config)
    except UserError:
        observer.close()
        sender.close()
        raise
    own = identity(port.addresses)
    sessions += [
        ControllerSession(target, own, state, sender.send, config.report_ms / 1000, config.tls)
        for target in config.controllers
    ]
    structlog.get_logger().info(
        "agent started", host=config.host, interface=port.name, addresses=",".join(own.addresses)
    )
    try:
        observer.look(time.monotonic_ns())  # so that the first Report, which is full, is
        await _until_stopped(observer, receiver, sessions, config.poll_ms / 1000)
    finally:
        if receiver is not None:
            if receiver.refused:
                structlog.get_logger().info("datagrams not believed", reasons=dict(receiver.refused))
            receiver.close()
        observer.close()
        sender.close()
        structlog.get_logger().info("agent stopped", host=config.host)


def _allow_open_files() -> None:
    """Take as many descriptors as may be: tenants' logs, namespaces and processes take some each."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _nccl_receiver(config: AgentSection) -> Receiver | None:
    """Open the socket for NCCL's plugins where there is to be one."""
    return Receiver(config.nccl_socket, str(config.proc)) if config.nccl_socket else None


async def _until_stopped(
    observer: Observer, receiver: Receiver | None, sessions: list[ControllerSession], poll_s: float
) -> None:
    stop = asyncio.Event()
    loop, numbers = asyncio.get_running_loop(), stop_signals()
    for number in numbers:
        loop.add_signal_handler(number, stop.set)
    work = [session.run() for session in sessions] + [_observe(observer, poll_s)]
    if receiver is not None:
        work.append(_listen(observer, receiver, poll_s))
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
                loop.add_reader(observer, _once, loop, observer, grown)
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
        loop.remove_reader(observer)


async def _listen(observer: Observer, receiver: Receiver, poll_s: float) -> None:
    """Take in what NCCL's plugins tell; whoever tells a lot is read every ``poll_s`` only."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    try:
        while True:
            loop.add_reader(receiver, _once, loop, receiver, told)
            await told.wait()
            told.clear()
            observer.listen(receiver)
            await asyncio.sleep(poll_s)
    finally:
        loop.remove_reader(receiver)


def _once(loop: asyncio.AbstractEventLoop, readable: Observer | Receiver, told: asyncio.Event) -> None:
    # Until the next look it is enough to know: what is readable all the time does not call us each time.
    loop.remove_reader(readable)
    told.set()

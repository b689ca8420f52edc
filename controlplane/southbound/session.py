"""The life with one switch: connect, reconcile, keep it at the latest ``Desired``; for ever.

One task a switch, so one that hangs or dies delays no other. There is no queue: the newest ``Desired``
replaces one that has not been begun. What the switch holds is tracked update by update as it acknowledges
them, and read back whenever that can be in doubt: in a new session, on becoming the primary, and when an
update shows that the switch holds something else.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping

import structlog

from controlplane.southbound import tables
from controlplane.southbound.contract import CONTRACT
from controlplane.southbound.device import Device, Driver, OnPacket
from controlplane.southbound.errors import LostPrimacyError, SwitchError
from controlplane.southbound.ledger import Ledger
from controlplane.southbound.state import Desired, Held, Setup
from controlplane.southbound.status import Outcome, Result, SwitchStatus
from controlplane.southbound.writer import Request, Writer
from leveller.errors import UserError

log = structlog.get_logger()

_BACKOFF_S = (0.1, 5.0)
"""First and longest pause before connecting again; it doubles, with jitter."""

_LOOK_IN_S = 5.0
"""How long a switch goes on before it is asked whether it is still there, and as it was thought to be."""

_LOOK_THROUGH_PART = 0.05
"""How much of the time it may take to read a switch's long tables, as far as those are looked through."""

_SETTLED_S = 2.0
"""A session that lasted this long was a good one: the pause after it is the first again."""


class Session:
    """See the module; ``run`` is its task, everything else may be called at any time in the event loop."""

    def __init__(
        self,
        driver: Driver,
        deadline_s: float,
        on_packet: OnPacket,
        on_status: Callable[[SwitchStatus], None],
    ) -> None:
        self._driver = driver
        self._deadline_s = deadline_s
        self._on_packet = on_packet
        self._on_status = on_status
        self._device: Device | None = None
        self._ledger: Ledger | None = None
        self._desired: Desired | None = None
        self._setup: Setup | None = None
        """What was last written, or begun, of the configuration's."""
        self._pending: Request | None = None
        self._under_way: Request | None = None
        self._wake = asyncio.Event()
        self.in_order = asyncio.Event()
        """Set while the switch has been read back, or is another controller's."""
        self._look_through_at = time.monotonic()
        self._sessions = 0
        self._pushes = 0
        self._error: str | None = None
        self._log = log.bind(switch=driver.name)
        self._writer = Writer(driver.sizes, self._read_back, lambda: self._pending is not None, self._log)

    # -- what the fabric asks

    def submit(self, desired: Desired) -> asyncio.Future[Outcome]:
        """Want ``desired`` from now on; the future ends as ``Fabric.apply`` says."""
        request = Request(desired, asyncio.get_running_loop().create_future())
        self._desired = desired
        if self._pending is not None:
            self._pending.finish(Result.SUPERSEDED)
            self._pending = None
        if self._device is None:
            request.finish(Result.DISCONNECTED, error=self._error)
        elif not self._device.primary:
            request.finish(Result.BACKUP)
        else:
            self._pending = request
            self._wake.set()
        return request.done

    def held(self) -> Held | None:
        """Return what the switch holds, None while that is not known."""
        return None if self._ledger is None else tables.held(self._ledger.contents)

    def prefer(self, rates: Mapping[int, float]) -> None:
        """Let groups of the lowest rate keep their flows' entries where there is no room for all."""
        self._writer.room.rates = rates

    def left_out(self) -> Mapping[int, int]:
        """Return group -> flows that the switch has no room for."""
        left_out: Counter[int] = Counter()
        if self._ledger is not None:
            for groups in self._writer.room.left_out().values():
                left_out.update(groups)
        return left_out

    def status(self) -> SwitchStatus:
        """Return the state of the switch as seen now."""
        contents: tables.Contents = {}
        refused: Mapping[str, int] = {}
        error = self._error
        if self._ledger is not None:
            contents, refused = self._ledger.contents, self._writer.refused(self._ledger)
            error = error or self._writer.reason(self._ledger)
        return SwitchStatus(
            name=self._driver.name,
            address=self._driver.address,
            connected=self._device is not None,
            primary=self._device is not None and self._device.primary,
            error=error,
            active_bank=tables.active_bank(contents) if contents else None,
            entries={table: len(rows) for table, rows in contents.items()},
            refused=refused,
            left_out=self.left_out(),
            sessions=self._sessions,
            pipeline_pushes=self._pushes,
        )

    def device(self) -> Device:
        """Return the open session with the switch. Raises SwitchError where there is none."""
        if self._device is None:
            raise SwitchError(f"{self._driver.name} is not connected ({self._error or 'not yet'})")
        return self._device

    # -- its own task

    async def run(self) -> None:
        """Connect and serve until cancelled; every failure ends in another attempt, after a pause."""
        pause = _BACKOFF_S[0]
        while True:
            device = None
            began = time.monotonic()
            error = None
            try:
                device = self._driver.connect()
                await self._session(device)
            except (SwitchError, UserError) as failure:
                error = str(failure)
            except Exception as failure:  # noqa: BLE001 - a fault of ours must not cost the switch for good
                self._log.exception("session failed")
                error = repr(failure)
            finally:
                if device is not None:
                    await device.close()
                self._lost(error)
            if time.monotonic() - began > _SETTLED_S:
                pause = _BACKOFF_S[0]
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
            pause = min(2 * pause, _BACKOFF_S[1])

    async def _session(self, device: Device) -> None:
        await device.open()
        self._device = device
        self._sessions += 1
        listener = asyncio.create_task(device.listen(self._wake.set, self._on_packet))
        worker = asyncio.create_task(self._work(device))
        try:
            done, _ = await asyncio.wait((listener, worker), return_when=asyncio.FIRST_COMPLETED)
            done.pop().result()  # neither ends but by an error
        finally:
            for task in (listener, worker):
                task.cancel()
            await asyncio.gather(listener, worker, return_exceptions=True)

    async def _work(self, device: Device) -> None:
        while True:
            try:
                if device.primary:
                    await self._serve(device)
                else:
                    await self._follow(device)
            except LostPrimacyError as error:
                await self._deposed(device, error)

    async def _deposed(self, device: Device, error: LostPrimacyError) -> None:
        """Wait for the stream to say what a refused RPC said already: that this is not the primary.

        Raises SwitchError where it does not, so that a new session settles it.
        """
        self._log.info("not the primary any more", reason=str(error))
        try:
            async with asyncio.timeout(self._deadline_s):
                while device.primary:
                    self._wake.clear()
                    await self._wake.wait()
        except TimeoutError:
            raise SwitchError(f"{error}, but the stream says that this is the primary") from None

    async def _follow(self, device: Device) -> None:
        """Be a backup until that changes."""
        self._ledger = None
        if self._pending is not None:
            self._pending.finish(Result.BACKUP)
            self._pending = None
        self._in_order(device)
        self._on_status(self.status())
        while not device.primary:
            self._wake.clear()
            await self._wake.wait()

    async def _serve(self, device: Device) -> None:
        """Be the primary until that changes."""
        await self._take_stock(device)
        self._in_order(device)
        self._again()
        self._on_status(self.status())
        look_at = time.monotonic() + _LOOK_IN_S
        while device.primary:
            self._wake.clear()
            look_in_s = look_at - time.monotonic()
            if look_in_s <= 0:  # whether it is idle or not
                await self._look_in(device)
                look_at = time.monotonic() + _LOOK_IN_S
                continue
            if self._pending is None:
                review_s = self._writer.review_in_s()
                try:
                    async with asyncio.timeout(look_in_s if review_s is None else min(review_s, look_in_s)):
                        await self._wake.wait()
                except TimeoutError:
                    if self._writer.review_in_s() == 0.0:
                        self._again()
                continue
            self._under_way, self._pending = self._pending, None
            assert self._ledger is not None
            if self._under_way.desired.setup is not self._setup:
                # Rows rely on each other: what was refused for another's sake may not be any more.
                self._setup = self._under_way.desired.setup
                self._ledger.refused.clear()
            try:
                await self._writer.bring_up(device, self._under_way, self._ledger)
            except LostPrimacyError:
                self._under_way.finish(Result.BACKUP)
                raise

    def _in_order(self, device: Device) -> None:
        """Note that the switch has been read back, or is another controller's."""
        self._error = None
        event = "role changed" if self.in_order.is_set() else "switch connected"
        self._log.info(event, primary=device.primary)
        self.in_order.set()

    async def _look_in(self, device: Device) -> None:
        """See that the switch still answers, and still holds what is small (`Driver.looked_in`).

        With a role of ours another client may push the program again, which empties every table. Where others
        can write without being the primary, see now and then that it holds the rest, too.
        """
        assert self._ledger is not None
        began = time.monotonic()
        through = bool(self._driver.looked_through) and began >= self._look_through_at
        names = {*self._driver.looked_in, *(self._driver.looked_through if through else ())}
        contents = self._ledger.contents
        thought = {(table, key): call for table in names for key, call in contents[table].items()}
        rows = device.rows(names, None if through else self._deadline_s)
        found = {(table, key): call async for table, key, call in rows}
        if through:
            now = time.monotonic()
            self._look_through_at = now + (now - began) / _LOOK_THROUGH_PART
        if found != thought:
            count = len(dict(found.items() ^ thought.items()))
            self._log.warning("switch holds something else than thought", rows=count)
            await self._take_stock(device)
            self._again()

    def _again(self) -> None:
        """Bring the switch to what was last wanted of it, unless something newer already waits."""
        if self._pending is None and self._desired is not None:
            self._pending = Request(self._desired, asyncio.get_running_loop().create_future())

    async def _take_stock(self, device: Device) -> None:
        """Give the switch its program where it has another, and read back what it holds."""
        if await device.ensure_pipeline():
            self._pushes += 1
            self._writer.forget(pushed=True)
            self._log.info("pipeline pushed")
        await self._read_back(device)

    async def _read_back(self, device: Device) -> Ledger:
        self._ledger = None
        self._writer.forget()
        contents: tables.Contents = {table: {} for table in CONTRACT}
        count = 0
        async for table, key, call in device.rows():
            contents[table][key] = call
            count += 1
            if count % 1000 == 0:
                await asyncio.sleep(0)  # let the other switches' tasks run
        self._ledger = Ledger(contents)
        return self._ledger

    def _lost(self, error: str | None) -> None:
        """Note that the session is over, or never came about; ``error`` is None where it was ended here."""
        was_in_order = self.in_order.is_set()
        # A session that fails each time on the way, say at the pipeline, is told once.
        news = error is not None and (was_in_order or error != self._error)
        self._device = None
        self._ledger = None
        self._error = error
        self.in_order.clear()
        for request in (self._under_way, self._pending):
            if request is not None:
                request.finish(Result.FAILED, error=error or "the controller stopped")
        self._under_way = self._pending = None
        if news:
            self._log.warning("switch lost" if was_in_order else "switch not connected", error=error)
            self._on_status(self.status())

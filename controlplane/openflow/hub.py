"""Where OpenFlow switches connect: os-ken's AppManager in threads of its own, beside the event loop.

os-ken is made of threads, one listener a process and a global configuration; all of that ends here. A
switch is known by its datapath id. What it sends is handed over to the event loop of whoever
attached to that id; what is sent to it goes through `Switch.send`.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import Any, ClassVar

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import controller as os_ken_controller  # noqa: F401 (registers its options)
from os_ken.controller import ofp_event
from os_ken.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3

from leveller.errors import UserError

APP = "controlplane.openflow.hub"


class Switch:
    """A switch that is connected; ``datapath`` is os-ken's, for making messages."""

    def __init__(self, datapath: Any) -> None:  # noqa: ANN401 (os-ken is untyped)
        self.datapath = datapath

    async def send(self, messages: list[Any]) -> list[int]:
        """Send ``messages`` in one piece; return their transaction ids. May wait for a slow switch."""
        xids = []
        data = bytearray()
        for message in messages:
            xids.append(message.xid if message.xid is not None else self.datapath.set_xid(message))
            message.serialize()
            data += message.buf
        await asyncio.to_thread(self.datapath.send, bytes(data))
        return xids

    def close(self) -> None:
        """End the connection; the switch will come back."""
        self.datapath.close()


Receiver = Callable[[Switch | None, Any], None]
"""Called in its event loop with (switch, message) for each message, (switch, None) when the switch has come,
(None, None) when it is gone."""


class Hub:
    """The one listener of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._receivers: dict[int, tuple[asyncio.AbstractEventLoop, Receiver]] = {}
        self._switches: dict[int, Switch] = {}
        self.address: str | None = None

    def listen(self, address: str) -> None:
        """Take connections on ``HOST:PORT`` from now on, until the process ends.

        Raises UserError where it listens on another address already, or cannot listen there.
        """
        if self.address == address:
            return
        if self.address is not None:
            raise UserError(
                f"OpenFlow is listened for on {self.address} already", "give openflow.listen the same address"
            )
        host, _, port = address.rpartition(":")
        _check_free(host.strip("[]"), int(port), address)
        cfg.CONF([], project="leveller", default_config_files=[], default_config_dirs=[])
        cfg.CONF.set_override("ofp_listen_host", host.strip("[]"))
        cfg.CONF.set_override("ofp_tcp_listen_port", int(port))
        self.address = address
        # os-ken's threads have no end; as daemons, like the one that starts them, they do not hold up ours.
        threading.Thread(
            target=app_manager.AppManager.run_apps, args=([APP],), name="os-ken", daemon=True
        ).start()

    def attach(self, datapath_id: int, receiver: Receiver) -> None:
        """Have ``receiver`` called, in the running event loop, for the switch of that id."""
        with self._lock:
            self._receivers[datapath_id] = asyncio.get_running_loop(), receiver
            switch = self._switches.get(datapath_id)
        if switch is not None:
            receiver(switch, None)

    def detach(self, datapath_id: int) -> None:
        """Stop calling."""
        with self._lock:
            self._receivers.pop(datapath_id, None)

    # -- in os-ken's threads

    def came(self, datapath: Any) -> None:  # noqa: ANN401
        """Take in a new connection, in the place of an older one of the same switch."""
        switch = Switch(datapath)
        with self._lock:
            self._switches[datapath.id] = switch
            self._hand_over(datapath.id, switch, None)

    def went(self, datapath: Any) -> None:  # noqa: ANN401
        """Forget a connection."""
        with self._lock:
            there = self._switches.get(datapath.id)
            if there is None or there.datapath is not datapath:
                return
            del self._switches[datapath.id]
            self._hand_over(datapath.id, None, None)

    def said(self, message: Any) -> None:  # noqa: ANN401
        """Hand a message over."""
        with self._lock:
            switch = self._switches.get(message.datapath.id)
            if switch is not None and switch.datapath is message.datapath:
                self._hand_over(message.datapath.id, switch, message)

    def _hand_over(self, datapath_id: int, switch: Switch | None, message: Any) -> None:  # noqa: ANN401
        """Have who is attached called; under the lock, so that who attaches meanwhile is told once."""
        found = self._receivers.get(datapath_id)
        if found is not None:
            loop, receiver = found
            if not loop.is_closed():
                loop.call_soon_threadsafe(receiver, switch, message)


HUB = Hub()
"""os-ken makes its applications itself, one of each a process, so they find what they serve here."""

_REPLIES = (
    ofp_event.EventOFPErrorMsg,
    ofp_event.EventOFPBarrierReply,
    ofp_event.EventOFPRoleReply,
    ofp_event.EventOFPFlowStatsReply,
    ofp_event.EventOFPTableStatsReply,
    ofp_event.EventOFPGroupDescStatsReply,
    ofp_event.EventOFPMeterFeaturesStatsReply,
    ofp_event.EventOFPMeterConfigStatsReply,
    ofp_event.EventOFPPacketIn,
)


class LevellerApp(app_manager.OSKenApp):  # type: ignore[misc]  # os-ken is untyped
    """The os-ken application: passes on who comes, goes and says what."""

    OFP_VERSIONS: ClassVar[list[int]] = [ofproto_v1_3.OFP_VERSION]

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])  # type: ignore[untyped-decorator]
    def state_changed(self, event: Any) -> None:  # noqa: ANN401
        """Take note that a switch has come, or gone."""
        datapath = event.datapath
        if datapath.id is not None:
            (HUB.came if event.state == MAIN_DISPATCHER else HUB.went)(datapath)

    @set_ev_cls(list(_REPLIES), MAIN_DISPATCHER)  # type: ignore[untyped-decorator]
    def said(self, event: Any) -> None:  # noqa: ANN401
        """Hand on what a switch has said."""
        HUB.said(event.msg)


def _check_free(host: str, port: int, address: str) -> None:
    """Raise UserError where nobody can listen there: os-ken would only log that, in a thread of its own."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise UserError(
                f"openflow.listen = {address!r}: {error.strerror}", "give another address"
            ) from None

"""The connections of every network namespace that jobs live in.

A container's sockets are invisible from the host's namespace: netlink answers for the namespace that its
socket was opened in. So a thread enters each namespace once, opens the sockets there and ends; the sockets
stay, and are asked from the agent's own thread.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections import Counter
from collections.abc import Callable, Collection, Container, Mapping
from contextlib import ExitStack
from ipaddress import ip_address
from threading import Thread
from typing import TypeVar

import structlog

from hostagent.flows.activity import TcpActivity
from hostagent.flows.attached import attached
from hostagent.flows.connection import Connection, FiveTuple, Listing
from hostagent.flows.inet_diag import Destroyed, InetDiag
from hostagent.rtnetlink import DUMP, REQUEST, ask, attributes, connect

MAX_DESTROYED = 512
"""Destroyed sockets that are looked at each time; the kernel keeps more for the next."""

MAX_NAMESPACES, MAX_OF_A_USER = 64, 32
"""Most namespaces that are followed, in all and for one user: each takes descriptors, and a walk through the
kernel's table of connections whenever those are listed."""

MAX_ADDRESSES = 8
"""Most addresses of one namespace that are spoken for: who may set any must not crowd out others."""

_CLONE_NEWNET = 0x4000_0000
_RTM_GETADDR = 22
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_ADDRESS = struct.Struct("=BBBBI")  # ifaddrmsg: family, prefix length, flags, scope, index

_libc = ctypes.CDLL(None, use_errno=True)

Result = TypeVar("Result")


class _View:
    """One namespace, seen by sockets opened in it (in the calling thread's)."""

    def __init__(self, proc: str, host: int | None = None) -> None:
        """Open the sockets. Where ``host`` is a namespace, only addresses that lead to it count."""
        with ExitStack() as undo:
            self.diag = InetDiag()
            undo.callback(self.diag.close)
            self.destroyed = Destroyed()
            undo.callback(self.destroyed.close)
            self.activity = TcpActivity(proc)
            undo.callback(self.activity.close)
            self.addresses = _addresses(attached(host) if host is not None else None)
            self._closing = undo.pop_all()

    def close(self) -> None:
        """Close its sockets."""
        self._closing.close()


class Namespaces:
    """The agent's own network namespace and those that it is told to follow. Close it when done."""

    def __init__(self, proc: str) -> None:
        """``proc`` is where the jobs' processes are. Raises OSError without inet_diag or without ``proc``."""
        self._proc = proc
        self._own = _View(proc)
        self._own_namespace = os.open(f"{proc}/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self._own_id = os.fstat(self._own_namespace).st_ino
        self._others: dict[int, _View] = {}
        self._refused: set[int] = set()
        self._crowded: set[int] = set()
        self._log = structlog.get_logger()

    def close(self) -> None:
        """Close every socket."""
        for view in self._views():
            view.close()
        os.close(self._own_namespace)

    def follow(self, users: Mapping[int, int]) -> bool:
        """See the namespaces of some processes, and no others; say whether they are others now.

        ``users`` are whose processes, by pid. Where they are in too many namespaces, those that are followed
        already go first.
        """
        wanted: dict[int, int] = {}
        for pid in users:
            try:
                wanted.setdefault(os.stat(f"{self._proc}/{pid}/ns/net").st_ino, pid)
            except OSError:
                continue  # it is gone, or not ours to look at, which is said elsewhere
        wanted.pop(self._own_id, None)
        gone = [id_ for id_ in self._others if id_ not in wanted]
        for id_ in gone:
            self._others.pop(id_).close()
        self._refused &= wanted.keys()
        of_user = Counter(users[wanted[id_]] for id_ in self._others)
        new = [id_ for id_ in wanted if id_ not in self._others and id_ not in self._refused]
        for id_ in new:
            user = users[wanted[id_]]
            if len(self._others) >= MAX_NAMESPACES or of_user[user] >= MAX_OF_A_USER:
                self._complain_of(user)
                continue
            self._enter(id_, wanted[id_])
            of_user[user] += 1
        return bool(gone or new)

    def _complain_of(self, user: int) -> None:
        if user not in self._crowded:
            self._crowded.add(user)
            self._log.warning("a user's jobs are in more network namespaces than are looked at", user=user)

    @property
    def foreign_addresses(self) -> list[bytes]:
        """Addresses in the namespaces that are followed, those of the first one first; 4 or 16 bytes each.

        Only those of interfaces that lead to the agent's own namespace (`hostagent.flows.attached`), and no
        more than MAX_ADDRESSES of each.
        """
        found: dict[bytes, None] = {}
        for view in self._others.values():
            found.update(dict.fromkeys(sorted(view.addresses)[:MAX_ADDRESSES]))
        return list(found)

    def changed(self) -> bool:
        """Say whether a connection has opened or closed since the last call; true at the first."""
        return sum(view.activity.changed() for view in self._views()) > 0  # each has to look

    def connections(
        self, ignored: Container[int] = frozenset(), known: Container[int] = frozenset()
    ) -> Listing:
        """List every connection that may send; see `InetDiag.connections`. Raises OSError."""
        listings = [view.diag.connections(ignored, known) for view in self._views()]
        return Listing(
            [connection for listing in listings for connection in listing.connections],
            [cookie for listing in listings for cookie in listing.present],
        )

    def lookup(self, known: Mapping[int, FiveTuple]) -> list[Connection]:
        """Return those of the ``known`` connections that are found; see `InetDiag.lookup`. Raises OSError."""
        if not self._others:
            return self._own.diag.lookup(known)
        found: list[Connection] = []
        for view in self._views():
            here = {cookie: key for cookie, key in known.items() if key.source in view.addresses}
            found += view.diag.lookup(here)
        return found

    def destroyed(self) -> list[Connection]:
        """Return the sockets that were destroyed since the last call; see `Destroyed.drain`."""
        return [connection for view in self._views() for connection in view.destroyed.drain(MAX_DESTROYED)]

    @property
    def overflows(self) -> int:
        """How often more sockets were destroyed at once than the kernel keeps for us."""
        return sum(view.destroyed.overflows for view in self._views())

    def _views(self) -> list[_View]:
        return [self._own, *self._others.values()]

    def _enter(self, id_: int, pid: int) -> None:
        try:
            descriptor = os.open(f"{self._proc}/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return  # it has gone
        try:
            if os.fstat(descriptor).st_ino != id_:
                return
            self._others[id_] = inside(descriptor, lambda: _View(self._proc, self._own_namespace))
        except OSError as error:
            if not self._refused:
                self._log.warning(
                    "connections in other network namespaces cannot be seen",
                    reason=error.strerror or str(error),
                    mend="run as root or with CAP_SYS_ADMIN, or have jobs use the host's network",
                )
            self._refused.add(id_)
        finally:
            os.close(descriptor)


def inside(namespace: int, function: Callable[[], Result]) -> Result:
    """Return what ``function`` returns in the network namespace that is open as descriptor ``namespace``.

    It runs on a thread of its own, so that nothing else ever is in that namespace. Raises OSError where it
    may not be entered, and what ``function`` raises.
    """
    results: list[Result] = []
    errors: list[Exception] = []

    def body() -> None:
        try:
            if _libc.setns(namespace, _CLONE_NEWNET) < 0:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code))
            results.append(function())
        except Exception as error:  # noqa: BLE001 (raised again in the caller's thread)
            errors.append(error)

    thread = Thread(target=body, daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _addresses(indices: Collection[int] | None) -> frozenset[bytes]:
    """Return the addresses of the calling thread's interfaces, but for those of loopback or link.

    Those of ``indices`` only, where that is not None: a tenant's interfaces may have names that are no text.
    """
    with connect() as netlink:
        answers = ask(netlink, _RTM_GETADDR, REQUEST | DUMP, _ADDRESS.pack(0, 0, 0, 0, 0))
    present: set[bytes] = set()
    for answer in answers:
        family, _, _, _, index = _ADDRESS.unpack_from(answer)
        if family in (socket.AF_INET, socket.AF_INET6) and (indices is None or index in indices):
            found = attributes(answer[_ADDRESS.size :])
            present.add(
                found.get(_IFA_LOCAL) or found[_IFA_ADDRESS]
            )  # the latter is the peer's, if there is one
    return frozenset(
        packed
        for packed in present
        if not ((address := ip_address(packed)).is_loopback or address.is_link_local)
    )

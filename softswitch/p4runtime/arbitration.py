"""Client arbitration (spec, Client Arbitration and Controller Replication): who is primary, per role."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from finsy.proto import U128, p4r, rpc_status
from google.protobuf.any_pb2 import Any
from grpc import StatusCode

from softswitch.p4runtime import roles
from softswitch.p4runtime.errors import P4Error, invalid, number
from softswitch.p4runtime.session import Session

MAX_STREAMS = 32
"""Live streams in all; every one holds a thread of the server for as long as it lives."""


@dataclass(eq=False)
class _Live:
    client: Session
    role: str
    election_id: int | None


@dataclass(eq=False)
class _Role:
    name: str
    live: list[_Live] = field(default_factory=list)
    primary: _Live | None = None
    highest: int | None = None
    """The highest election id ever seen; None while there has never been a primary."""
    raw_config: Any | None = None
    config: roles.RoleConfig = roles.FULL


class Arbitration:
    """The clients of one device, their election ids, and the primary of each role.

    ``write_lock`` is held by whoever carries out a Write or a pipeline push; a new primary is accepted only
    after it, as the specification demands.
    """

    def __init__(self, device_id: int) -> None:
        self.device_id = device_id
        self.write_lock = threading.Lock()
        self._mutex = threading.Lock()
        self._roles: dict[str, _Role] = {}
        self._live: dict[Session, _Live] = {}
        self.primaries: tuple[tuple[Session, roles.RoleConfig], ...] = ()
        """Every role's primary with its rights, for notifications: read without a lock, replaced whole."""

    def update(self, client: Session, message: p4r.MasterArbitrationUpdate) -> None:
        """Handle a MasterArbitrationUpdate from ``client``. The P4Error it raises has to end the stream."""
        role_name = message.role.name
        election_id = U128.decode(message.election_id) if message.HasField("election_id") else None
        with self._mutex:
            live = self._live.get(client)
            if live is None:
                self._check_new(message)
            else:
                self._check_known(live, message)
            raw_config = message.role.config if message.role.HasField("config") else None
            config = roles.FULL if raw_config is None else roles.parse(raw_config)
            role = self._roles.get(role_name) or _Role(role_name)
            if election_id is not None and any(
                other.election_id == election_id for other in role.live if other is not live
            ):
                raise invalid(f"election id {election_id} is already used by another client of the same role")
            self._roles[role_name] = role
            if live is None:
                live = self._live[client] = _Live(client, role_name, election_id)
                role.live.append(live)
            live.election_id = election_id
            if election_id is not None and (role.highest is None or election_id >= role.highest):
                self._make_primary(role, live, election_id, raw_config, config)
            elif role.primary is live:
                role.primary = None
                self._refresh()
                self._notify(role, role.live)
            else:
                self._notify(role, [live])

    def disconnect(self, client: Session) -> None:
        """Forget a client whose stream has ended; the others of its role are told when it was the primary."""
        with self._mutex:
            live = self._live.pop(client, None)
            if live is None:
                return
            role = self._roles[live.role]
            role.live.remove(live)
            if role.primary is live:
                role.primary = None
                self._refresh()
                self._notify(role, role.live)

    def check_device(self, device_id: int) -> None:
        """Raise NOT_FOUND for a device that is not this one."""
        if device_id != self.device_id:
            raise P4Error(StatusCode.NOT_FOUND, f"device {device_id} is not here; this is {self.device_id}")

    def authorize(
        self, request: p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest
    ) -> roles.RoleConfig:
        """Check that ``request`` comes from the primary of its role and return that role's rights.

        Hold ``write_lock``. Raises NOT_FOUND for an unknown device or role, PERMISSION_DENIED otherwise.
        """
        self.check_device(request.device_id)
        role = self._roles.get(request.role)
        if role is None and request.role:
            raise P4Error(StatusCode.NOT_FOUND, f"no client has ever taken the role {request.role!r}")
        primary = role.primary if role else None
        if role is None or primary is None:
            raise P4Error(
                StatusCode.PERMISSION_DENIED, "there is no primary; open a stream and arbitrate first"
            )
        election_id = U128.decode(request.election_id) if request.HasField("election_id") else None
        if election_id != primary.election_id:
            raise P4Error(StatusCode.PERMISSION_DENIED, f"election id {election_id} is not the primary's")
        return role.config

    def is_primary(self, client: Session) -> bool:
        """Whether ``client`` is the primary of its role now."""
        return any(primary is client for primary, _ in self.primaries)

    def role_config(self, name: str) -> roles.RoleConfig:
        """Return the rights of the role called ``name``; full access for one that nobody has configured."""
        role = self._roles.get(name)
        return role.config if role else roles.FULL

    def _check_new(self, message: p4r.MasterArbitrationUpdate) -> None:
        self.check_device(message.device_id)
        if len(self._live) >= MAX_STREAMS:
            raise P4Error(StatusCode.RESOURCE_EXHAUSTED, f"there are {MAX_STREAMS} streams already")

    @staticmethod
    def _check_role(live: _Live, name: str) -> None:
        if name != live.role:
            raise P4Error(
                StatusCode.FAILED_PRECONDITION,
                f"this stream has the role {live.role!r}; open a new one for the role {name!r}",
            )

    def _check_known(self, live: _Live, message: p4r.MasterArbitrationUpdate) -> None:
        if message.device_id != self.device_id:
            raise P4Error(
                StatusCode.FAILED_PRECONDITION,
                f"this stream belongs to device {self.device_id}, not {message.device_id}",
            )
        self._check_role(live, message.role.name)

    def _make_primary(
        self, role: _Role, live: _Live, election_id: int, raw_config: Any | None, config: roles.RoleConfig
    ) -> None:
        # The specification's order: stop the old one, tell the others, let Writes end, accept, tell it.
        if role.primary is not live:
            role.primary = None
        role.highest = election_id
        role.raw_config = raw_config
        self._notify(role, [other for other in role.live if other is not live], has_primary=True)
        with self.write_lock:
            role.config = config
            role.primary = live
        self._refresh()
        self._notify(role, [live])

    def _refresh(self) -> None:
        self.primaries = tuple(
            (role.primary.client, role.config) for role in self._roles.values() if role.primary is not None
        )

    def _notify(self, role: _Role, to: list[_Live], *, has_primary: bool | None = None) -> None:
        if has_primary is None:
            has_primary = role.primary is not None
        for live in to:
            if role.primary is live:
                status = rpc_status.Status(message="is primary")
            elif has_primary:
                status = rpc_status.Status(
                    code=number(StatusCode.ALREADY_EXISTS), message="is backup; another client is primary"
                )
            else:
                status = rpc_status.Status(
                    code=number(StatusCode.NOT_FOUND), message="is backup; there is no primary"
                )
            update = p4r.MasterArbitrationUpdate(device_id=self.device_id, status=status)
            if role.name or role.raw_config is not None:
                update.role.name = role.name
                if role.raw_config is not None:
                    update.role.config.CopyFrom(role.raw_config)
            if role.highest is not None:
                update.election_id.CopyFrom(U128.encode(role.highest))
            live.client.send(p4r.StreamMessageResponse(arbitration=update))

"""PacketReplicationEngineEntry (spec section of that name): multicast groups and clone sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy

from finsy.proto import p4r
from grpc import StatusCode

from softswitch.p4runtime.errors import P4Error, invalid
from softswitch.p4runtime.program import Program
from softswitch.p4runtime.values import decode

_PORT_BITS = 9
_INSTANCE_BITS = 16
_SDN_CPU = 0xFFFF_FFFD
"""SDN port number of the CPU (spec, Translation of Port Numbers)."""


def write(program: Program, kind: int, message: p4r.PacketReplicationEngineEntry, cpu_port: int) -> None:
    """Insert, modify or delete a multicast group or clone session. Raises P4Error or TableError."""
    match message.WhichOneof("type"):
        case "multicast_group_entry":
            _write_multicast(program, kind, message.multicast_group_entry, cpu_port)
        case "clone_session_entry":
            _write_clone(program, kind, message.clone_session_entry, cpu_port)
        case _:
            raise invalid("a replication engine entry must be a multicast group or a clone session")


def read(program: Program, request: p4r.PacketReplicationEngineEntry) -> Iterator[p4r.Entity]:
    """Yield a multicast group or clone session as it was written; with id 0, all of them."""
    match request.WhichOneof("type"):
        case "multicast_group_entry":
            wanted = request.multicast_group_entry.multicast_group_id
            for group_id, group in list(program.multicast.items()):
                if wanted in (0, group_id):
                    entry = p4r.PacketReplicationEngineEntry(multicast_group_entry=group)
                    yield p4r.Entity(packet_replication_engine_entry=entry)
        case "clone_session_entry":
            wanted = request.clone_session_entry.session_id
            for session_id, session in list(program.clones.items()):
                if wanted in (0, session_id):
                    entry = p4r.PacketReplicationEngineEntry(clone_session_entry=session)
                    yield p4r.Entity(packet_replication_engine_entry=entry)
        case _:
            raise invalid("a replication engine entry must be a multicast group or a clone session")


def _write_multicast(program: Program, kind: int, message: p4r.MulticastGroupEntry, cpu_port: int) -> None:
    group_id = message.multicast_group_id
    groups = program.pipeline.multicast
    if not group_id:
        raise invalid("a multicast group's id is not 0")
    if kind == p4r.Update.DELETE:
        groups.delete(group_id)
        del program.multicast[group_id]
        return
    replicas = _replicas(message.replicas, f"multicast group {group_id}", cpu_port)
    if kind == p4r.Update.INSERT:
        groups.insert(group_id, replicas)
    else:
        groups.modify(group_id, replicas)
    program.multicast[group_id] = copy(message)


def _write_clone(program: Program, kind: int, message: p4r.CloneSessionEntry, cpu_port: int) -> None:
    session_id = message.session_id
    sessions = program.pipeline.clones
    where = f"clone session {session_id}"
    if not session_id:
        raise invalid("a clone session's id is not 0")
    if kind == p4r.Update.DELETE:
        sessions.delete(session_id)
        del program.clones[session_id]
        return
    if message.class_of_service >= program.pipeline.queues:
        raise invalid(f"{where}: there is no queue {message.class_of_service}")
    if message.packet_length_bytes < 0:
        raise invalid(f"{where}: packet_length_bytes is negative")
    replicas = _replicas(message.replicas, where, cpu_port)
    write = sessions.insert if kind == p4r.Update.INSERT else sessions.modify
    write(session_id, replicas, class_of_service=message.class_of_service, length=message.packet_length_bytes)
    program.clones[session_id] = copy(message)


def _replicas(replicas: Iterable[p4r.Replica], where: str, cpu_port: int) -> list[tuple[int, int]]:
    pairs = []
    for replica in replicas:
        if replica.backup_replicas:
            raise P4Error(StatusCode.UNIMPLEMENTED, f"{where}: backup replicas")
        port = replica.egress_port
        if replica.WhichOneof("port_kind") == "port":
            port = decode(replica.port, 32, f"{where}, port")
        if port == _SDN_CPU:
            port = cpu_port
        if port >> _PORT_BITS or replica.instance >> _INSTANCE_BITS:
            raise invalid(f"{where}: there is no port {port} or instance {replica.instance}")
        pairs.append((port, replica.instance))
    return pairs

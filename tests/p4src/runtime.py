"""A small synchronous P4Runtime client for one switch: finsy's schema, plain gRPC."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import finsy
import grpc
from finsy.proto import U128, p4r, p4r_grpc

from p4src import Program


class Runtime:
    """The primary controller of the switch at ``address``, with ``program`` pushed."""

    def __init__(self, address: str, device_id: int, program: Program) -> None:
        self._device = device_id
        self.schema = finsy.P4Schema(Path(program.p4info))
        self._channel = grpc.insecure_channel(address)
        grpc.channel_ready_future(self._channel).result(timeout=20)
        self._stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._election = U128.encode(1)
        self._requests: queue.Queue[p4r.StreamMessageRequest | None] = queue.Queue()
        self._arbitrated = threading.Event()
        self._packets: queue.Queue[finsy.P4PacketIn] = queue.Queue()
        self._written: list[finsy.P4TableEntry] = []
        self._defaults: set[str] = set()
        self._requests.put(
            p4r.StreamMessageRequest(
                arbitration=p4r.MasterArbitrationUpdate(device_id=device_id, election_id=self._election)
            )
        )
        threading.Thread(target=self._listen, daemon=True).start()
        assert self._arbitrated.wait(10), "no answer to the arbitration"
        self._stub.SetForwardingPipelineConfig(
            p4r.SetForwardingPipelineConfigRequest(
                device_id=device_id,
                election_id=self._election,
                action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
                config=p4r.ForwardingPipelineConfig(
                    p4info=self.schema.p4info, p4_device_config=program.json.read_bytes()
                ),
            ),
            timeout=60,
        )

    def _listen(self) -> None:
        try:
            for message in self._stub.StreamChannel(iter(self._requests.get, None)):
                if message.HasField("arbitration"):
                    self._arbitrated.set()
                elif message.HasField("packet"):
                    self._packets.put(finsy.P4PacketIn.decode(message, self.schema))
        except grpc.RpcError:
            pass  # the switch or the test has ended

    def _write(self, kind: p4r.Update.Type.ValueType, entry: finsy.P4TableEntry) -> None:
        self._stub.Write(
            p4r.WriteRequest(
                device_id=self._device,
                election_id=self._election,
                updates=[p4r.Update(type=kind, entity=entry.encode(self.schema))],
            ),
            timeout=20,
        )

    @staticmethod
    def _entry(
        table: str, match: dict[str, Any], action: str, arguments: dict[str, Any]
    ) -> finsy.P4TableEntry:
        return finsy.P4TableEntry(
            table, match=finsy.P4TableMatch(match), action=finsy.P4TableAction(action, **arguments)
        )

    def insert(self, table: str, match: dict[str, Any], action: str, **arguments: Any) -> None:
        entry = self._entry(table, match, action, arguments)
        self._write(p4r.Update.INSERT, entry)
        self._written.append(entry)

    def modify(self, table: str, match: dict[str, Any], action: str, **arguments: Any) -> None:
        self._write(p4r.Update.MODIFY, self._entry(table, match, action, arguments))

    def default(self, table: str, action: str, **arguments: Any) -> None:
        self._defaults.add(table)
        entry = finsy.P4TableEntry(
            table, action=finsy.P4TableAction(action, **arguments), is_default_action=True
        )
        self._write(p4r.Update.MODIFY, entry)

    def replicate(self, group: int, ports: list[int]) -> None:
        """Make a multicast group of ``ports``."""
        replicas = [p4r.Replica(egress_port=port, instance=1 + n) for n, port in enumerate(ports)]
        entry = p4r.MulticastGroupEntry(multicast_group_id=group, replicas=replicas)
        entity = p4r.Entity(
            packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(multicast_group_entry=entry)
        )
        self._stub.Write(
            p4r.WriteRequest(
                device_id=self._device,
                election_id=self._election,
                updates=[p4r.Update(type=p4r.Update.INSERT, entity=entity)],
            ),
            timeout=20,
        )

    def reset(self) -> None:
        """Take back everything written, and forget packets that came in."""
        for entry in reversed(self._written):
            self._write(p4r.Update.DELETE, entry)
        self._written.clear()
        for table in self._defaults:
            self._write(p4r.Update.MODIFY, finsy.P4TableEntry(table, is_default_action=True))
        self._defaults.clear()
        while not self._packets.empty():
            self._packets.get()

    def packet_in(self, timeout_s: float) -> finsy.P4PacketIn | None:
        """Return the next packet-in; None when none comes in time (0: is one there already)."""
        try:
            return self._packets.get(bool(timeout_s), timeout_s)
        except queue.Empty:
            return None

    def packet_out(self, frame: bytes, **metadata: int) -> None:
        self._requests.put(finsy.P4PacketOut(frame, **metadata).encode_update(self.schema))

    def _read(self, entity: p4r.Entity) -> Iterator[p4r.Entity]:
        request = p4r.ReadRequest(device_id=self._device, entities=[entity])
        for response in self._stub.Read(request, timeout=20):
            yield from response.entities

    def counter(self, name: str, index: int) -> tuple[int, int]:
        """Return packets and bytes of one cell of an indirect counter."""
        entity = finsy.P4CounterEntry(name, index=index).encode(self.schema)
        (answer,) = self._read(entity)
        data = answer.counter_entry.data
        return data.packet_count, data.byte_count

    def flow_counter(self, table: str, match: dict[str, Any]) -> tuple[int, int]:
        """Return packets and bytes of the direct counter of one entry."""
        entry = finsy.P4TableEntry(table, match=finsy.P4TableMatch(match)).encode(self.schema).table_entry
        entity = p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry(table_entry=entry))
        (answer,) = self._read(entity)
        data = answer.direct_counter_entry.data
        return data.packet_count, data.byte_count

    def close(self) -> None:
        self._requests.put(None)
        self._channel.close()

"""A program on simple_switch_grpc; packets go through its gRPC data plane, so nothing here needs root."""

import contextlib
import queue
import socket
import subprocess
import threading
import time

import grpc
from finsy.proto import p4i, p4r, p4r_grpc
from google.protobuf import text_format

from softswitch.entries import GroupRef, MemberRef
from tests.softswitch.ours import CPU_PORT, read

QUIET_S = 0.06
"""When nothing has come for so long after what was expected, nothing will."""
LONGEST_S = 3.0
"""What is expected is waited for so long."""


class Bmv2:
    """The reference, with the interface of ``Ours``."""

    def __init__(self, name):
        self.info = text_format.Parse(read(name, "p4info.txtpb"), p4i.P4Info())
        self.tables = {t.preamble.id: t for t in self.info.tables}
        ports = [_free_port(), _free_port()]
        command = [
            "simple_switch_grpc", "--no-p4", "--device-id", "1", "-L", "off", "--",
            "--grpc-server-addr", f"127.0.0.1:{ports[0]}", "--dp-grpc-server-addr", f"127.0.0.1:{ports[1]}",
            "--cpu-port", str(CPU_PORT), "--priority-queues", "8",
        ]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.channels = [grpc.insecure_channel(f"127.0.0.1:{p}") for p in ports]
        for channel in self.channels:
            grpc.channel_ready_future(channel).result(timeout=15)
        self.stub = p4r_grpc.P4RuntimeStub(self.channels[0])
        self.requests, self.packets = queue.Queue(), queue.Queue()
        self.received, self.arrived = queue.Queue(), queue.Queue()
        self.stream = self.stub.StreamChannel(iter(self.requests.get, None))
        update = p4r.MasterArbitrationUpdate(device_id=1, election_id=p4r.Uint128(low=1))
        self.requests.put(p4r.StreamMessageRequest(arbitration=update))
        next(self.stream)
        threading.Thread(target=self._listen, daemon=True).start()
        config = p4r.ForwardingPipelineConfig(p4info=self.info, p4_device_config=read(name, "json").encode())
        self.stub.SetForwardingPipelineConfig(
            p4r.SetForwardingPipelineConfigRequest(
                device_id=1,
                election_id=p4r.Uint128(low=1),
                action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
                config=config,
            )
        )
        self.learns = bool(self.info.digests)
        for digest in self.info.digests:
            config = p4r.DigestEntry.Config(max_list_size=1)
            self.write(digest_entry=p4r.DigestEntry(digest_id=digest.preamble.id, config=config))
        stream = self.channels[1].stream_stream("/p4.bm.DataplaneInterface/PacketStream")
        deadline = time.monotonic() + 15
        while not _takes_packets(stream):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        self.responses = stream(iter(self.packets.get, None))
        threading.Thread(target=self._collect, daemon=True).start()

    def close(self):
        self.requests.put(None)
        self.packets.put(None)
        for channel in self.channels:
            channel.close()
        self.process.terminate()
        self.process.wait(timeout=10)

    def _collect(self):
        with contextlib.suppress(grpc.RpcError):
            for response in self.responses:
                fields = _decode(response)
                self.received.put((fields.get(3, 0), fields.get(4, b"")))

    def _listen(self):
        """Packet-ins, whole as the program sent them to the CPU port, and digests."""
        with contextlib.suppress(grpc.RpcError):
            for message in self.stream:
                if message.HasField("packet"):
                    values = {m.metadata_id: m.value for m in message.packet.metadata}
                    header = _joined([(f, values[f.id]) for f in self._controller_header("packet_in")])
                    self.received.put((CPU_PORT, header + message.packet.payload))
                elif message.HasField("digest"):
                    digest = message.digest
                    name = next(
                        d.preamble.name for d in self.info.digests if d.preamble.id == digest.digest_id
                    )
                    for data in digest.data:
                        self.arrived.put((name, tuple(_numbers(data))))
                    ack = p4r.DigestListAck(digest_id=digest.digest_id, list_id=digest.list_id)
                    self.requests.put(p4r.StreamMessageRequest(digest_ack=ack))

    def _controller_header(self, name):
        found = [c for c in self.info.controller_packet_metadata if c.preamble.name == name]
        return found[0].metadata if found else []

    def set_default(self, table, action, *args):
        entry = p4r.TableEntry(
            table_id=self._table(table).preamble.id, action=self._action(action, args), is_default_action=True
        )
        self.write(p4r.Update.MODIFY, table_entry=entry)

    def write(self, kind=p4r.Update.INSERT, **entity):
        update = p4r.Update(type=kind, entity=p4r.Entity(**entity))
        self.stub.Write(p4r.WriteRequest(device_id=1, election_id=p4r.Uint128(low=1), updates=[update]))

    def insert(self, table, match, action, *args, priority=0):
        """``match`` as our Table takes it."""
        info = self._table(table)
        fields = []
        for f, m in zip(info.match_fields, match, strict=True):
            size = (f.bitwidth + 7) // 8
            kind = p4i.MatchField.MatchType.Name(f.match_type).lower()
            match kind:
                case "exact":
                    fields.append(p4r.FieldMatch(field_id=f.id, exact={"value": _bytes(m, size)}))
                case "lpm" if m[1]:
                    value = {"value": _bytes(m[0], size), "prefix_len": m[1]}
                    fields.append(p4r.FieldMatch(field_id=f.id, lpm=value))
                case "ternary" if m[1]:
                    value = {"value": _bytes(m[0], size), "mask": _bytes(m[1], size)}
                    fields.append(p4r.FieldMatch(field_id=f.id, ternary=value))
                case "range" if tuple(m) != (0, (1 << f.bitwidth) - 1):
                    value = {"low": _bytes(m[0], size), "high": _bytes(m[1], size)}
                    fields.append(p4r.FieldMatch(field_id=f.id, range=value))
                case "optional" if m is not None:
                    fields.append(p4r.FieldMatch(field_id=f.id, optional={"value": _bytes(m, size)}))
        if isinstance(action, MemberRef):
            chosen = p4r.TableAction(action_profile_member_id=action.member_id)
        elif isinstance(action, GroupRef):
            chosen = p4r.TableAction(action_profile_group_id=action.group_id)
        else:
            chosen = self._action(action, args)
        entry = p4r.TableEntry(table_id=info.preamble.id, match=fields, action=chosen, priority=priority)
        self.write(table_entry=entry)

    def member(self, profile, member_id, action, *args):
        entry = p4r.ActionProfileMember(
            action_profile_id=self._profile(profile),
            member_id=member_id,
            action=self._action(action, args).action,
        )
        self.write(action_profile_member=entry)

    def group(self, profile, group_id, members):
        entry = p4r.ActionProfileGroup(
            action_profile_id=self._profile(profile),
            group_id=group_id,
            members=[p4r.ActionProfileGroup.Member(member_id=m, weight=1) for m in members],
            max_size=len(members),
        )
        self.write(action_profile_group=entry)

    def _table(self, name):
        return next(
            t for t in self.info.tables if t.preamble.name == name or t.preamble.name.endswith("." + name)
        )

    def _profile(self, name):
        return next(p.preamble.id for p in self.info.action_profiles if p.preamble.alias == name)

    def _action(self, name, args):
        info = next(
            a for a in self.info.actions if a.preamble.name == name or a.preamble.name.endswith("." + name)
        )
        params = [
            p4r.Action.Param(param_id=p.id, value=_bytes(v, (p.bitwidth + 7) // 8))
            for p, v in zip(info.params, args, strict=True)
        ]
        return p4r.TableAction(action=p4r.Action(action_id=info.preamble.id, params=params))

    def replicate(self, group, replicas):
        entry = p4r.MulticastGroupEntry(
            multicast_group_id=group,
            replicas=[p4r.Replica(egress_port=p, instance=i) for p, i in replicas],
        )
        self.write(
            packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(multicast_group_entry=entry)
        )

    def clone(self, session, replicas):
        entry = p4r.CloneSessionEntry(
            session_id=session, replicas=[p4r.Replica(egress_port=p, instance=i) for p, i in replicas]
        )
        self.write(
            packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(clone_session_entry=entry)
        )

    def ports(self, packet, port, expected):
        """Run one packet; returns [(port, bytes)], in order per port.

        ``expected`` says only how long to wait: what comes beyond it is returned as well.
        """
        if port == CPU_PORT and self._controller_header("packet_out"):
            self._packet_out(packet)
        else:
            self.packets.put(_encode({1: 1, 2: 1, 3: port, 4: packet}))
        return _waited(self.received, expected)

    def _packet_out(self, packet):
        fields = self._controller_header("packet_out")
        size = sum(f.bitwidth for f in fields)
        rest = int.from_bytes(packet[: size // 8], "big")
        metadata = []
        for f in reversed(fields):
            value = rest & (1 << f.bitwidth) - 1
            metadata.append(p4r.PacketMetadata(metadata_id=f.id, value=_bytes(value, (f.bitwidth + 7) // 8)))
            rest >>= f.bitwidth
        out = p4r.PacketOut(payload=packet[size // 8 :], metadata=metadata)
        self.requests.put(p4r.StreamMessageRequest(packet=out))

    def learnt(self, expected):
        """Digests learnt since the last call, as (name, values)."""
        return _waited(self.arrived, expected)

    def _entities(self, **entity):
        request = p4r.ReadRequest(device_id=1, entities=[p4r.Entity(**entity)])
        return [e for response in self.stub.Read(request) for e in response.entities]

    def counters(self):
        """Cells of indirect counters that have counted, as [name, index, packets, bytes], sorted."""
        found = []
        for counter in self.info.counters:
            for e in self._entities(counter_entry=p4r.CounterEntry(counter_id=counter.preamble.id)):
                cell = e.counter_entry
                if cell.data.packet_count:
                    count = [cell.data.packet_count, cell.data.byte_count]
                    found.append([counter.preamble.name, cell.index.index, *count])
        return sorted(found)

    def direct_counters(self):
        """Direct counters that have counted, as [table, match, priority, packets, bytes], sorted."""
        found = []
        for counter in self.info.direct_counters:
            info = self.tables[counter.direct_table_id]
            if info.is_const_table:
                continue
            entry = p4r.TableEntry(table_id=info.preamble.id)
            for e in self._entities(direct_counter_entry=p4r.DirectCounterEntry(table_entry=entry)):
                cell = e.direct_counter_entry
                if cell.data.packet_count:
                    match = [_matched(f, cell.table_entry.match) for f in info.match_fields]
                    count = [cell.data.packet_count, cell.data.byte_count]
                    found.append([info.preamble.name, match, cell.table_entry.priority, *count])
        return sorted(found)


def _takes_packets(stream):
    """Whether bmv2's data plane is ready; it tells it to a stream that brings nothing."""
    try:
        return not list(stream(iter(())))
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.UNAVAILABLE:
            return False
        raise


def _waited(arrivals, expected):
    """What arrives: until a pause after ``expected`` arrivals."""
    found = []
    last = time.monotonic() + LONGEST_S
    while True:
        wait = QUIET_S if len(found) >= expected else last - time.monotonic()
        try:
            found.append(arrivals.get(timeout=max(0.0, wait)))
        except queue.Empty:
            return found


def _matched(info, fields):
    """A key component as our Table has it."""
    f = next((f for f in fields if f.field_id == info.id), None)

    def number(value):
        return int.from_bytes(value, "big")

    match p4i.MatchField.MatchType.Name(info.match_type).lower():
        case "exact":
            return number(f.exact.value)
        case "lpm":
            return [number(f.lpm.value), f.lpm.prefix_len] if f else [0, 0]
        case "ternary":
            return [number(f.ternary.value), number(f.ternary.mask)] if f else [0, 0]
        case "range":
            return [number(f.range.low), number(f.range.high)] if f else [0, (1 << info.bitwidth) - 1]
        case _:
            return number(f.optional.value) if f else None


def _numbers(data):
    """The values in a P4Data, in order."""
    kind = data.WhichOneof("data")
    if kind == "bitstring":
        return [int.from_bytes(data.bitstring, "big")]
    if kind == "bool":
        return [int(data.bool)]
    members = data.struct.members if kind == "struct" else data.tuple.members
    return [number for member in members for number in _numbers(member)]


def _joined(fields):
    """A header of (field, value) as bytes."""
    whole = width = 0
    for f, value in fields:
        whole = whole << f.bitwidth | int.from_bytes(value, "big")
        width += f.bitwidth
    return whole.to_bytes(width // 8, "big")


def _free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def _bytes(value, size):
    return value.to_bytes(size, "big").lstrip(b"\0") or b"\0"


def _varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def _encode(fields):
    """A protobuf message with integer and bytes fields (bmv2's data-plane protocol has no Python module)."""
    out = b""
    for number, value in fields.items():
        if isinstance(value, bytes):
            out += _varint(number << 3 | 2) + _varint(len(value)) + value
        else:
            out += _varint(number << 3) + _varint(value)
    return out


def _decode(data):
    fields, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        value = varint()
        if tag & 7 == 2:
            fields[tag >> 3] = data[at : at + value]
            at += value
        else:
            fields[tag >> 3] = value
    return fields

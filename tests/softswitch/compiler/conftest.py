"""Programs to run: through our compiler, and through bmv2 where it is installed."""

import queue
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4i, p4r, p4r_grpc
from google.protobuf import text_format

from softswitch.compiler import compile_program
from softswitch.tables import ActionCall, GroupRef, MemberRef

PROGRAMS = Path(__file__).parent.parent / "programs"
LEVELLER = Path(__file__).parent.parent.parent.parent / "p4src" / "build" / "v1model"


def read(name, suffix):
    """A program's JSON or P4Info; ours is where p4src builds it."""
    return ((LEVELLER if name == "leveller" else PROGRAMS) / f"{name}.{suffix}").read_text()


class Ours:
    """A program on our compiler; what it sends is collected."""

    def __init__(self, name, queues=8, optional=()):
        self.pipeline = compile_program(read(name, "json"), queues, optional)
        self.sent = []
        self.digests = []
        self.pipeline.transmit = lambda port, queue, packet: self.sent.append((port, queue, bytes(packet)))
        self.pipeline.on_digest = lambda name, values: self.digests.append((name, values))
        self.now = 1000

    def table(self, name):
        return next(t for n, t in self.pipeline.tables.items() if n.endswith("." + name))

    def action(self, table, name, *args):
        full = next(a for a in self.table(table).actions if a == name or a.endswith("." + name))
        return ActionCall(full, args)

    def insert(self, table, match, action, *args, priority=0):
        return self.table(table).insert(match, self.action(table, action, *args), priority, now_us=self.now)

    def set_default(self, table, action, *args):
        self.table(table).set_default(self.action(table, action, *args))

    def profile(self, name):
        return next(p for n, p in self.pipeline.action_profiles.items() if n.endswith("." + name))

    def send(self, packet, port=1):
        """Run one packet; returns [(port, queue, bytes)]."""
        self.sent.clear()
        self.now += 10
        self.pipeline.process(packet, port, self.now)
        return list(self.sent)

    def ports(self, packet, port=1):
        """Run one packet; returns [(port, bytes)]."""
        return [(out, data) for out, _, data in self.send(packet, port)]


class Bmv2:
    """The same program on simple_switch_grpc; packets go through its gRPC data plane, without root."""

    def __init__(self, name):
        self.info = text_format.Parse(read(name, "p4info.txtpb"), p4i.P4Info())
        ports = [_free_port(), _free_port()]
        command = [
            "simple_switch_grpc", "--no-p4", "--device-id", "1", "-L", "off", "--",
            "--grpc-server-addr", f"127.0.0.1:{ports[0]}", "--dp-grpc-server-addr", f"127.0.0.1:{ports[1]}",
            "--cpu-port", "510", "--priority-queues", "8",
        ]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.channels = [grpc.insecure_channel(f"127.0.0.1:{p}") for p in ports]
        for channel in self.channels:
            grpc.channel_ready_future(channel).result(timeout=15)
        self.stub = p4r_grpc.P4RuntimeStub(self.channels[0])
        self.requests, self.packets, self.received = queue.Queue(), queue.Queue(), queue.Queue()
        self.stream = self.stub.StreamChannel(iter(self.requests.get, None))
        update = p4r.MasterArbitrationUpdate(device_id=1, election_id=p4r.Uint128(low=1))
        self.requests.put(p4r.StreamMessageRequest(arbitration=update))
        next(self.stream)
        config = p4r.ForwardingPipelineConfig(p4info=self.info, p4_device_config=read(name, "json").encode())
        self.stub.SetForwardingPipelineConfig(
            p4r.SetForwardingPipelineConfigRequest(
                device_id=1,
                election_id=p4r.Uint128(low=1),
                action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
                config=config,
            )
        )
        stream = self.channels[1].stream_stream("/p4.bm.DataplaneInterface/PacketStream")
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
        try:
            for response in self.responses:
                fields = _decode(response)
                self.received.put((fields.get(3, 0), fields.get(4, b"")))
        except grpc.RpcError:
            pass

    def set_default(self, table, action, *args):
        info = next(t for t in self.info.tables if t.preamble.alias == table)
        entry = p4r.TableEntry(
            table_id=info.preamble.id, action=self._action(action, args), is_default_action=True
        )
        self.write(p4r.Update.MODIFY, table_entry=entry)

    def write(self, kind=p4r.Update.INSERT, **entity):
        update = p4r.Update(type=kind, entity=p4r.Entity(**entity))
        self.stub.Write(p4r.WriteRequest(device_id=1, election_id=p4r.Uint128(low=1), updates=[update]))

    def insert(self, table, match, action, *args, priority=0):
        """``match`` as our Table takes it."""
        info = next(t for t in self.info.tables if t.preamble.alias == table)
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
                case "range" if m != (0, (1 << f.bitwidth) - 1):
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

    def _profile(self, name):
        return next(p.preamble.id for p in self.info.action_profiles if p.preamble.alias == name)

    def _action(self, name, args):
        info = next(a for a in self.info.actions if a.preamble.alias == name)
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

    def ports(self, packet, port=1):
        """Run one packet; returns [(port, bytes)], in order per port."""
        self.packets.put(_encode({1: 1, 2: 1, 3: port, 4: packet}))
        found = []
        deadline = time.monotonic() + 0.25
        while (left := deadline - time.monotonic()) > 0:
            try:
                found.append(self.received.get(timeout=left))
                deadline = min(deadline, time.monotonic() + 0.06)
            except queue.Empty:
                break
        return found


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


@pytest.fixture
def ours():
    return Ours


@pytest.fixture
def both(request):
    """``both(name)``: (our switch, bmv2) with the program of that name; skips where bmv2 is not installed."""

    def start(name, **options):
        if shutil.which("simple_switch_grpc") is None:
            pytest.skip("simple_switch_grpc is not on PATH")
        reference = Bmv2(name)
        request.addfinalizer(reference.close)
        return Ours(name, **options), reference

    return start

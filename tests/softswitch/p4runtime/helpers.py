"""A plain P4Runtime client, and short ways to write its messages."""

import threading
from dataclasses import dataclass
from pathlib import Path

import grpc
from finsy.proto import U128, p4i, p4r, p4r_grpc, rpc_status
from google.protobuf import text_format

from softswitch.p4runtime.errors import P4Error

PROGRAMS = Path(__file__).parent / "programs"
DEVICE_ID = 3
CPU_PORT = 510


def load(name):
    """Return a program's ForwardingPipelineConfig."""
    config = p4r.ForwardingPipelineConfig(p4_device_config=(PROGRAMS / f"{name}.json").read_bytes())
    text_format.Parse((PROGRAMS / f"{name}.p4info.txtpb").read_text(), config.p4info)
    return config


class Names:
    """Ids of a P4Info's objects by name."""

    def __init__(self, info: p4i.P4Info):
        self.info = info
        self.id = {}
        self.field = {}
        self.param = {}
        for kind in (
            "tables",
            "actions",
            "counters",
            "meters",
            "registers",
            "digests",
            "action_profiles",
            "value_sets",
        ):
            for item in getattr(info, kind):
                self.id[item.preamble.alias] = item.preamble.id
        for table in info.tables:
            for key in table.match_fields:
                self.field[table.preamble.alias, key.name.rpartition(".")[2]] = key.id
        for action in info.actions:
            for param in action.params:
                self.param[action.preamble.alias, param.name] = param.id

    def action(self, name, **args):
        """Return an Action; arguments are ints or bytes."""
        message = p4r.Action(action_id=self.id[name])
        for key, value in args.items():
            message.params.add(param_id=self.param[name, key], value=octets(value))
        return message

    def entry(self, table, action=None, *, args=None, match=None, **fields):
        """Return a TableEntry; exact keys as ints, others as keyword dicts of FieldMatch."""
        message = p4r.TableEntry(table_id=self.id[table], **fields)
        for key, value in (match or {}).items():
            item = message.match.add(field_id=self.field[table, key])
            if isinstance(value, int | bytes):
                item.exact.value = octets(value)
            else:
                kind, parts = value
                for name, part in parts.items():
                    setattr(getattr(item, kind), name, part if name == "prefix_len" else octets(part))
        if action is not None:
            message.action.action.CopyFrom(self.action(action, **(args or {})))
        return message


def octets(value):
    return value if isinstance(value, bytes) else value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")


def refusal(function, *args, **fields):
    """Call what must raise P4Error; return its code's name and its message."""
    try:
        function(*args, **fields)
    except P4Error as error:
        return error.code.name, error.message
    raise AssertionError("nothing was refused")


class RpcFailedError(Exception):
    """An RPC's status, with the P4Runtime errors in it."""

    def __init__(self, error):
        super().__init__(error.details())
        self.code = error.code()
        self.errors = []
        for key, value in error.trailing_metadata():
            if key == "grpc-status-details-bin":
                for detail in rpc_status.Status.FromString(value).details:
                    item = p4r.Error()
                    assert detail.Unpack(item)
                    self.errors.append(item)
        self.codes = [item.canonical_code for item in self.errors]


@dataclass
class Client:
    """A client without a stream of its own: unary calls as the primary with ``election_id``."""

    stub: p4r_grpc.P4RuntimeStub
    election_id: int = 1
    role: str = ""

    def _call(self, method, request):
        try:
            return method(request, timeout=10)
        except grpc.RpcError as error:
            raise RpcFailedError(error) from None

    def write(self, *updates, **fields):
        request = p4r.WriteRequest(
            device_id=DEVICE_ID, election_id=U128.encode(self.election_id), role=self.role, **fields
        )
        request.updates.extend(updates)
        return self._call(self.stub.Write, request)

    def read(self, *entities, **fields):
        """Return what a read yields, as the messages inside the entities."""
        found = []
        request = p4r.ReadRequest(device_id=DEVICE_ID, entities=entities, **fields)
        try:
            for response in self.stub.Read(request, timeout=10):
                found.extend(getattr(item, item.WhichOneof("entity")) for item in response.entities)
        except grpc.RpcError as error:
            failed = RpcFailedError(error)
            failed.found = found
            raise failed from None
        return found

    def push(self, action, config=None, **fields):
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=DEVICE_ID, election_id=U128.encode(self.election_id), role=self.role, action=action
        )
        if config is not None:
            request.config.CopyFrom(config)
        return self._call(self.stub.SetForwardingPipelineConfig, request)

    def get(self, response_type=0):
        request = p4r.GetForwardingPipelineConfigRequest(device_id=DEVICE_ID, response_type=response_type)
        return self._call(self.stub.GetForwardingPipelineConfig, request)


class Stream:
    """A StreamChannel: ``send`` messages, ``next`` what comes back."""

    def __init__(self, stub, timeout=10):
        self._requests = []
        self._ready = threading.Condition()
        self._closed = False
        self.call = stub.StreamChannel(self._iterate(), timeout=timeout)

    def _iterate(self):
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._requests or self._closed)
                if not self._requests:
                    return
                message = self._requests.pop(0)
            yield message

    def send(self, **fields):
        with self._ready:
            self._requests.append(p4r.StreamMessageRequest(**fields))
            self._ready.notify()

    def arbitrate(self, election_id, device_id=DEVICE_ID, role=None):
        message = p4r.MasterArbitrationUpdate(device_id=device_id, role=role)
        if election_id is not None:
            message.election_id.CopyFrom(U128.encode(election_id))
        self.send(arbitration=message)

    def next(self, kind=None):
        """Return the next message (of ``kind``, skipping others), or raise RpcFailedError."""
        try:
            for message in self.call:
                if kind in (None, message.WhichOneof("update")):
                    return getattr(message, message.WhichOneof("update"))
        except grpc.RpcError as error:
            raise RpcFailedError(error) from None
        raise AssertionError("the server has ended the stream without an error")

    def close(self):
        with self._ready:
            self._closed = True
            self._ready.notify()
        self.call.cancel()


def insert(**entity):
    return p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(**entity))


def modify(**entity):
    return p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(**entity))


def delete(**entity):
    return p4r.Update(type=p4r.Update.DELETE, entity=p4r.Entity(**entity))

"""DigestEntry and DigestList (spec, DigestEntry): which digests are on, and what is sent of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from copy import copy

from finsy.proto import p4i, p4r
from grpc import StatusCode

from softswitch.p4runtime.errors import P4Error, invalid
from softswitch.p4runtime.info import find
from softswitch.p4runtime.learner import Batch, Learner
from softswitch.p4runtime.p4data import encode_data
from softswitch.p4runtime.program import Program


def write(program: Program, kind: int, message: p4r.DigestEntry) -> None:
    """Switch a digest on, change how, or switch it off. Raises P4Error."""
    described: p4i.Digest = find(program.info.digests, message.digest_id, "digest")
    name = described.preamble.name
    learner = program.digests.get(message.digest_id)
    if kind == p4r.Update.INSERT and learner is not None:
        raise P4Error(StatusCode.ALREADY_EXISTS, f"digest {name} is on already")
    if kind != p4r.Update.INSERT and learner is None:
        raise P4Error(StatusCode.NOT_FOUND, f"digest {name} is not on")
    if kind == p4r.Update.DELETE:
        del program.digests[message.digest_id]
        return
    config = message.config
    if min(config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns) < 0:
        raise invalid(f"digest {name}: timeouts and sizes are not negative")
    if learner is None:
        program.digests[message.digest_id] = Learner(copy(message))
    else:
        learner.entry = copy(message)


def read(program: Program, request: p4r.DigestEntry) -> Iterator[p4r.Entity]:
    """Yield the config of a digest that is on; with id 0, of all of them."""
    if request.digest_id:
        find(program.info.digests, request.digest_id, "digest")
    for digest_id, learner in list(program.digests.items()):
        if request.digest_id in (0, digest_id):
            yield p4r.Entity(digest_entry=learner.entry)


def acknowledge(program: Program, message: p4r.DigestListAck) -> None:
    """Take a controller's acknowledgement. Raises INVALID_ARGUMENT for a digest that P4Info does not have."""
    find(program.info.digests, message.digest_id, "digest")
    learner = program.digests.get(message.digest_id)
    if learner is not None:
        learner.acknowledge(message.list_id)


def encode_list(program: Program, digest_id: int, batch: Batch) -> p4r.StreamMessageResponse:
    """Return the message that carries a list of a digest's messages."""
    described: p4i.Digest = program.info.digests[digest_id]
    list_id, messages = batch
    data = [encode_data(described.type_spec, program.info.types, iter(values)) for values in messages]
    return p4r.StreamMessageResponse(
        digest=p4r.DigestList(digest_id=digest_id, list_id=list_id, data=data, timestamp=time.time_ns())
    )

"""Digests: switched on, changed, read, switched off; lists and their acknowledgement."""

import time

import pytest
from finsy.proto import p4r

from softswitch.p4runtime import digests
from tests.softswitch.p4runtime.helpers import refusal

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE


@pytest.fixture
def entry(names):
    """Return a function that makes learn_t's DigestEntry."""
    return lambda **config: p4r.DigestEntry(
        digest_id=names.id["learn_t"], config=p4r.DigestEntry.Config(**config)
    )


def read(program, digest_id=0):
    return [item.digest_entry for item in digests.read(program, p4r.DigestEntry(digest_id=digest_id))]


def test_on_changed_and_off(program, entry, names):
    digests.write(program, INSERT, entry(max_list_size=2, max_timeout_ns=10))
    assert read(program) == read(program, names.id["learn_t"]) == [entry(max_list_size=2, max_timeout_ns=10)]
    digests.write(program, MODIFY, entry(max_list_size=3))
    assert read(program) == [entry(max_list_size=3)]
    digests.write(program, DELETE, entry())
    assert read(program) == read(program, names.id["learn_t"]) == []


def test_what_is_written_is_not_the_callers_to_change(program, entry):
    message = entry(max_list_size=2)
    digests.write(program, INSERT, message)
    message.config.max_list_size = 9
    assert read(program) == [entry(max_list_size=2)]
    digests.write(program, MODIFY, message)
    message.config.max_list_size = 10
    assert read(program) == [entry(max_list_size=9)]


def test_a_modify_keeps_the_messages_that_wait(program, entry, names):
    digests.write(program, INSERT, entry(max_list_size=5, max_timeout_ns=10**9))
    learner = program.digests[names.id["learn_t"]]
    assert learner.add((1, 2), 0) is None
    digests.write(program, MODIFY, entry(max_list_size=2, max_timeout_ns=10**9))
    assert program.digests[names.id["learn_t"]].add((3, 4), 1) == (1, ((1, 2), (3, 4)))


def test_each_kind_of_update_needs_its_state(program, entry):
    off = ("NOT_FOUND", "digest learn_t is not on")
    assert refusal(digests.write, program, MODIFY, entry()) == off
    assert refusal(digests.write, program, DELETE, entry()) == off
    digests.write(program, INSERT, entry())
    assert refusal(digests.write, program, INSERT, entry()) == (
        "ALREADY_EXISTS",
        "digest learn_t is on already",
    )


@pytest.mark.parametrize("field", ["max_timeout_ns", "max_list_size", "ack_timeout_ns"])
def test_nothing_is_negative(program, entry, field):
    error = ("INVALID_ARGUMENT", "digest learn_t: timeouts and sizes are not negative")
    assert refusal(digests.write, program, INSERT, entry(**{field: -1})) == error
    assert read(program) == []


def test_unknown_digests_are_named(program):
    error = ("INVALID_ARGUMENT", "P4Info has no digest with id 0x9")
    assert refusal(digests.write, program, INSERT, p4r.DigestEntry(digest_id=9)) == error
    assert refusal(read, program, 9) == error
    assert refusal(digests.acknowledge, program, p4r.DigestListAck(digest_id=9)) == error


def test_an_acknowledged_message_may_come_again(program, entry, names):
    digest_id = names.id["learn_t"]
    digests.acknowledge(
        program, p4r.DigestListAck(digest_id=digest_id, list_id=1)
    )  # off: nobody waits for it
    digests.write(program, INSERT, entry(ack_timeout_ns=10**9))
    learner = program.digests[digest_id]
    assert learner.add((1, 2), 0) == (1, ((1, 2),))
    digests.acknowledge(program, p4r.DigestListAck(digest_id=digest_id, list_id=7))
    assert learner.add((1, 2), 1) is None
    digests.acknowledge(program, p4r.DigestListAck(digest_id=digest_id, list_id=1))
    assert learner.add((1, 2), 2) == (2, ((1, 2),))


def test_a_list_has_structs_in_canonical_form_and_the_time(program, names):
    before = time.time_ns()
    message = digests.encode_list(program, names.id["learn_t"], (4, ((0x0200_0000_0001, 300), (0, 0)))).digest
    assert before <= message.timestamp <= time.time_ns()
    assert (message.digest_id, message.list_id) == (names.id["learn_t"], 4)
    assert [[member.bitstring for member in item.struct.members] for item in message.data] == [
        [b"\x02\0\0\0\0\x01", b"\x01\x2c"],
        [b"\0", b"\0"],
    ]

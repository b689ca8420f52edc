"""Idle entries, by the switch's clock, and digests that have waited, by the notifier's thread."""

import threading
import time

import pytest
from finsy.proto import p4r

from softswitch.p4runtime import table_entries
from softswitch.p4runtime.notifications import Notifier, idle_entries
from tests.softswitch.p4runtime.helpers import insert, modify

SECOND_US = 1_000_000
FRAME = bytes.fromhex("02000000000202000000000588b5") + bytes(50)


@pytest.fixture
def idle(program, names):
    """Return a function that tells the addresses of mac's entries that are idle at a time."""

    def look(now_us):
        message = idle_entries(program, names.id["mac"], now_us)
        return [int.from_bytes(item.match[0].exact.value, "big") for item in message.table_entry]

    return look


@pytest.fixture
def add(program, names):
    """Return a function that inserts an entry of mac, at a time."""

    def run(address, timeout_ns, now_us=0, **fields):
        entry = names.entry(
            "mac", "forward", args={"port": 1}, match={"dst": address}, idle_timeout_ns=timeout_ns, **fields
        )
        table_entries.write(program, p4r.Update.INSERT, entry, now_us)
        return program.pipeline.tables["ingress.mac"].get((address,))

    return run


def test_an_entry_is_idle_when_its_timeout_has_passed_and_again_one_later(add, idle):
    add(1, 10**9, now_us=5 * SECOND_US)
    assert idle(6 * SECOND_US - 1) == []
    assert idle(6 * SECOND_US) == [1]
    assert idle(7 * SECOND_US - 1) == []
    assert idle(7 * SECOND_US) == [1]


def test_each_entry_has_its_own_timeout_and_none_means_never(add, idle):
    add(1, 10**9)
    add(2, 2 * 10**9)
    add(3, 0)
    assert idle(SECOND_US) == [1]
    assert idle(2 * SECOND_US) == [1, 2]
    assert idle(10**6 * SECOND_US) == [1, 2]


def test_a_packet_that_hits_starts_the_timeout_again(program, add, idle):
    add(0x0200_0000_0002, 10**9)
    program.pipeline.transmit = lambda port, queue, packet: None
    program.pipeline.process(FRAME, 1, SECOND_US // 2)
    assert idle(SECOND_US) == []
    assert idle(SECOND_US * 3 // 2) == [0x0200_0000_0002]


def test_an_idle_entry_is_told_by_its_key_metadata_and_timeout(program, add, names):
    add(1, 10**9, metadata=b"m", controller_metadata=4)
    before = time.time_ns()
    message = idle_entries(program, names.id["mac"], SECOND_US)
    expected = names.entry(
        "mac", match={"dst": 1}, metadata=b"m", controller_metadata=4, idle_timeout_ns=10**9
    )
    assert list(message.table_entry) == [expected]
    assert before <= message.timestamp <= time.time_ns()


def test_a_digest_that_has_waited_is_sent_without_another_packet(client, names, service, stream):
    digest = p4r.DigestEntry(digest_id=names.id["learn_t"])
    digest.config.max_timeout_ns, digest.config.max_list_size = 200_000_000, 10
    client.write(
        insert(digest_entry=digest),
        modify(table_entry=names.entry("source", "learn", is_default_action=True)),
    )
    _, dataplane, device = service
    start = time.monotonic()
    device.running.pipeline.process(FRAME, 3, dataplane.now_us())
    message = stream.next("digest")
    assert 0.19 <= time.monotonic() - start < 3
    assert [[m.bitstring for m in item.struct.members] for item in message.data] == [
        [b"\x02\0\0\0\0\x05", b"\x03"]
    ]


def test_it_ends_when_it_is_stopped(service):
    def running():
        return [thread.name for thread in threading.enumerate()].count("notifier")

    _, dataplane, device = service
    before = running()
    notifier = Notifier(device, dataplane)
    notifier.start()
    assert running() == before + 1
    notifier.stop()
    assert running() == before

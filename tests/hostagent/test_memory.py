import json
import os

import pytest

from hostagent.logs.counter import IterationCounter
from hostagent.logs.format import Mark
from hostagent.logs.tail import Bookmark
from hostagent.memory import JobMemory, LogMemory, Memory


def job(**changes):
    counter = IterationCounter(5)
    for completed in (100, 200, 300):
        counter.see(Mark(completed, 10**9), completed * 10**9)
    log = LogMemory(
        kind="stdout",
        place="/proc/7/fd/1",
        bookmark=Bookmark(1, 2, 3, "abcd"),
        format="lightning",
        parser=(64, 0, 0, 1, 64),
        leads=True,
    )
    given = {"id": "job1", "started_ns": 5, "processes": ((7, 1234, 6),), "counter": counter.state()}
    return JobMemory(**{**given, "logs": (log,), **changes})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agent.json"


def test_what_is_kept_is_recalled(path):
    assert Memory(path).recall() == ()
    Memory(path).keep([job(), job(id="job2", logs=(), told=True)])
    assert Memory(path).recall() == (job(), job(id="job2", logs=(), told=True))
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(path.parent) == ["agent.json"]
    Memory(path).keep([])
    assert Memory(path).recall() == ()


def test_after_a_reboot_nothing_is_recalled(path, tmp_path):
    Memory(path).keep([job()])
    boot = tmp_path / "sys/kernel/random/boot_id"
    boot.parent.mkdir(parents=True)
    boot.write_text("another\n")
    assert Memory(path, str(tmp_path)).recall() == ()
    assert len(Memory(path).recall()) == 1


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff\xfe\x00" * 100,
        b"[" * 100_000,
        b'{"version": 2, "boot": "", "jobs": []}',
        b"null",
    ],
    ids=["empty", "begun", "binary", "deep", "of another version", "null"],
)
def test_a_damaged_file_is_told_and_not_used(path, text, capsys):
    path.write_bytes(text)
    memory = Memory(path)
    assert memory.recall() == ()
    assert "damaged" in capsys.readouterr().out
    memory.keep([job()])
    assert Memory(path).recall() == (job(),)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("iterations", 10**30),
        ("iterations", -1),
        ("last_ns", 2**63),
        ("value", "many"),
        ("interval", 0),
        ("recent", [[1, 0]]),
    ],
)
def test_numbers_that_cannot_be_are_damage(path, field, value):
    Memory(path).keep([job()])
    kept = json.loads(path.read_text())
    counter = kept["jobs"][0]["counter"]
    counter[IterationCounter().state()._fields.index(field)] = value
    path.write_text(json.dumps(kept))
    assert Memory(path).recall() == ()


def test_half_a_file_is_damage(path):
    Memory(path).keep([job()])
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    assert Memory(path).recall() == ()


def test_what_cannot_be_written_is_told_once(tmp_path, capsys):
    memory = Memory(tmp_path / "nowhere" / "agent.json")
    for count in (1, 2):
        memory.keep([job()] * count)
    assert capsys.readouterr().out.count("cannot be kept") == 1
    (tmp_path / "nowhere").mkdir()
    memory.keep([job()])
    assert Memory(tmp_path / "nowhere" / "agent.json").recall() == (job(),)


def test_what_cannot_be_read_is_told(tmp_path, capsys):
    assert Memory(tmp_path).recall() == ()
    assert "cannot be read" in capsys.readouterr().out


def test_the_largest_inode_and_a_name_of_any_letters(path):
    log = LogMemory(kind="glob", place="/日本", bookmark=Bookmark(2**64 - 1, 2**64 - 1, 2**63 - 1, ""))
    Memory(path).keep([job(logs=(log,))])
    assert Memory(path).recall() == (job(logs=(log,)),)

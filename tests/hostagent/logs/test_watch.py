import os
import select

import pytest

from hostagent.logs.place import Place
from hostagent.logs.tail import Tail
from hostagent.logs.watch import Watcher


@pytest.fixture
def watcher():
    watcher = Watcher()
    yield watcher
    watcher.close()


def told(watcher):
    return bool(select.select([watcher], [], [], 0)[0])


def append(path, data):
    with path.open("ab") as file:
        file.write(data)


def test_growth_is_told_until_drained(tmp_path, watcher):
    log = tmp_path / "log"
    log.write_bytes(b"one\n")
    tail = Tail(Place(str(log)), watcher=watcher)
    tail.read()
    assert not told(watcher)
    append(log, b"two\n")
    assert told(watcher)
    assert watcher.drain()
    assert not told(watcher)
    assert not watcher.drain()
    assert tail.read().data == b"two\n"
    os.truncate(log, 0)
    assert told(watcher)
    tail.close()


def test_the_open_file_is_watched_whatever_its_name(tmp_path, watcher):
    log = tmp_path / "log"
    with log.open("ab", buffering=0) as writer:
        tail = Tail(Place(str(log)), watcher=watcher)
        tail.read()
        log.rename(tmp_path / "log.1")
        log.write_bytes(b"another\n")
        assert not told(watcher)
        writer.write(b"one\n")
        assert told(watcher)
        watcher.drain()
        tail.read()
        assert tail.read().data == b"another\n"
        watcher.drain()
        writer.write(b"two\n")  # no longer ours
        assert not watcher.drain() or not told(watcher)
        append(log, b"more\n")
        assert told(watcher)
        tail.close()


def test_removed_file(tmp_path, watcher):
    log = tmp_path / "log"
    with log.open("ab", buffering=0) as writer:
        tail = Tail(Place(str(log)), watcher=watcher)
        tail.read()
        log.unlink()
        watcher.drain()
        writer.write(b"one\n")
        assert told(watcher)
        tail.close()


def test_closed_files_are_watched_no_more(tmp_path, watcher):
    for number in range(5):
        log = tmp_path / f"log{number}"
        log.write_bytes(b"x\n")
        tail = Tail(Place(str(log)), watcher=watcher)
        tail.read()
        tail.close()
        watcher.drain()  # the end of a watch is told too
        append(log, b"y\n")
        assert not told(watcher)


def test_a_file_that_cannot_be_watched_is_read_all_the_same(tmp_path, watcher):
    log = tmp_path / "log"
    log.write_bytes(b"one\n")
    watcher.add = lambda descriptor: -1  # as with fs.inotify.max_user_watches used up
    tail = Tail(Place(str(log)), watcher=watcher)
    assert tail.read().data == b"one\n"
    tail.close()

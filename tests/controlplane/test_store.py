"""The store: survives a restart and a kill, and refuses what is not its own."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from ipaddress import ip_address

import pytest

from controlplane.model import FiveTuple, Link
from controlplane.store import Saved, SavedJob, Store
from leveller.errors import UserError

V4 = FiveTuple(ip_address("10.0.1.1"), ip_address("10.0.2.1"), 6, 40000, 5000)
V6 = FiveTuple(ip_address("fd00::1"), ip_address("fd00::2"), 17, 40000, 4791, 77)
PATH = (Link("S1", 3), Link("spine 2", 1))
CONTENT = Saved(
    jobs={"a": SavedJob(123, 45, 678), "b": SavedJob(1, 0, None)},
    groups={("a", PATH): 1, ("a", PATH[:1]): 2},
    slots={V4: 1, V6: 2},
)


def test_what_is_saved_comes_back(tmp_path):
    with Store(tmp_path / "s.db") as store:
        assert store.saved == Saved()
        store.save(CONTENT)
    with Store(tmp_path / "s.db") as store:
        assert store.saved == CONTENT


def test_saving_replaces_and_numbers_may_change_hands(tmp_path):
    changed = Saved(
        jobs={"b": SavedJob(1, 9, 3)},
        groups={("a", PATH): 2, ("a", PATH[:1]): 1},
        slots={V6: 1, V4._replace(source_port=1): 2},
    )
    with Store(tmp_path / "s.db") as store:
        store.save(CONTENT)
        store.save(changed)
    with Store(tmp_path / "s.db") as store:
        assert store.saved == changed


def test_a_save_that_fails_leaves_the_old_content(tmp_path):
    with Store(tmp_path / "s.db") as store:
        store.save(CONTENT)
        with pytest.raises(sqlite3.Error):
            store.save(Saved(jobs={"new": SavedJob(1, 1, 1)}, slots={V4: 5, V6: 5}))
        assert store.saved == CONTENT
    with Store(tmp_path / "s.db") as store:
        assert store.saved == CONTENT


WRITER = """
import sys
from pathlib import Path
from controlplane.store import Saved, SavedJob, Store
with Store(Path(sys.argv[1])) as store:
    number = 0
    while True:
        number += 1
        jobs = {f"job{each}": SavedJob(number, number, number) for each in range(50)}
        store.save(Saved(jobs=jobs))
        print(number, flush=True)
"""


def test_a_killed_writer_leaves_a_whole_state_not_older_than_what_it_acknowledged(tmp_path):
    path = tmp_path / "s.db"
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True)
        assert writer.stdout.readline() == "1\n"
        time.sleep(0.05)
        os.kill(writer.pid, signal.SIGKILL)
        acknowledged = max(map(int, writer.stdout.read().split()), default=1)
        writer.wait()
        writer.stdout.close()
        with Store(path) as store:
            states = set(store.saved.jobs.values())
            assert len(store.saved.jobs) == 50
            assert len(states) == 1  # one transaction, whole
            assert states.pop().iterations >= acknowledged


def test_one_controller_per_store(tmp_path):
    with Store(tmp_path / "s.db"), pytest.raises(UserError, match="another controller uses it"):
        Store(tmp_path / "s.db")


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"hello, world, this is not a database" * 9, "is damaged"), ("CREATE TABLE t (x)", "is not a store"),
     ("PRAGMA application_id = 0x4C564C52; PRAGMA user_version = 9; CREATE TABLE t (x)", "has format 9")],
)  # fmt: skip
def test_other_files_are_refused_and_left_alone(tmp_path, content, words):
    path = tmp_path / "s.db"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        database = sqlite3.connect(path)
        database.executescript(content)
        database.close()
    with pytest.raises(UserError, match=words):
        Store(path)
    if isinstance(content, bytes):
        assert path.read_bytes() == content


def test_one_controller_per_store_that_has_something_in_it(tmp_path):
    with Store(tmp_path / "s.db") as store:
        store.save(CONTENT)
    with Store(tmp_path / "s.db") as store:
        with pytest.raises(UserError, match="another controller uses it"):
            Store(tmp_path / "s.db")
        store.save(Saved())


@pytest.mark.parametrize(("failure", "left"), [(UserError("port", "free it"), False), (OSError(), True)])
def test_a_new_store_goes_with_a_controller_that_could_not_start(tmp_path, failure, left):
    with pytest.raises(type(failure)), Store(tmp_path / "s.db"):
        raise failure
    assert [path.name for path in tmp_path.iterdir()] == ["s.db"] * left


def test_a_store_that_was_there_stays_when_a_controller_cannot_start(tmp_path):
    with Store(tmp_path / "s.db") as store:
        store.save(CONTENT)
    with pytest.raises(UserError), Store(tmp_path / "s.db"):
        raise UserError("port", "free it")
    with Store(tmp_path / "s.db") as store:
        assert store.saved == CONTENT


def test_a_directory_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match=r"cannot be opened.*directory that can be written to"):
        Store(tmp_path / "none" / "s.db")


def test_damaged_rows_are_named(tmp_path):
    with Store(tmp_path / "s.db") as store:
        store.save(CONTENT)
    database = sqlite3.connect(tmp_path / "s.db")
    database.execute("UPDATE slots SET flow = 'x' WHERE number = 1")
    database.commit()
    database.close()
    with pytest.raises(UserError, match="is damaged"):
        Store(tmp_path / "s.db")

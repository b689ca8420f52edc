import bz2
import gzip
import lzma
import os
from pathlib import Path

import pytest

from hostagent.logs.place import Place
from hostagent.logs.tail import CHUNK, NOTHING, Piece, Tail


@pytest.fixture
def path(tmp_path):
    return tmp_path / "train.log"


@pytest.fixture
def tail(path):
    tail = Tail(Place(str(path)))
    yield tail
    tail.close()


def append(path, data):
    with path.open("ab") as file:
        file.write(data)


def test_growth(path, tail):
    assert tail.read() == NOTHING
    path.write_bytes(b"one\n")
    assert tail.read() == Piece(b"one\n")
    assert tail.read() == NOTHING
    append(path, b"tw")
    append(path, b"o\n")
    assert tail.read() == Piece(b"two\n")
    found = path.stat()
    assert tail.identity == (found.st_dev, found.st_ino)


def test_backlog_comes_in_pieces(path, tail):
    path.write_bytes(b"x" * (2 * CHUNK + 5))
    assert [len(tail.read().data) for _ in range(4)] == [CHUNK, CHUNK, 5, 0]


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_old_log_is_ignored_until_there_is_another(path, tail, compress):
    path.write_bytes(b"one\n")
    assert tail.read() == Piece(b"one\n")
    path.rename(path.with_suffix(".1"))
    path.write_bytes(compress(b"one\n"))
    assert tail.read() == NOTHING
    append(path, b"two\n")
    assert tail.read() == NOTHING
    path.unlink()
    path.write_bytes(b"three\n")
    assert tail.read() == Piece(b"three\n", restarted=True)


def test_a_log_in_a_container(tmp_path):
    (tmp_path / "root" / "log").mkdir(parents=True)
    (tmp_path / "root" / "log" / "a").write_bytes(b"one\n")
    (tmp_path / "root" / "train.log").symlink_to("/log/a")
    tail = Tail(Place("/train.log", str(tmp_path / "root")))
    assert tail.read() == Piece(b"one\n")
    (tmp_path / "b").write_bytes(b"not its\n")
    (tmp_path / "root" / "train.log").unlink()
    (tmp_path / "root" / "train.log").symlink_to(tmp_path / "b")
    assert tail.read() == NOTHING
    tail.close()


def test_start(path):
    path.write_bytes(b"old\n")
    tail = Tail(Place(str(path)), start=4)
    assert tail.read() == NOTHING
    append(path, b"new\n")
    assert tail.read() == Piece(b"new\n")
    tail.close()


def test_rotation_reads_the_old_to_its_end_and_the_new_from_its_start(path, tail):
    path.write_bytes(b"one\n")
    tail.read()
    append(path, b"two\n")
    path.rename(path.with_suffix(".1"))
    path.write_bytes(b"three\n")
    assert tail.read() == Piece(b"two\n")
    assert tail.read() == Piece(b"three\n", restarted=True)


def test_rename_alone_is_followed(path, tail):
    path.write_bytes(b"one\n")
    tail.read()
    renamed = path.rename(path.with_suffix(".1"))
    append(renamed, b"two\n")
    assert tail.read() == Piece(b"two\n")


def test_truncation(path, tail):
    path.write_bytes(b"one\ntwo\n")
    tail.read()
    path.write_bytes(b"3\n")
    assert tail.read() == Piece(b"3\n", restarted=True)


def test_truncation_to_nothing_is_noticed(path, tail):
    path.write_bytes(b"one\ntwo\nhal")
    tail.read()
    os.truncate(path, 0)
    assert tail.read() == Piece(b"", restarted=True)
    append(path, b"three\n")
    assert tail.read() == Piece(b"three\n")


def test_copytruncate_hole_is_skipped(path, tail):
    with path.open("wb", buffering=0) as writer:
        size = writer.write(b"x" * (1 << 20) + b"\n")
        while tail.read().data:
            pass
        os.truncate(path, 0)
        assert tail.read().restarted
        writer.write(b"new\n")  # at its own offset: a hole of 1 MiB before it
        assert path.stat().st_size == size + 4
        pieces = [tail.read().data for _ in range(2)]
    assert b"".join(pieces).lstrip(b"\0") == b"new\n"
    assert len(pieces[0]) < 8192  # at most the block that the data is in


def test_removed_file_is_read_to_its_end(path, tail):
    path.write_bytes(b"one\n")
    tail.read()
    append(path, b"two\n")
    path.unlink()
    assert tail.read() == Piece(b"two\n")
    assert tail.read() == NOTHING


def test_stdout_of_a_process(path, trainers):
    process = trainers.start()
    (path.parent / "train.log").write_bytes(b"hello\n")
    tail = Tail(Place(f"/proc/{process.pid}/fd/1"))
    assert tail.read() == Piece(b"hello\n")
    append(path, b"last words\n")
    process.kill()
    process.wait()
    assert tail.read() == Piece(b"last words\n")
    tail.close()


@pytest.mark.parametrize("kind", ["fifo", "directory", "device"])
def test_what_is_no_regular_file_is_left_alone(path, tail, kind):
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    assert tail.read() == NOTHING
    assert tail.read() == NOTHING
    (path.rmdir if kind == "directory" else path.unlink)()
    path.write_bytes(b"now\n")
    assert tail.read().data == b"now\n"


def test_no_descriptor_is_left(path, tail):
    before = len(os.listdir("/proc/self/fd"))
    for number in range(5):
        path.write_bytes(b"x%d\n" % number)
        tail.read()
        path.unlink()
    tail.close()
    assert len(os.listdir("/proc/self/fd")) == before
    assert Path("/proc/self/fd").exists()


def test_a_bookmark_is_gone_on_from(tmp_path):
    log = tmp_path / "log"
    log.write_text("one\ntwo\nthr")
    tail = Tail(Place(str(log)))
    assert tail.bookmark() is None
    assert tail.read().data == b"one\ntwo\nthr"
    mark = tail.bookmark(3)
    tail.close()
    with log.open("a") as more:
        more.write("ee\n")
    again = Tail(Place(str(log)), mark)
    assert again.read().data == b"three\n"
    again.close()


@pytest.mark.parametrize("change", ["truncated", "truncated and grown", "another file", "sparse"])
def test_a_bookmark_in_what_is_there_no_more_is_the_beginning(tmp_path, change):
    log = tmp_path / "log"
    log.write_text("one\ntwo\n" * 50)
    tail = Tail(Place(str(log)))
    tail.read()
    mark = tail.bookmark()
    tail.close()
    if change == "another file":
        log.rename(tmp_path / "log.1")
    with log.open("w") as file:
        if change == "sparse":  # what a writer at an offset of its own leaves
            file.seek(400)
        file.write("new\n" * (200 if "grown" in change else 1))
    again = Tail(Place(str(log)), mark)
    assert again.read().data.lstrip(b"\0").startswith(b"new\n")
    again.close()


def test_a_file_system_that_fails_gives_nothing(path, tail):
    path.write_bytes(b"one\n")
    assert tail.read() == Piece(b"one\n")
    path.unlink()
    descriptor, tail._descriptor = tail._descriptor, 1 << 20  # EBADF, as a FUSE file's may say ENOTCONN
    assert tail.read() == NOTHING
    assert tail.bookmark().digest == ""
    tail._descriptor = descriptor

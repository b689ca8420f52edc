import os
import subprocess

import pytest

from hostagent.logs.place import GONE, Place


def read(place):
    descriptor = place.open()
    try:
        return os.read(descriptor, 100)
    finally:
        os.close(descriptor)


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "container"
    (root / "log").mkdir(parents=True)
    (root / "log" / "train.log").write_bytes(b"inside")
    (tmp_path / "secret").write_bytes(b"outside")
    return root


def test_a_descriptor_is_that_file_whatever_it_is_called(tmp_path):
    (tmp_path / "a").write_bytes(b"text")
    with (tmp_path / "a").open("rb") as file:
        (tmp_path / "a").rename(tmp_path / "b")
        place = Place(f"/proc/{os.getpid()}/fd/{file.fileno()}")
        assert read(place) == b"text"
        assert place.stat().st_ino == os.fstat(file.fileno()).st_ino


def test_a_name_within_a_root(root):
    place = Place("/log/train.log", str(root), os.getuid())
    assert read(place) == b"inside"
    assert place.stat().st_size == 6


@pytest.mark.parametrize("target", ["/secret", "../../secret", "/log/../../../../secret", "{outside}"])
def test_no_link_leads_out(root, tmp_path, target):
    (root / "log" / "link").symlink_to(target.format(outside=tmp_path / "secret"))
    place = Place("/log/link", str(root))
    with pytest.raises(FileNotFoundError):
        place.open()
    (root / "secret").write_bytes(b"its own")
    if "{" not in target:
        assert read(place) == b"its own"


def test_no_link_of_proc_leads_out(root, tmp_path):
    with (tmp_path / "secret").open("rb") as file:
        place = Place(f"/proc/{os.getpid()}/fd/{file.fileno()}", "/")
        with pytest.raises(OSError, match="symbolic link"):
            place.open()
    assert root.exists()


def test_a_directory_that_is_a_link_stays_within(root, tmp_path):
    (root / "logs").symlink_to("/log")
    assert read(Place("/logs/train.log", str(root))) == b"inside"


def test_another_users_file_is_refused(root):
    with pytest.raises(PermissionError):
        Place("/log/train.log", str(root), os.getuid() + 1).open()
    with pytest.raises(PermissionError):
        Place("/log/train.log", str(root), os.getuid() + 1).stat()


@pytest.mark.parametrize("root", ["", "/"])
def test_what_is_no_file_on_a_disk_is_not_even_opened(tmp_path, root):
    """A process may have anything open as its output, and mount anything in a root of its own."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (fifo, "/dev/null", "/proc/self/status", "/sys/kernel/uevent_seqnum", tmp_path):
        with pytest.raises(PermissionError, match="no file on a disk"):
            Place(str(path), root or None).open()
    with pytest.raises(OSError, match="No such device or address"):  # nobody reads it: it was not opened
        os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)


def test_what_is_gone():
    with pytest.raises(FileNotFoundError):
        GONE.stat()


def test_nothing_is_left_open(root):
    before = len(os.listdir("/proc/self/fd"))
    for place in (Place("/log/train.log", str(root)), Place("/nothing", str(root)), Place("/a", "/nowhere")):
        for act in (place.stat, place.open):
            try:
                found = act()
            except OSError:
                continue
            if isinstance(found, int):
                os.close(found)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_container_in_a_mount_namespace_of_its_own(tmp_path, root):
    """A process whose root is elsewhere: its names are looked up in its own root."""
    if os.geteuid() != 0:
        pytest.skip("chroot needs root")
    code = "import os, sys, time; os.chroot(sys.argv[1]); print(flush=True); time.sleep(60)"
    process = subprocess.Popen(["python3", "-c", code, str(root)], stdout=subprocess.PIPE)
    try:
        assert process.stdout
        process.stdout.readline()
        assert read(Place("/log/train.log", f"/proc/{process.pid}/root")) == b"inside"
    finally:
        process.kill()
        process.wait()


def test_a_name_that_is_no_text_is_said_as_text(tmp_path):
    name = os.fsencode(tmp_path) + b"/\xff.log"
    with open(name, "wb") as file:
        file.write(b"text")
    place = Place(os.fsdecode(name), "/", os.getuid())
    assert read(place) == b"text"
    assert str(place) == f"{tmp_path}/\\xff.log in /"

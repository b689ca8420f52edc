"""RDMA connections. There is no RDMA hardware here: the listings are written as iproute2 prints them."""

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.flows import rdma
from hostagent.flows.rdma import JobQueuePair, QueuePair, QueuePairs, gid_addresses, parse, source_port

HOST, OTHER = bytes([10, 0, 1, 1]), bytes([10, 0, 1, 9])

LISTING = """[
{"ifindex":0,"ifname":"mlx5_0","port":1,"lqpn":1,"type":"GSI","state":"RTS","sq-psn":0,"comm":"ib_core"},
{"ifindex":0,"ifname":"mlx5_0","port":1,"lqpn":277,"type":"UD","state":"RTS","sq-psn":0,"comm":"ib_ipoib"},
{"ifindex":0,"ifname":"mlx5_0","port":1,"lqpn":4711,"rqpn":4712,"type":"RC","state":"RTS","rq-psn":12474738,
 "sq-psn":0,"path-mig-state":"MIGRATED","pdn":9,"pid":1523,"comm":"python"},
{"ifindex":0,"ifname":"mlx5_0","port":1,"lqpn":4713,"rqpn":4714,"type":"RC","state":"RTS","rq-psn":1,"sq-psn":0,
 "path-mig-state":"MIGRATED","pid":1600,"comm":"python"},
{"ifindex":0,"ifname":"mlx5_0","port":1,"lqpn":4715,"rqpn":4716,"type":"RC","state":"INIT","pid":1523,"comm":"python"},
{"ifindex":0,"ifname":"mlx5_0","port":1,"lqpn":4717,"type":"RC","state":"RESET","sq-psn":0,"pid":1523,"comm":"python"},
{"ifindex":1,"ifname":"mlx5_1","port":1,"lqpn":4711,"rqpn":99,"type":"XRC_INI","state":"RTS","pid":1523,"comm":"python"}]
"""

OURS = QueuePair("mlx5_0", 1, 4711, 4712, 1523)


def test_connected_queue_pairs_of_processes():
    assert parse(LISTING.encode()) == [
        OURS,
        QueuePair("mlx5_0", 1, 4713, 4714, 1600),
        QueuePair("mlx5_1", 1, 4711, 99, 1523),
    ]
    assert parse(b"") == parse(b"[]\n") == []


@pytest.mark.parametrize("text", [b"link mlx5_0/1 lqpn 1 type GSI", b"{}", b"3", b"[" * 100_000, b"\xff\xfe"])
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match="it is not"):
        parse(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
ENTRY = st.fixed_dictionaries(
    {},
    optional={
        "ifname": JSON | st.just("mlx5_0"),
        "port": JSON | st.integers(0, 3),
        "lqpn": JSON | st.integers(0, 2**25),
        "rqpn": JSON | st.integers(0, 2**25),
        "type": st.just("RC") | JSON,
        "state": st.just("RTS") | JSON,
        "pid": JSON | st.integers(0, 2**32),
    },
)


@given(st.lists(ENTRY | JSON, max_size=6))
def test_absurd_entries_are_left_out(entries):
    for pair in parse(json.dumps(entries).encode()):
        assert 0 < pair.local < 2**24
        assert 0 < pair.remote < 2**24
        assert pair.pid > 0


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(text):
    with contextlib.suppress(ValueError):
        assert isinstance(parse(text), list)


def sport_by_the_kernels_words(local, remote):
    """rdma_get_udp_sport(0, lqpn, rqpn): the label from the numbers, the port from the label."""
    value = (local * remote) & 0xFFFFFFFFFFFFFFFF
    value = (value ^ (value >> 20)) & 0xFFFFFFFFFFFFFFFF
    value = (value ^ (value >> 40)) & 0xFFFFFFFFFFFFFFFF
    label = value & 0x000FFFFF
    low, high = label & 0x03FFF, label & 0xFC000
    return (low ^ (high >> 14)) | 0xC000


def test_source_port_worked_by_hand():
    # 3 * 5 = 15: nothing above 14 bits, so the port is 0xC000 | 15.
    assert source_port(3, 5) == 0xC00F
    # 0x1000 * 0x1000 = 0x1000000; >> 20 is 0x10: 0x1000010 & 0xFFFFF = 0x10.
    assert source_port(0x1000, 0x1000) == 0xC010
    # 0x4000 * 1 = 0x4000: above 14 bits, so it is folded down to bit 0.
    assert source_port(0x4000, 1) == 0xC001


@given(st.integers(1, 2**24 - 1), st.integers(1, 2**24 - 1))
def test_source_port_is_linuxs(local, remote):
    assert (
        source_port(local, remote) == source_port(remote, local) == sport_by_the_kernels_words(local, remote)
    )
    assert 0xC000 <= source_port(local, remote) <= 0xFFFF


def test_queue_pairs_that_share_a_port_are_told_apart_by_their_numbers():
    """3 x 8 and 4 x 6 give one port: only the destination queue pair tells these connections apart."""
    one, two = JobQueuePair(HOST, "job1", 3, 8), JobQueuePair(HOST, "job2", 4, 6)
    assert one.source_port == two.source_port == 0xC018
    assert one.remote != two.remote


@pytest.fixture
def sysfs(tmp_path):
    """A device as the kernel shows it: GIDs of RoCE v1 and v2 at the same addresses, and empty ones."""
    for device, address in (("mlx5_0", "0a00:0101"), ("mlx5_1", "0a00:0109")):
        port = tmp_path / "sys" / device / "ports" / "1"
        (port / "gids").mkdir(parents=True)
        (port / "gid_attrs" / "types").mkdir(parents=True)
        link, mapped = "fe80:0000:0000:0000:0202:c9ff:fe00:0001", f"0000:0000:0000:0000:0000:ffff:{address}"
        entries = [(link, "IB/RoCE v1"), (link, "RoCE v2"), (mapped, "IB/RoCE v1"), (mapped, "RoCE v2")]
        for number, (gid, kind) in enumerate(entries):
            (port / "gids" / str(number)).write_text(f"{gid}\n")
            (port / "gid_attrs" / "types" / str(number)).write_text(f"{kind}\n")
        (port / "gids" / "4").write_text("0000:0000:0000:0000:0000:0000:0000:0000\n")  # its type: EINVAL
    return tmp_path / "sys"


def test_addresses_of_a_port(sysfs):
    link = bytes.fromhex("fe800000000000000202c9fffe000001")
    assert gid_addresses(sysfs, "mlx5_0", 1) == [link, HOST]
    assert gid_addresses(sysfs, "mlx5_0", 2) == []
    assert gid_addresses(sysfs, "../etc", 1) == gid_addresses(sysfs, "..", 1) == []


def listed(pairs, eventually):
    """Look until a listing has been taken in."""

    def ready():
        pairs.look(time.monotonic_ns())
        return pairs._listed

    return eventually(ready)


def script(tmp_path, body):
    path = tmp_path / "rdma.sh"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return (str(path),)


def test_queue_pairs_of_jobs(tmp_path, sysfs, eventually):
    (tmp_path / "listing").write_text(LISTING)
    pairs = QueuePairs(script(tmp_path, f"cat {tmp_path}/listing"), sysfs)
    assert listed(pairs, eventually) == parse(LISTING.encode())
    # mlx5_1 is not at an address of ours, and process 1600 is of no job.
    assert pairs.of_jobs({1523: "job1"}, {HOST}) == [JobQueuePair(HOST, "job1", 4711, 4712)]
    assert pairs.of_jobs(
        {1523: "job1", 1600: "job2"}, {HOST, OTHER}, lambda job, qp: 7 if qp == 4713 else 0
    ) == [
        JobQueuePair(HOST, "job1", 4711, 4712),
        JobQueuePair(HOST, "job2", 4713, 4714, 7),
        JobQueuePair(OTHER, "job1", 4711, 99),
    ]
    pairs.close()


def test_no_device_no_command(tmp_path):
    ran = tmp_path / "ran"
    pairs = QueuePairs(script(tmp_path, f"touch {ran}"), tmp_path / "nothing")
    for _ in range(5):
        pairs.look(time.monotonic_ns())
    assert pairs._running is None
    assert not ran.exists()


@pytest.mark.parametrize(
    ("body", "reason"), [("exit 3", "exit code 3"), ("echo no", "not JSON"), ("echo 7", "not a list")]
)
def test_a_command_that_fails_is_told_once(tmp_path, sysfs, body, reason, capsys, monkeypatch):
    monkeypatch.setattr(rdma, "PERIOD_NS", 1)
    pairs = QueuePairs(script(tmp_path, body), sysfs)
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        pairs.look(time.monotonic_ns())
        time.sleep(0.02)
    pairs.close()
    assert capsys.readouterr().out.count(reason) == 1


def test_a_command_that_hangs_is_given_up(tmp_path, sysfs, monkeypatch, capsys):
    monkeypatch.setattr(rdma, "TIMEOUT_NS", 50_000_000)
    monkeypatch.setattr(rdma, "PERIOD_NS", 10_000_000)
    pairs = QueuePairs(script(tmp_path, "exec sleep 60"), sysfs)
    begun = time.monotonic_ns()
    pairs.look(begun)
    running = pairs._running
    pairs.look(begun + 20_000_000)
    assert pairs._running is running  # nobody waits for it
    pairs.look(begun + 80_000_000)
    assert running.poll() is not None
    assert "takes too long" in capsys.readouterr().out
    pairs.close()


def test_no_command(sysfs, capsys):
    pairs = QueuePairs(("no-such-command",), sysfs)
    pairs.look(1)
    assert "install iproute2" in capsys.readouterr().out

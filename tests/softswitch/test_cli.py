"""The command as a process: what it refuses, and that it leaves nothing behind."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from scapy.utils import PcapReader

PROGRAMS = Path(__file__).parent / "p4runtime" / "programs"


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "softswitch", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        **options,
    )


def refused(result, *words):
    """Check that the command failed with one line that has these words."""
    assert result.returncode == 2, result.stderr
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert result.stderr.startswith("error: ")
    for word in words:
        assert word in result.stderr


def kinds(netlink, interface):
    index = netlink.link_lookup(ifname=interface)[0]
    return {item.get_attr("TCA_KIND") for item in netlink.get_qdiscs(index)}


def test_the_generated_python_is_printed():
    result = run("--dump-python", str(PROGRAMS / "features.json"))
    assert result.returncode == 0
    compile(result.stdout, "dump", "exec")
    assert "\nprocess = " in result.stdout


def test_programs_that_cannot_be_used(tmp_path):
    refused(run(str(tmp_path / "none.json")), "none.json", "No such file")
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    refused(run(str(bad)), "bad.json")
    bad.write_text("{}")
    refused(run(str(bad)), "bad.json", "v1model")
    bad.write_text("[" * 100_000)
    refused(run(str(bad)), "bad.json", "v1model")


def test_without_root(namespace):
    if os.geteuid() != 0:
        pytest.skip("must be root, to be able not to be")
    result = subprocess.run(
        [
            "setpriv",
            "--bounding-set",
            "-all",
            "--reuid",
            "65534",
            sys.executable,
            "-m",
            "softswitch",
            "--no-p4",
        ],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    if "Permission" in result.stderr:
        pytest.skip("this Python is root's alone")
    refused(result, "root")


def test_an_interface_that_is_not_there_takes_nothing_with_it(veth, namespace):
    veth("a", "b")
    refused(run("-i", "1@a", "-i", "2@nothere", "--no-p4"), "nothere")
    assert "htb" not in kinds(namespace, "a")


def test_a_port_that_is_taken(veth, namespace):
    veth("a", "b")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        refused(
            run("-i", "1@a", "--no-p4", "--", "--grpc-server-addr", address), address, "--grpc-server-addr"
        )
    refused(run("-i", "1@a", "--no-p4", "--", "--grpc-server-addr", "192.0.2.1:9559"), "192.0.2.1:9559")
    assert "htb" not in kinds(namespace, "a")


def test_without_the_capability_to_set_up_an_interface(veth, namespace):
    if os.geteuid() != 0:
        pytest.skip("must be root, to be able to give a capability away")
    veth("a", "b")
    command = ["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin", sys.executable]
    result = subprocess.run(
        [*command, "-m", "softswitch", "-i", "1@a", "--no-p4"],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    refused(result, "interface a cannot be set up", "CAP_NET_ADMIN")
    assert "htb" not in kinds(namespace, "a")


def test_no_log_level_is_too_quiet(switch, namespace):
    result = run("--log-level", "off", "--no-p4", "--", "--grpc-server-addr", "nowhere")
    refused(result, "nowhere")


def test_a_hang_up_is_ignored_under_nohup(switch, namespace):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        running = switch("--device-id", "1", "--no-p4")
    finally:
        signal.signal(signal.SIGHUP, before)
    running.process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        running.process.wait(0.5)
    assert running.stop()[0] == 0


def test_a_qdisc_of_somebody_else(veth, namespace):
    veth("a", "b")
    namespace.tc("add", "pfifo", namespace.link_lookup(ifname="a")[0], 0x70000, limit=5)
    refused(run("-i", "1@a", "--no-p4"), "pfifo", "tc qdisc del dev a root")
    assert kinds(namespace, "a") == {"pfifo"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_nothing_is_left(switch, veth, namespace, number):
    veth("a", "b")
    before = kinds(namespace, "a")
    running = switch("-i", "1@a", "--port-rate", "10mbit", "--device-id", "1", "--no-p4")
    assert "htb" in kinds(namespace, "a")
    code, rest = running.stop(number)
    assert code == 0, rest
    assert kinds(namespace, "a") == before


def test_what_a_killed_switch_left_is_replaced(switch, veth, namespace):
    veth("a", "b")
    before = kinds(namespace, "a")
    killed = switch("-i", "1@a", "--device-id", "1", "--no-p4")
    killed.process.kill()
    killed.process.wait()
    assert "htb" in kinds(namespace, "a")
    again = switch("-i", "1@a", "--device-id", "1", "--no-p4")
    assert again.stop()[0] == 0
    assert kinds(namespace, "a") == before


def test_device_id_zero_is_tolerated_and_warned_of(switch, namespace):
    running = switch("--no-p4")
    assert any("device id is 0" in line for line in running.log)
    assert running.stop()[0] == 0


def test_no_p4_ignores_a_program_on_the_command_line(switch, namespace):
    running = switch("--device-id", "1", "--no-p4", str(PROGRAMS / "features.json"))
    assert any("the program on the command line is ignored" in line for line in running.log)
    assert running.stop()[0] == 0


def test_packets_in_and_out_are_captured(switch, veth, namespace, tmp_path):
    veth("a", "b")
    plain = Path(__file__).parent / "programs" / "plain.json"  # sends everything back
    running = switch("-i", "1@a", "--device-id", "1", f"--pcap={tmp_path}", str(plain))
    frame = bytes.fromhex("020000000001 020000000002 1234") + bytes(range(50))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as host:
        host.bind(("b", 0))
        host.settimeout(5)
        host.send(frame)
        while host.recvfrom(100)[1][2] == socket.PACKET_OUTGOING:
            pass
    for way in ("in", "out"):
        with PcapReader(str(tmp_path / f"a_{way}.pcap")) as packets:
            assert [bytes(packet) for packet in packets] == [frame]
    assert running.stop()[0] == 0


def test_a_program_on_the_command_line_runs_at_once(switch, veth, namespace):
    veth("a", "b")
    running = switch("-i", "1@a", "--device-id", "1", str(PROGRAMS / "features.json"))
    assert running.stop()[0] == 0

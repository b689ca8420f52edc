"""The command line."""

import pytest

from leveller.errors import UserError
from softswitch.logs import Destination
from softswitch.options import parse, rate


def test_as_simple_switch_grpc_is_called():
    before = ["-i", "1@veth1", "-i", "2@veth2", "--device-id", "4", "--log-level", "off", "--no-p4"]
    after = ["--grpc-server-addr", "127.0.0.1:5", "--cpu-port", "300", "--priority-queues", "4"]
    given = parse([*before, "--", *after])
    assert given.interfaces == {1: "veth1", 2: "veth2"}
    assert (given.device_id, given.log_level, given.config) == (4, "off", None)
    assert (given.grpc_address, given.cpu_port, given.queues) == ("127.0.0.1:5", 300, 4)
    assert (given.rates, given.depth) == ({}, 64)


def test_a_program_stands_before_the_target_options():
    given = parse(["-i", "1@a", "x.json", "--", "--cpu-port", "300"])
    assert str(given.config) == "x.json"


def test_no_p4_ignores_a_program_as_simple_switch_grpc_does():
    given = parse(["-i", "1@a", "--no-p4", "x.json"])
    assert (given.config, str(given.ignored)) == (None, "x.json")
    assert parse(["x.json"]).ignored is None


def test_logs_and_captures_as_simple_switch_grpc_is_asked_for_them(tmp_path):
    given = parse(["x.json", "--log-console", "--pcap", "-i", "1@a"])
    assert (given.log, str(given.pcap), str(given.config)) == (Destination(console=True), ".", "x.json")
    limits = ["--log-file-max-size", "2000", "--log-file-max-files", "1"]
    given = parse(["--log-file", "l", *limits, "--log-flush", f"--pcap={tmp_path}", "x.json"])
    assert (given.log, given.pcap) == (Destination(file="l", max_bytes=2000, max_files=1), tmp_path)
    given = parse(["x.json"])
    assert (given.log, given.pcap) == (Destination(), None)


def test_rates_for_all_ports_and_for_one():
    given = parse(["-i", "1@a", "-i", "2@b", "--no-p4", "--port-rate", "2@1gbit", "--port-rate", "100mbit"])
    assert given.rates == {1: 100_000_000, 2: 1_000_000_000}
    assert parse(["-i", "1@a", "-i", "2@b", "--no-p4", "--port-rate", "2@8000"]).rates == {2: 8000}


@pytest.mark.parametrize(
    ("text", "value"), [("8kbit", 8000), ("2.5Gbit", 2_500_000_000), ("12345678bit", 12345678)]
)
def test_rate(text, value):
    assert rate(text) == value


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "a CONFIG.json, or --no-p4"),
        ("--no-p4 --log-console --log-file x", "exclude each other"),
        ("--no-p4 --log-file-max-size 1", "from 1000 to"),
        ("--no-p4 --pcap=/nonexistent", "no directory"),
        ("x.json --no-p4 --dump-python", "nothing to compile"),
        ("--no-p4 -i veth1", "is not PORT@INTERFACE"),
        ("--no-p4 -i 511@a", "is not PORT@INTERFACE"),
        ("--no-p4 -i 1@a -i 1@b", "twice"),
        ("--no-p4 -i 1@a -i 2@a", "twice"),
        ("--no-p4 -i 510@a", "--cpu-port 510"),
        ("--no-p4 -i 1@a --port-rate 9@1mbit", "there is no port 9"),
        ("--no-p4 -i 1@a --port-rate fast", "is not a rate"),
        ("--no-p4 --port-rate 0", "is not a rate"),
        ("--no-p4 -- --priority-queues 9", "from 1 to 8"),
        ("--no-p4 --queue-depth 0", "from 1 to"),
        ("--no-p4 --nonsense", "--nonsense"),
        ("--no-p4 --log-level loud", "loud"),
        ("--no-p4 --dump-python", "nothing to compile"),
        ("--no-p4 -- --grpc-server-ssl", "certificate and key"),
        ("--no-p4 -- --grpc-server-cert x.pem", "without --grpc-server-ssl"),
    ],
)
def test_mistakes_are_named(arguments, message):
    with pytest.raises(UserError, match=message):
        parse(arguments.split())


def test_help_tells_the_queues_story(capsys):
    with pytest.raises(SystemExit) as caught:
        parse(["--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    for word in ("--port-rate", "--queue-depth", "--grpc-server-addr", "--priority-queues", "strict"):
        assert word in text

"""The commands as processes: ``leveller levels`` and ``leveller controller``."""

import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading

import grpc
import pytest
from leveller_proto import agent_pb2, agent_pb2_grpc

FIGURE_6 = {
    "jobs": [{"id": f"J{number}", "rate": number / 10} for number in (1, 2, 3, 4)],
    "flows": [
        {"id": "f1", "job": "J1", "path": ["S1:1"]},
        {"id": "f21", "job": "J2", "path": ["S1:1"]},
        {"id": "f22", "job": "J2", "path": ["S2:1", "S2:2"]},
        {"id": "f3", "job": "J3", "path": ["S2:1"]},
        {"id": "f4", "job": "J4", "path": ["S2:2"]},
    ],
}


def run(path, *options):
    command = [sys.executable, "-c", "from leveller.cli import main; main()", "levels", str(path), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def write(tmp_path, content):
    path = tmp_path / "levels.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_figures_6_and_7_from_the_command_line(tmp_path):
    done = run(write(tmp_path, FIGURE_6), "--queues", "2", "--scope", "fabric", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"levels": {"f1": 1, "f21": 0, "f22": 1, "f3": 0, "f4": 0}}


def test_port_scope_from_the_command_line(tmp_path):
    done = run(write(tmp_path, FIGURE_6), "--queues", "3", "--scope", "port", "--json")
    assert json.loads(done.stdout)["levels"]["f22"] == {"S2:1": 2, "S2:2": 2}
    assert json.loads(done.stdout)["levels"]["f21"] == {"S1:1": 1}


def test_switch_scope_from_the_command_line(tmp_path):
    levels = json.loads(
        run(write(tmp_path, FIGURE_6), "--queues", "3", "--scope", "switch", "--json").stdout
    )["levels"]
    assert levels == {"f1": {"S1": 2}, "f21": {"S1": 1}, "f22": {"S2": 2}, "f3": {"S2": 1}, "f4": {"S2": 1}}


def test_a_table_without_json(tmp_path):
    done = run(write(tmp_path, FIGURE_6), "--queues", "2")
    assert done.returncode == 0
    assert "f22" in done.stdout
    assert "0.200" in done.stdout


def test_names_are_shown_as_they_are(tmp_path):
    name = "[red]j[/blue]:smile:"
    question = {"jobs": [{"id": name, "rate": 1}], "flows": [{"id": "f", "job": name, "path": ["S1:1"]}]}
    assert name in run(write(tmp_path, question)).stdout


def test_mistakes_are_one_line_and_exit_code_2(tmp_path):
    path = write(tmp_path, FIGURE_6)
    for arguments in (
        (tmp_path / "none.json",),
        (tmp_path,),
        (path, "--queues", "9"),
        (path, "--queues", "0"),
        (path, "--scope", "rack"),
        (path, "--policy", "best"),
        (write(tmp_path / "..", "{"),),
    ):
        done = run(*arguments)
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1


CONTROLLER = """
[controller]
tau_s = 0.25
listen = "127.0.0.1:0"
http = "127.0.0.1:0"
store = "{store}"

[[switches]]
name = "S1"
address = "127.0.0.1:1"
device_id = 1
node_id = 1
ports = [1]
"""


def launch(tmp_path, **replaced):
    """Run the controller in ``tmp_path``, whose switch is never there."""
    path, text = tmp_path / "leveller.toml", CONTROLLER.format(store=tmp_path / "l.db")
    for key, value in replaced.items():
        text = re.sub(rf"(?m)^{key} = .*$", f'{key} = "{value}"', text)
    path.write_text(text)
    command = [sys.executable, "-c", "from leveller.cli import main; main()", "controller", "--config", path]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_controller_serves_until_it_is_interrupted(tmp_path, number):
    process = launch(tmp_path)
    for line in process.stderr:
        if "controller started" in line:
            listen = re.search(r"agents=(\S+)", line)[1]
            break
    with grpc.insecure_channel(listen) as channel:
        hello = agent_pb2.AgentMessage(
            hello=agent_pb2.Hello(protocol_version=1, host="h1", addresses=["10.0.1.1"])
        )
        forever = itertools.chain([hello], iter(threading.Event().wait, True))
        stream = agent_pb2_grpc.AgentsStub(channel).Connect(forever)
        assert next(stream).WhichOneof("body") == "welcome"
        os.kill(process.pid, number)
        process.wait(20)
    _, rest = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "controller stopped" in rest
    assert "Traceback" not in rest


def test_what_the_controller_cannot_have_is_one_line_and_exit_code_2(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for key, value, words in (
            ("listen", address, f"controller.listen = {address} cannot be listened on"),
            ("http", address, f"controller.http = {address} cannot be listened on"),
            ("store", tmp_path, f"store {tmp_path} cannot be opened"),
            ("tau_s", "soon", "leveller.toml: controller.tau_s = 'soon': "),
        ):
            process = launch(tmp_path, **{key: value})
            _, text = process.communicate(timeout=20)
            assert process.returncode == 2
            assert text.startswith("error: ")
            assert words in text
            assert text.count("\n") == 1

import os
import re
import socket
import subprocess
import time

import pytest

from topo import namespace

torch = pytest.importorskip("torch", reason="PyTorch is not installed: run 'make ddp'")

from topo.jobs import ddp  # noqa: E402


def test_a_ring_of_two_sends_the_whole_gradient_once():
    assert ddp.parameters(8_000_000, 2) == 2_000_000


def test_a_ring_of_four_sends_it_one_and_a_half_times():
    assert ddp.parameters(12_000_000, 4) == 2_000_000


def test_every_parameter_has_a_gradient():
    model = ddp.Bias(5)
    model(torch.tensor(1.0)).backward()
    # d/dw (sum(w) - 1)^2 = 2 (sum(w) - 1) = -2 at w = 0
    assert model.weight.grad.tolist() == [-2.0] * 5


def test_two_ranks_train_and_log(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    start = time.time()
    command = [*namespace.python("topo.jobs.ddp"), "--ring", "127.0.0.1,127.0.0.1", "--log", "nanogpt"]
    command += ["--compute", "0.2", "--volume", "1000000", "--start", str(start)]
    common = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    ranks, logs = [], [tmp_path / "0.log", tmp_path / "1.log"]
    try:
        for rank, log in enumerate(logs):
            with log.open("wb") as out:
                environment = {**common, "RANK": str(rank), "GLOO_SOCKET_IFNAME": "lo"}
                ranks.append(subprocess.Popen(command, env=environment, stdout=out, stderr=out))
        while time.time() < start + 90 and logs[0].read_text().count("\n") < 3:
            assert [rank.poll() for rank in ranks] == [None, None], [log.read_text() for log in logs]
            time.sleep(0.1)
    finally:
        for rank in ranks:
            rank.terminate()
    assert [rank.wait(10) for rank in ranks] == [0, 0]
    lines = logs[0].read_text().splitlines()
    assert [int(re.match(r"iter (\d+): ", line)[1]) for line in lines[:3]] == [1, 2, 3]
    assert all(float(re.search(r"time ([\d.]+)ms", line)[1]) >= 200 for line in lines)
    assert logs[1].read_text() == ""

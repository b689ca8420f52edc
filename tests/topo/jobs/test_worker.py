"""Real ranks on loopback: a ring of processes, real logs, a clean end."""

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise

import pytest

from simulator import engine
from topo import measure
from topo.jobs import worker
from topo.jobs.launch import WORKER


@pytest.fixture
def ring(tmp_path, unused_port):
    """``ring(ranks, log)``: processes of one job; ended after the test."""
    processes = []

    def start(ranks, log, compute=0.02, volume=1_000_000, slots=None):
        addresses = [f"127.0.0.{1 + rank}" for rank in range(ranks)]
        begin = time.time() + 0.5
        for rank in range(ranks):
            place = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_PORT": str(unused_port)}
            place |= {worker.SLOTS: str(slots)} if slots else {}
            command = [sys.executable, "-S", str(WORKER), "--ring", ",".join(addresses), "--log", log]
            command += ["--compute", str(compute), "--volume", str(volume), "--start", str(begin)]
            with (tmp_path / f"{rank}.log").open("wb") as out, (tmp_path / f"{rank}.err").open("wb") as err:
                processes.append(
                    subprocess.Popen(command, stdout=out, stderr=err, env={**os.environ, **place})
                )
        return processes, begin

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture
def unused_port():
    # Ranks listen on consecutive ports; below the ephemeral range nobody else takes them here.
    return 20000 + os.getpid() % 8000


def wait_for(condition):
    deadline = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(("log", "rank"), [("megatron", 2), ("nanogpt", 0)])
def test_three_ranks_iterate_and_one_of_them_logs(ring, tmp_path, log, rank):
    _, begin = ring(3, log)
    ends = []

    def five():
        ends[:] = measure.iteration_ends(tmp_path / f"{rank}.log", log, begin)
        return len(ends) >= 5

    wait_for(five)
    assert ends[0] > begin + 0.02
    assert all(later - earlier >= 0.0199 for earlier, later in pairwise(ends))
    silent = [tmp_path / f"{other}.log" for other in range(3) if other != rank]
    assert [path.read_text() for path in silent] == ["", ""]


def test_iterations_start_when_cassini_has_them_start(ring, tmp_path):
    path = tmp_path / "slots"
    _, begin = ring(2, "megatron", compute=0.48, volume=1000, slots=path)

    def ends(since=0.0):
        return [end for end in measure.iteration_ends(tmp_path / "1.log", "megatron", begin) if end > since]

    wait_for(lambda: len(ends()) >= 2)
    told = time.time()
    (tmp_path / "new").write_text(f"{begin + 0.1} 0.5\n")
    (tmp_path / "new").replace(path)  # each ends some 20 ms before the next slot, and waits for it
    wait_for(lambda: len(ends(told)) >= 6)
    after = ends(told)[2:]
    assert [later - earlier for earlier, later in pairwise(after)] == pytest.approx([0.5] * 3, abs=0.05)
    # Slots are at 0.1, 0.6 ...; iterations that begin there end 0.02 before the next.
    assert [(end - begin - 0.08 + 0.25) % 0.5 for end in after] == pytest.approx([0.25] * 4, abs=0.05)


def test_when_an_iteration_waits_and_when_not(tmp_path):
    path = tmp_path / "slots"
    slots = worker.Slots(str(path))
    assert (worker.Slots(None).wait(1000.0), slots.wait(1000.0)) == (0, 0)
    path.write_text("900.5 2.0\n")  # so at 1000.5, 1002.5 ...
    waits = {
        1000.0: 0.5,  # the first time, to the next slot
        1000.55: 0.0,  # late, by no more than a twentieth of the cycle
        1002.45: 0.05,  # early by no more than that
        1005.0: 0.0,  # out of step, but it was delayed less than 30 s ago
        1031.0: 1.5,
        1032.6: 0.0,
    }
    assert {now: slots.wait(now) for now in waits} == pytest.approx(waits)
    assert (worker.DRIFT, worker.SHIFT_EVERY_S) == (engine.DRIFT, engine.SHIFT_EVERY)


def test_sigterm_ends_a_rank_cleanly_and_breaks_the_ring_for_the_others(ring, tmp_path):
    (first, second), _ = ring(2, "nanogpt")
    wait_for(lambda: (tmp_path / "0.log").read_text().count("\n") >= 2)
    first.send_signal(signal.SIGTERM)
    assert first.wait(5) == 0
    assert (tmp_path / "0.err").read_text() == ""
    assert second.wait(5) == 1
    assert (tmp_path / "1.err").read_text() == "rank 1: the ring broke: a neighbour left\n"


def test_volume_smaller_than_the_number_of_steps_still_completes(ring, tmp_path):
    ring(3, "nanogpt", volume=1)
    wait_for(lambda: (tmp_path / "0.log").read_text().count("\n") >= 3)


def test_lines_are_those_of_the_frameworks():
    assert worker.nanogpt_line(7, 0.0, 1.5) == "iter 7: loss 3.1416, time 1500.00ms, mfu 25.00%"
    line = worker.megatron_line(12, 1700000000.25, 1.5)
    assert line.startswith(" [20")
    assert ".250000] iteration       12/  500000 | consumed samples:           96 | " in line
    assert "elapsed time per iteration (ms): 1500.0 |" in line


@pytest.mark.parametrize(
    ("honest", "told"),
    [
        (None, [1, 2, 3, 4, 5, 6, 7, 8]),
        (0, [0, 1, 0, 2, 0, 3, 0, 4]),
        (3, [1, 2, 3, 0, 4, 0, 5, 0]),
    ],
)
def test_a_job_that_lies_tells_of_every_second_iteration_as_if_those_were_all(honest, told):
    assert [worker.tells(iteration, honest) for iteration in range(1, 9)] == told

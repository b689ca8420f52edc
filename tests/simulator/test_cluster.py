"""A sweep on a Ray cluster: a head without dashboard or telemetry, in a network and PID namespace of its own.

Ray listens on all addresses and runs what anybody asks; in there, loopback is the only one, and when the
namespace ends so does every process in it.
"""

import builtins
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from leveller.errors import UserError
from simulator.cluster import on_ray

try:
    import ray
except ImportError:
    pytest.skip("ray is not installed: pip install 'leveller[ray]'", allow_module_level=True)

HEAD = "127.0.0.1:6379"
START_S = 90


@pytest.fixture(scope="module")
def inside():
    """Run a command beside a head that listens at `HEAD`, and return its output."""
    if os.geteuid() != 0:
        pytest.skip("a network namespace for Ray needs root")
    folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # its sockets' names must be short
    start = f"{Path(sys.executable).with_name('ray')} start --head --block --num-cpus=2 --temp-dir={folder}"
    start += " --include-dashboard=false --disable-usage-stats --object-store-memory=80000000"
    unshare = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    with (folder / "out").open("wb") as out:
        process = subprocess.Popen(
            [*unshare, "sh", "-c", f"ip link set lo up && exec {start}"],
            env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    family = []
    try:
        deadline = time.monotonic() + START_S
        while "Ray runtime started" not in (said := (folder / "out").read_text()):
            assert process.poll() is None, said
            assert time.monotonic() < deadline, said
            time.sleep(0.1)
        family = psutil.Process(process.pid).children(recursive=True)

        def run(*command):
            enter = ["nsenter", "--net", "--pid", "--mount", "-t", str(family[0].pid)]
            result = subprocess.run(
                [*enter, *command], capture_output=True, text=True, timeout=90, check=True
            )
            return result.stdout

        yield run
    finally:
        process.kill()
        process.wait()
        _, alive = psutil.wait_procs(family, timeout=20)
        shutil.rmtree(folder)
    assert alive == []


def test_a_sweep_begun_here_goes_on_there_with_the_same_rows(inside, path, run_sweep, tmp_path):
    ours, theirs = tmp_path / "ours.jsonl", tmp_path / "theirs.jsonl"
    run_sweep(ours)
    run_sweep(theirs, ["fair"])
    begun = theirs.read_bytes()
    command = [sys.executable, "-m", "leveller", "sim", "sweep", str(path), "--policy", "fair,leveller"]
    command += ["--set", "policy.tau_s=0.5,8", "--seeds", "2", "--out", str(theirs)]
    text = inside(*command, "--ray", HEAD)
    assert theirs.read_bytes() == ours.read_bytes() != begun
    assert "leveller" in text


REFUSED = f"""
from pathlib import Path
import simulator.cluster
from leveller.errors import UserError
from simulator.grid import points, variants
simulator.cluster.sources_digest = lambda: "another"
try:
    run = simulator.cluster.on_ray("{HEAD}")
    list(run(points(["fair"], {{}}, [0]), variants(Path("PATH"), {{}})))
except UserError as error:
    print(error)
"""


def test_nodes_with_another_version_are_refused(inside, path):
    said = inside(sys.executable, "-c", REFUSED.replace("PATH", str(path)))
    assert said == (
        "the Ray cluster has another version of leveller: install on its nodes what is installed here, "
        "and start them again\n"
    )


def test_no_cluster(run_sweep):
    with pytest.raises(
        UserError, match=r"--ray 127.0.0.1:1 cannot be reached \(.*refused\): see 'ray status'"
    ):
        run_sweep(runner=on_ray("127.0.0.1:1"))
    for text in ("auto", "host", ":6379", "host:x", "host:70000"):
        with pytest.raises(UserError, match=f"--ray {text}: give HOST:PORT"):
            run_sweep(runner=on_ray(text))
    assert not ray.is_initialized()


def test_without_ray(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "ray":
            raise ImportError
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match=r"--ray needs Ray: pip install 'leveller\[ray\]'"):
        on_ray(HEAD)

"""The simulator's speed: beside SimGrid on the same flows, as clusters grow, and on a busy 1,024-GPU cluster.

Every cluster here has one NIC of 400 Gbit/s per GPU, 64 GPUs a ToR and 16 spines: 4:1 oversubscribed. Jobs
are rings of 8 to 64 GPUs, placed at random.

- "same flows": as many jobs as fill 80 % of clusters of 128 to 16,384 GPUs, all started together, under
  flow-fair sharing; the more GPUs, the fewer iterations. Up to --beside GPUs the same jobs run in SimGrid
  (CM02 without latency, raw contexts, its lazy updates), which gets the same paths and bytes, and so starts
  every flow when we do: the largest difference between the times at which jobs end is printed.
- "cluster": 1,000 jobs of 100 to 1,000 iterations arrive at load 0.8, and LEVELLER ranks them into 8 levels
  every --tau seconds; "cluster, fair" is the same jobs without a ranking. SimGrid, which has no levels, runs
  them where and when the latter does: the same flows as the latter, as many and as large as the former.

Each measurement has a process of its own, whose inner loops are compiled before the clock starts, and is the
best of three for the same flows. The times compared are CPU seconds of one core, which depend less than wall
time on what else the machine does. Placing jobs and laying out their flows counts as set-up there, as does
SimGrid's reading of them; the cluster, where jobs come and go, has everything in its CPU time. "model" is the
part of that which SimGrid's figure is of, too: the network model's, without arrivals, placing and rankings.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from simulator import engine
from simulator.compiled import COMPILED
from simulator.fabric import Fabric
from simulator.plan import LinkPath
from simulator.ranking import Running
from simulator.results import Result
from simulator.run import Run, simulate
from simulator.scenario import Scenario
from simulator.workload import Workload, draw

HERE = Path(__file__).parent
REPEAT = 3
SIZES = (128, 512, 1024, 4096, 16_384)
COLUMNS = (
    "iterations",
    "events",
    "setup_s",
    "cpu_s",
    "model_s",
    "wall_s",
    "events_per_s",
    "peak_mib",
    "simgrid_cpu_s",
    "simgrid_wall_s",
    "simgrid_events_per_s",
    "ratio",
    "model_ratio",
    "largest_difference",
)


def scenario(gpus: int, horizon: float, **parts: object) -> Scenario:
    """Return a scenario on a cluster of ``gpus`` GPUs."""
    fabric = {
        "kind": "leaf-spine",
        "leaves": gpus // 64,
        "spines": 16,
        "hosts_per_leaf": 64,
        "gpus_per_host": 1,
        "nic_gbps": 400,
        "uplink_gbps": 400,
    }
    return Scenario.model_validate({"horizon_s": horizon, "placement": "random", "fabric": fabric} | parts)


def full_cluster(gpus: int, iterations: int, horizon: float = 1e9) -> Scenario:
    """Return jobs that together fill 80 % of ``gpus`` GPUs and start at once."""
    jobs: list[dict[str, object]] = []
    room = 0.8 * gpus
    for number, job in enumerate(draw(Workload(jobs=gpus // 8), 0)):
        if job.gpus > room:
            break
        room -= job.gpus
        jobs.append(
            {
                "id": f"job{number}",
                "compute_s": job.compute_s,
                # Whole bytes per flow, as SimGrid has them: rounding would grow until it moves whole phases.
                "bytes": round(job.bytes / job.gpus) * job.gpus,
                "gpus": job.gpus,
                "iterations": iterations,
            }
        )
    return scenario(gpus, horizon, jobs=jobs)


def measure(config: Scenario, policy: str, repeat: int) -> dict[str, Any]:
    """Run ``config`` after a warm-up, in this process; with ``repeat``, best of those and without set-up."""
    warm = full_cluster(128, 2)
    for name in ("fair", "leveller"):
        simulate(warm, warm.fabric.build(HERE), name)
    model = NetworkModel()
    fabric = config.fabric.build(HERE)
    nothing = config.model_copy(update={"horizon_s": 1e-9})
    setup = min((cpu_seconds(nothing, fabric, policy, model)[0] for _ in range(repeat)), default=0.0)
    cpu, in_model, result = min(
        (cpu_seconds(config, fabric, policy, model) for _ in range(repeat or 1)), key=lambda one: one[0]
    )
    return {
        "jobs": len(result.jobs),
        "events": result.events,
        "setup_s": setup,
        "cpu_s": cpu - setup,
        "model_s": in_model,
        "wall_s": result.wall_s,
        "events_per_s": result.events / (cpu - setup),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "min_R": result.min_rate,
        "avg_R": result.average_rate,
        "ends": [job.end for job in result.jobs],
    }


class NetworkModel:
    """The CPU time spent in the engine: what it is called for anywhere in this process, from now on."""

    def __init__(self) -> None:
        self.seconds = 0.0
        for name in ("advance", "refresh", "reroute", "set_levels", "set_shifts", "start_jobs"):
            setattr(engine, name, self._timed(getattr(engine, name)))

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: object) -> object:
            start = time.process_time()
            found = function(*arguments)
            self.seconds += time.process_time() - start
            return found

        return call


def cpu_seconds(
    config: Scenario, fabric: Fabric, policy: str, model: NetworkModel
) -> tuple[float, float, Result]:
    """Run ``config``; return the CPU time it took, how much of that in ``model``, and its result."""
    model.seconds = 0.0
    start = time.process_time()
    result = simulate(config, fabric, policy)
    return time.process_time() - start, model.seconds, result


def apart(config: Scenario, policy: str, repeat: int) -> dict[str, Any]:
    """`measure` in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, config, policy, repeat).result()


def write_flows(config: Scenario, path: Path) -> None:
    """Write the jobs of ``config``, where and when flow-fair ones run, for bench/simgrid_flows.cpp."""
    fabric = config.fabric.build(HERE)
    run = Run(config, fabric, "fair", 0)
    placed: dict[int, Running] = {}
    run.go(lambda _: placed.update((job.number, job) for job in run.running))
    sender = {host.up[0]: number for number, host in enumerate(fabric.hosts.values())}
    receiver = {host.down[0]: number for number, host in enumerate(fabric.hosts.values())}
    # SimGrid has one path for a pair of hosts, so another path between the same two has a source of its own.
    paths: defaultdict[tuple[int, int], list[LinkPath]] = defaultdict(list)
    hosts: dict[tuple[int, int], int] = {}
    lines = [str(len(fabric.links)), *(f"{rate:.17g}" for rate in fabric.rates), str(len(placed))]
    for _, job in sorted(placed.items()):
        flows = [flow for phase in job.plan.phases for flow in phase.flows]
        lines.append(f"{job.start:.17g} {job.plan.compute_s:.17g} {job.plan.target} {len(flows)}")
        for flow in flows:
            source, target = sender[flow.path[0]], receiver[flow.path[-1]]
            known = paths[source, target]
            if flow.path not in known:
                known.append(flow.path)
            ends = (source, known.index(flow.path)), (target, 0)
            names = " ".join(str(hosts.setdefault(end, len(hosts))) for end in ends)
            lines.append(f"{names} {round(flow.volume)} {len(flow.path)} {' '.join(map(str, flow.path))}")
    path.write_text("\n".join(lines) + "\n")


def simgrid(config: Scenario, repeat: int) -> tuple[float, float, list[float]]:
    """Run ``config`` in SimGrid, best of ``repeat``: its wall time, its CPU time and the jobs' ends."""
    with tempfile.TemporaryDirectory() as folder:
        program, flows = Path(folder) / "simgrid_flows", Path(folder) / "flows"
        write_flows(config, flows)
        source = HERE / "simgrid_flows.cpp"
        subprocess.run(["g++", "-O2", "-std=c++17", str(source), "-o", str(program), "-lsimgrid"], check=True)
        settings = (
            "network/model:CM02",
            "network/TCP-gamma:0",
            "contexts/factory:raw",
            "network/crosstraffic:0",
        )
        command = [str(program), str(flows), *(f"--cfg={one}" for one in settings), "--log=root.t:error"]
        runs = []
        for _ in range(repeat):
            found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            *ends, wall, cpu = map(float, found)
            runs.append((wall, cpu, ends))
    return min(runs, key=lambda run: run[1])


def beside(config: Scenario, rows: list[dict[str, Any]], repeat: int) -> None:
    """Run ``config`` in SimGrid too, and add what it took to ``rows``; the last is of the same sharing."""
    wall, cpu, ends = simgrid(config, repeat)
    for row in rows:
        row |= {
            "simgrid_wall_s": wall,
            "simgrid_cpu_s": cpu,
            "simgrid_events_per_s": row["events"] / cpu,
            "ratio": cpu / row["cpu_s"],
            "model_ratio": cpu / row["model_s"],
        }
    rows[-1]["largest_difference"] = float(np.max(np.abs(np.array(ends) / np.array(rows[-1]["ends"]) - 1)))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="GPUs of the clusters")
    parser.add_argument("--iterations", type=int, default=100, help="per job at 1,024 GPUs")
    parser.add_argument("--beside", type=int, default=4096, help="GPUs up to which SimGrid runs too")
    parser.add_argument("--jobs", type=int, default=1000, help="of the busy cluster")
    parser.add_argument("--tau", type=float, default=5.0, help="seconds between rankings there")
    options = parser.parse_args()
    if not COMPILED:
        sys.stderr.write(
            "numba is not installed: the inner loops are plain Python, some hundred times slower\n"
        )
    load = os.getloadavg()[0]
    sys.stderr.write(f"load of the machine: {load:.1f} on {os.cpu_count()} cores\n")

    rows: list[dict[str, Any]] = []

    def add(part: str, row: dict[str, Any]) -> None:
        rows.append({"part": part, "load": load, **{key: row[key] for key in row if key != "ends"}})
        sys.stderr.write(f"{part}, {row['gpus']} GPUs: {row['events']} events in {row['cpu_s']:.2f} s\n")

    installed = shutil.which("g++") is not None and Path("/usr/include/simgrid").exists()
    for gpus in map(int, filter(None, options.sizes.split(","))):
        iterations = max(options.iterations * 1024 // gpus, 1)
        config = full_cluster(gpus, iterations)
        row = {"gpus": gpus, "iterations": iterations, **apart(config, "fair", REPEAT)}
        if installed and gpus <= options.beside:
            beside(config.model_copy(update={"horizon_s": 1e-9}), [row], REPEAT)
        add("same flows", row)
    policy = {"tau_s": options.tau, "levels": 8}
    cluster = scenario(1024, 1e9, workload={"jobs": options.jobs, "load": 0.8}, policy=policy)
    both = [{"gpus": 1024, **apart(cluster, name, 0)} for name in ("leveller", "fair")]
    if installed and options.beside >= 1024:
        beside(cluster, both, 1)
    for name, row in zip(("cluster", "cluster, fair"), both, strict=True):
        add(name, row)
    if options.json:
        sys.stdout.write(json.dumps(rows) + "\n")
        return
    table = Table("part", "GPUs", "jobs", *(name.replace("_", " ") for name in COLUMNS))
    for row in rows:
        cells = [f"{row[name]:.4g}" if name in row else "" for name in COLUMNS]
        table.add_row(row["part"], str(row["gpus"]), str(row["jobs"]), *cells)
    Console(width=200).print(table)


if __name__ == "__main__":
    main()

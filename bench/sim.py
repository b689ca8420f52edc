"""The simulator's speed: beside SimGrid on the same flows, as clusters grow, and on a busy 1,024-GPU cluster.

Every cluster here has one NIC of 400 Gbit/s per GPU, 64 GPUs a ToR and 16 spines: 4:1 oversubscribed. Jobs
are rings of 8 to 64 GPUs, placed at random.

- "same flows": as many jobs as fill 80 % of clusters of 128 to 16,384 GPUs, all started together, under
  flow-fair sharing; the more GPUs, the fewer iterations. Up to --beside GPUs the same jobs run in SimGrid
  (CM02 without latency, raw contexts, its lazy updates), which gets the same paths and bytes, and so starts
  every flow when we do: the largest difference between the times at which jobs end is printed.
- "cluster": 1,000 jobs of 100 to 1,000 iterations arrive at load 0.8, and LEVELLER ranks them into 8 levels
  every --tau seconds.

Each measurement has a process of its own, whose inner loops are compiled before the clock starts, and is the
best of three for the same flows. The times compared are CPU seconds of one core, which depend less than wall
time on what else the machine does. Placing jobs and laying out their flows counts as set-up there, as does
SimGrid's reading of them; the cluster, where jobs come and go, has everything in its CPU time.
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
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from simulator.compiled import COMPILED
from simulator.fabric import Fabric
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
    "wall_s",
    "events_per_s",
    "peak_mib",
    "simgrid_cpu_s",
    "simgrid_wall_s",
    "simgrid_events_per_s",
    "ratio",
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
    fabric = config.fabric.build(HERE)
    nothing = config.model_copy(update={"horizon_s": 1e-9})
    setup = min((cpu_seconds(nothing, fabric, policy)[0] for _ in range(repeat)), default=0.0)
    cpu, result = min(
        (cpu_seconds(config, fabric, policy) for _ in range(repeat or 1)), key=lambda one: one[0]
    )
    return {
        "jobs": len(result.jobs),
        "events": result.events,
        "setup_s": setup,
        "cpu_s": cpu - setup,
        "wall_s": result.wall_s,
        "events_per_s": result.events / (cpu - setup),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "min_R": result.min_rate,
        "avg_R": result.average_rate,
        "ends": [job.end for job in result.jobs],
    }


def cpu_seconds(config: Scenario, fabric: Fabric, policy: str) -> tuple[float, Result]:
    """Run ``config``; return the CPU time it took, and its result."""
    start = time.process_time()
    result = simulate(config, fabric, policy)
    return time.process_time() - start, result


def apart(config: Scenario, policy: str, repeat: int) -> dict[str, Any]:
    """`measure` in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, config, policy, repeat).result()


def write_flows(config: Scenario, path: Path) -> None:
    """Write the placed jobs of `full_cluster` as bench/simgrid_flows.cpp reads them."""
    fabric = config.fabric.build(HERE)
    run = Run(config.model_copy(update={"horizon_s": 1e-9}), fabric, "fair", 0)
    run.go(lambda _: None)
    sender = {host.up[0]: number for number, host in enumerate(fabric.hosts.values())}
    receiver = {host.down[0]: number for number, host in enumerate(fabric.hosts.values())}
    lines = [str(len(fabric.links)), *(f"{rate:.17g}" for rate in fabric.rates), str(len(run.running))]
    for job in run.running:
        flows = [flow for phase in job.plan.phases for flow in phase.flows]
        lines.append(f"{job.plan.compute_s:.17g} {job.plan.target} {len(flows)}")
        for flow in flows:
            ends = f"{sender[flow.path[0]]} {receiver[flow.path[-1]]} {round(flow.volume)}"
            lines.append(f"{ends} {len(flow.path)} {' '.join(map(str, flow.path))}")
    path.write_text("\n".join(lines) + "\n")


def simgrid(config: Scenario) -> tuple[float, float, list[float]]:
    """Run ``config`` in SimGrid, best of three: its wall time, its CPU time and the jobs' ends."""
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
        for _ in range(REPEAT):
            found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            *ends, wall, cpu = map(float, found)
            runs.append((wall, cpu, ends))
    return min(runs, key=lambda run: run[1])


def same_flows(gpus: int, iterations: int, beside: bool) -> dict[str, Any]:
    """Run the same flows here and, where asked and there is one, in SimGrid."""
    config = full_cluster(gpus, iterations)
    ours = apart(config, "fair", REPEAT)
    row: dict[str, Any] = {"gpus": gpus, "iterations": iterations, **ours}
    if beside and shutil.which("g++") and Path("/usr/include/simgrid").exists():
        wall, cpu, ends = simgrid(config)
        row |= {
            "simgrid_wall_s": wall,
            "simgrid_cpu_s": cpu,
            "simgrid_events_per_s": ours["events"] / cpu,
            "ratio": cpu / ours["cpu_s"],
            "largest_difference": float(np.max(np.abs(np.array(ends) / np.array(ours["ends"]) - 1))),
        }
    return row


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

    for gpus in map(int, options.sizes.split(",")):
        iterations = max(options.iterations * 1024 // gpus, 1)
        add("same flows", same_flows(gpus, iterations, gpus <= options.beside))
    policy = {"tau_s": options.tau, "levels": 8}
    cluster = scenario(1024, 1e9, workload={"jobs": options.jobs, "load": 0.8}, policy=policy)
    add("cluster", {"gpus": 1024, **apart(cluster, "leveller", 0)})
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

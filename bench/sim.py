"""The simulator's speed: beside SimGrid on the same flows, on a busy 1,024-GPU cluster, and as clusters grow.

Every cluster here has one NIC of 400 Gbit/s per GPU, 64 GPUs a ToR and 16 spines: 4:1 oversubscribed. Jobs
are rings of 8 to 64 GPUs, placed at random.

- "SimGrid": as many jobs as fill 80 % of the cluster, all started together, run a few iterations under
  flow-fair sharing, once here and once in SimGrid (CM02 without latency, raw contexts, its lazy updates).
  Both get the same paths and bytes, and have to agree when each job ends.
- "cluster": 1,000 jobs of 100 to 1,000 iterations arrive at load 0.8, and LEVELLER ranks them into 8 levels
  every --tau seconds.
- "growth": the jobs that fill 80 % of clusters of 128 to 16,384 GPUs, flow-fair, the same number of
  iterations.

Each measurement has a process of its own, whose inner loops are compiled before the clock starts.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from simulator.compiled import COMPILED
from simulator.run import Run, simulate
from simulator.scenario import Scenario
from simulator.workload import Workload, draw

HERE = Path(__file__).parent
SIZES = (128, 512, 1024, 4096, 16_384)


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


def measure(config: Scenario, policy: str) -> dict[str, Any]:
    """Run ``config`` after a warm-up, in this process."""
    warm = full_cluster(128, 2)
    for name in ("fair", "leveller"):
        simulate(warm, warm.fabric.build(HERE), name)
    result = simulate(config, config.fabric.build(HERE), policy)
    return {
        "jobs": len(result.jobs),
        "events": result.events,
        "wall_s": result.wall_s,
        "events_per_s": result.events / result.wall_s,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "min_R": result.min_rate,
        "avg_R": result.average_rate,
        "ends": [job.end for job in result.jobs],
    }


def apart(config: Scenario, policy: str) -> dict[str, Any]:
    """`measure` in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, config, policy).result()


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


def simgrid(config: Scenario) -> tuple[float, list[float]]:
    """Run ``config`` in SimGrid: its wall time and the jobs' ends."""
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
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    *ends, wall = map(float, found)
    return wall, ends


def beside_simgrid(gpus: int, iterations: int) -> dict[str, Any]:
    """Run the same flows here and in SimGrid."""
    config = full_cluster(gpus, iterations)
    ours = apart(config, "fair")
    row: dict[str, Any] = {"gpus": gpus, **ours}
    if shutil.which("g++") and Path("/usr/include/simgrid").exists():
        wall, ends = simgrid(config)
        row |= {
            "simgrid_wall_s": wall,
            "ratio": wall / ours["wall_s"],
            "largest_difference": float(np.max(np.abs(np.array(ends) / np.array(ours["ends"]) - 1))),
        }
    return row


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--iterations", type=int, default=10, help="per job, beside SimGrid and in growth")
    parser.add_argument("--jobs", type=int, default=1000, help="of the cluster scenario")
    parser.add_argument("--tau", type=float, default=30.0, help="seconds between rankings there")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="GPUs, for growth")
    options = parser.parse_args()
    if not COMPILED:
        sys.stderr.write(
            "numba is not installed: the inner loops are plain Python, some hundred times slower\n"
        )

    rows: list[dict[str, Any]] = []

    def add(part: str, row: dict[str, Any]) -> None:
        rows.append({"part": part, **{key: value for key, value in row.items() if key != "ends"}})
        sys.stderr.write(f"{part}: {row['events']} events in {row['wall_s']:.2f} s\n")

    add("SimGrid", beside_simgrid(1024, options.iterations))
    workload = {"jobs": options.jobs, "load": 0.8}
    policy = {"tau_s": options.tau, "levels": 8}
    cluster = scenario(1024, 1e9, workload=workload, policy=policy)
    add("cluster", {"gpus": 1024, **apart(cluster, "leveller")})
    for gpus in map(int, options.sizes.split(",")):
        add("growth", {"gpus": gpus, **apart(full_cluster(gpus, options.iterations), "fair")})
    if options.json:
        sys.stdout.write(json.dumps(rows) + "\n")
        return
    columns = (
        "events",
        "wall_s",
        "events_per_s",
        "peak_mib",
        "simgrid_wall_s",
        "ratio",
        "largest_difference",
    )
    table = Table("part", "GPUs", "jobs", *columns)
    for row in rows:
        cells = [f"{row[name]:.4g}" if name in row else "" for name in columns]
        table.add_row(row["part"], str(row["gpus"]), str(row["jobs"]), *cells)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()

"""Scenarios and states that several tests run."""

import numpy as np
import pytest

from controlplane.policies.ordered import levels_in_order
from simulator import assemble, engine
from simulator.fabric import parallel
from simulator.grid import points, variants
from simulator.plan import Phase, Plan
from simulator.ranking import as_array, enter
from simulator.store import Store, digest
from simulator.sweep import here, sweep


@pytest.fixture(scope="session")
def started():
    """A function that gives a state in which jobs send their flows, ranked in the jobs' order."""

    def make(all_flows, capacity, count, scope):
        fabric = parallel(len(capacity), 1)
        fabric.rates = list(capacity)
        plans = [Plan(f"job{n}", (Phase(flows=flows),), 3) for n, flows in enumerate(all_flows)]
        running = [enter(n, plan, fabric, 0.0, {}) for n, plan in enumerate(plans)]
        state = assemble.change(
            assemble.empty(fabric.capacity, 0), np.zeros(0, bool), plans, [0] * len(plans)
        )
        engine.start_jobs(state, np.arange(len(plans)), 0.0)
        groups = [group for one in running for group in one.groups]
        array, per_link = as_array(
            running, levels_in_order([plan.id for plan in plans], groups, count, scope)
        )
        engine.set_levels(state, array, per_link, 0.0, 0.0)
        engine.refresh(state, 0.0)
        return state

    return make


SWEEP = """
horizon_s = 40
[fabric]
kind = "link"
[policy]
levels = 2
[[jobs]]
id = "job1"
compute_s = 1
comm_s = 1
jitter = 0.5
[[jobs]]
id = "job2"
compute_s = 1
comm_s = 2
jitter = 0.5
"""
OPTIONS = {"policy.tau_s": [0.5, 8]}


@pytest.fixture
def path(tmp_path):
    """A scenario to sweep."""
    found = tmp_path / "x.toml"
    found.write_text(SWEEP)
    return found


@pytest.fixture
def run_sweep(path):
    """Sweep it over two tau and two seeds."""

    def run(out=None, policies=("fair", "leveller"), runner=here, seen=lambda row: None):
        found = variants(path, OPTIONS)
        scenario = next(iter(found.values()))[0]
        store = Store(out, digest(path, scenario)) if out else None
        return sweep(points(policies, OPTIONS, range(2)), found, runner, store, seen)

    return run

"""The status page of a controller that has just begun, and of one with a job."""

import json
from ipaddress import ip_address
from random import Random

from controlplane.config import Config
from controlplane.engine import Engine, Sizes
from controlplane.int_report import Hop, IntReport
from controlplane.model import FiveTuple
from controlplane.overview import status
from controlplane.refusals import Refusal
from controlplane.reports import FlowReport, HostReport, JobReport, Timing
from controlplane.southbound import SwitchStatus
from controlplane.store import Saved

SECOND = 10**9
FLOW = FiveTuple(ip_address("10.0.1.1"), ip_address("10.0.2.1"), 6, 40000, 5000)
CONFIG = Config.model_validate(
    {"switches": [{"name": "S1", "address": "h:1", "device_id": 1, "node_id": 1, "ports": [1]}]}
)


def page(engine, now_s):
    switches = {"S1": SwitchStatus("S1", "h:1", entries={"ecmp": 3})}
    refusals = {"h9": Refusal(2, "it claims 10.0.9.9", SECOND)}
    made = status(CONFIG, engine, switches, [], refusals, now_s * SECOND)
    return json.loads(json.dumps(made))


def test_before_anything_is_known():
    seen = page(Engine(CONFIG, Sizes(9, 9), Saved(), Random(1), 0, 0), 2)
    assert seen["controller"] == {
        "name": "leveller", "policy": "leveller", "scope": "fabric", "levels": 7, "tau_s": 0.25,
        "ranked_s_ago": 2.0,
    }  # fmt: skip
    assert (seen["jobs"], seen["flows"], seen["groups"], seen["agents"]) == ([], [], [], [])
    assert seen["refused"] == [{"who": "h9", "count": 2, "reason": "it claims 10.0.9.9", "s_ago": 1.0}]
    assert (seen["switches"][0]["connected"], seen["switches"][0]["entries"]) == (False, {"ecmp": 3})


def test_where_progress_is_read_and_how_jobs_ended():
    engine = Engine(CONFIG, Sizes(9, 9), Saved(), Random(1), 0, 0)
    jobs = (
        JobReport("a", True, True, 100, 0, 0, (), log_format="megatron", estimated=37, estimated_error=2),
        JobReport("b", True, False, 0, 0, 0, (), source="none"),
        JobReport("c", True, False, 0, 0, 0, (), source="stdout"),
        JobReport("d", True, False, 0, 0, 0, ()),
    )
    engine.on_report("h1", HostReport(8 * SECOND, True, jobs), 8 * SECOND)
    died = JobReport("d", False, True, 5, 0, 0, (), died=True)
    engine.on_report("h1", HostReport(9 * SECOND, False, (died,)), 9 * SECOND)
    engine.step(9 * SECOND)
    seen = page(engine, 10)
    told = {job["id"]: (job["format"], job["R"], job["estimated"], job["state"]) for job in seen["jobs"]}
    assert told["a"][0] == "megatron"
    assert told["a"][2] == 37
    assert told["b"] == ("no progress source", 1.0, 0, "no progress")
    assert told["c"][:2] == ("no iteration yet", 0.0)
    assert seen["over"] == [{"id": "d", "state": "died", "iterations": 5, "host": "h1", "s_ago": 1.0}]


def test_with_a_job():
    engine = Engine(CONFIG, Sizes(9, 9), Saved(), Random(1), 0, 0)
    job = JobReport("a", True, True, 4, 0, 8 * SECOND, (SECOND,))
    small = FLOW._replace(source_port=1)
    flows = (FlowReport(FLOW, "a", 10**6), FlowReport(small, "a", 0))
    engine.on_report("h1", HostReport(8 * SECOND, True, (job,), flows), 8 * SECOND)
    engine.on_probe(IntReport(FLOW, (Hop(node_id=1, egress_port=1),), False, False, 9, 0), 8 * SECOND)
    engine.step(8 * SECOND)
    seen = page(engine, 10)
    (shown,) = seen["jobs"]
    assert (shown["id"], shown["R"], shown["iterations"], shown["elapsed_s"]) == ("a", 0.5, 4, 10.0)
    assert (shown["t_ideal_s"], shown["state"], shown["hosts"]) == (None, "profiling", ["h1"])
    assert seen["groups"] == [{"number": 1, "job": "a", "path": ["S1:1"], "flows": 1, "levels": {"S1:1": 6}}]
    assert [(each["source_port"], each["path"], each["group"], each["slot"]) for each in seen["flows"]] == [
        (40000, ["S1:1"], 1, 1),
        (1, None, None, None),
    ]
    assert (shown["timing"], shown["t_ideal_confidence"]) == (None, None)


def test_what_was_measured_of_a_job_and_how_sure_it_is():
    engine = Engine(CONFIG, Sizes(9, 9), Saved(), Random(1), 0, 0)
    timing = Timing(SECOND, SECOND // 100, 20, 0.9, SECOND // 4, SECOND // 10, True)
    job = JobReport(
        "a", True, True, 4, 0, 8 * SECOND, (SECOND,), timing=timing, brief_flows=3, communicators=2
    )
    control = FlowReport(FLOW, "a", 10**6, True)
    engine.on_report("h1", HostReport(8 * SECOND, True, (job,), (control,)), 8 * SECOND)
    engine.on_probe(IntReport(FLOW, (Hop(node_id=1, egress_port=1),), False, False, 9, 0), 8 * SECOND)
    engine.step(8 * SECOND)
    seen = page(engine, 10)
    assert seen["jobs"][0]["timing"] == {
        "iteration_s": 1.0,
        "spread_s": 0.01,
        "iterations": 20,
        "confidence": 0.9,
        "communication_s": 0.25,
        "slack_s": 0.1,
        "slack_confirmed": True,
    }
    assert (seen["jobs"][0]["brief_flows"], seen["jobs"][0]["communicators"]) == (3, 2)
    assert seen["queue_pairs"] == {"ambiguous": 0, "alone": 0}
    assert (seen["flows"][0]["control"], seen["flows"][0]["group"]) == (True, None)

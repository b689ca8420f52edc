"""The engine through whole histories: reports and probes in, the switches' state out."""

from ipaddress import ip_address
from itertools import pairwise
from random import Random

import pytest

from controlplane.config import Config
from controlplane.engine import SETTLE_NS, Engine, Sizes
from controlplane.int_report import Hop, IntReport
from controlplane.model import FiveTuple, Link
from controlplane.paths import PathError
from controlplane.plausibility import Verdict
from controlplane.reports import FlowReport, HostReport, JobReport, Timing
from controlplane.southbound import FlowEntry, GroupLevel
from controlplane.store import Saved

SECOND = 10**9
UNIX = 10**18


def config(**sections):
    switches = [
        {"name": f"S{n}", "address": f"h:{n}", "device_id": n, "node_id": n, "ports": [1, 2, 3]}
        for n in (1, 2)
    ]
    base = {"switches": switches, "levels": {"count": 3}, "policy": {"profile": False}}
    return Config.model_validate({**base, **sections})


def engine(settings, saved=None, now=0):
    return Engine(settings, Sizes(100, 100), saved or Saved(), Random(1), now, UNIX)


def flow(host, port=5000):
    return FiveTuple(ip_address(f"10.0.{host}.1"), ip_address("10.0.9.1"), 6, 40000, port)


def job(name, iterations=0, started_s=0, last_s=0, durations_s=(), *, running=True, source=True):
    durations = tuple(round(each * SECOND) for each in durations_s)
    return JobReport(name, running, source, iterations, started_s * SECOND, round(last_s * SECOND), durations)


def say(engine, host, now_s, *jobs, flows=(), closed=(), full=False):
    """A report whose agent's clock happens to agree with the controller's."""
    now = round(now_s * SECOND)
    return engine.on_report(host, HostReport(now, full, jobs, tuple(flows), tuple(closed)), now)


def probe(engine, flow, now_s, *hops):
    stack = tuple(Hop(node_id=node, egress_port=port) for node, port in hops)
    report = IntReport(flow, stack, hops_exceeded=False, mtu_exceeded=False, remaining_hops=9, domain=0)
    return engine.on_probe(report, round(now_s * SECOND))


def two_jobs(engine, now_s=10):
    """Jobs a (R lower) and b on hosts 1 and 2 meet on S1:3, and part on S2."""
    say(
        engine,
        "h1",
        now_s,
        job("a", 3, durations_s=[1], last_s=now_s),
        flows=[FlowReport(flow(1), "a", 10**6)],
    )
    say(
        engine,
        "h2",
        now_s,
        job("b", 5, durations_s=[1], last_s=now_s),
        flows=[FlowReport(flow(2), "b", 10**6)],
    )
    probe(engine, flow(1), now_s, (1, 3), (2, 1))
    probe(engine, flow(2), now_s, (1, 3), (2, 2))


def test_from_reports_and_probes_to_levels_on_the_switches_of_the_path():
    controller = engine(config())
    two_jobs(controller)
    step = controller.step(10 * SECOND)
    assert {name: job.rate for name, job in step.jobs.items()} == {"a": 0.3, "b": 0.5}
    assert step.desired["S1"].flows == {flow(1): FlowEntry(1, 1), flow(2): FlowEntry(2, 2)}
    assert step.desired["S1"].groups == {1: GroupLevel(2), 2: GroupLevel(1)}
    assert step.desired["S2"].groups == {1: GroupLevel(2), 2: GroupLevel(1)}
    assert [(change.group.job, change.before, change.after) for change in step.changes] == [
        ("a", {}, {Link("S1", 3): 2, Link("S2", 1): 2}),
        ("b", {}, {Link("S1", 3): 1, Link("S2", 2): 1}),
    ]
    assert "R 0.300 after 3 iterations; contends with b" in step.changes[0].reason


@pytest.mark.parametrize("scope", ["switch", "port"])
def test_the_finer_scopes_rank_only_what_meets(scope):
    controller = engine(config(policy={"profile": False, "scope": scope}))
    two_jobs(controller)
    step = controller.step(10 * SECOND)
    assert step.desired["S1"].groups == {1: GroupLevel(2), 2: GroupLevel(1)}
    assert step.desired["S2"].groups == {1: GroupLevel(2), 2: GroupLevel(2)}


def test_an_overtaking_job_changes_places_and_only_that_is_a_change():
    controller = engine(config())
    two_jobs(controller)
    controller.step(10 * SECOND)
    assert controller.step(10 * SECOND).changes == []
    say(controller, "h1", 11, job("a", 9, last_s=11, durations_s=[1] * 6))
    step = controller.step(11 * SECOND)
    assert step.desired["S1"].groups == {1: GroupLevel(1), 2: GroupLevel(2)}
    assert len(step.changes) == 2
    assert controller.step(12 * SECOND).desired["S1"].groups is step.desired["S1"].groups


def test_a_flow_without_path_or_with_few_bytes_is_probed_but_not_ranked():
    controller = engine(config())
    say(
        controller,
        "h1",
        10,
        job("a"),
        flows=[FlowReport(flow(1), "a", 65535), FlowReport(flow(1, 7), "a", 10**6)],
    )
    assert [(host, each.flow) for host, each in controller.probes(10 * SECOND)] == [
        ("h1", flow(1)),
        ("h1", flow(1, 7)),
    ]
    probe(controller, flow(1), 10, (1, 3))
    assert controller.step(10 * SECOND).desired["S1"].flows == {}
    say(controller, "h1", 11, flows=[FlowReport(flow(1), "a", 65536)])
    assert controller.step(11 * SECOND).desired["S1"].flows == {flow(1): FlowEntry(1, 1)}


def test_probes_are_retried_after_their_time_and_refreshed_later():
    controller = engine(config())
    say(controller, "h1", 10, job("a"), flows=[FlowReport(flow(1), "a", 0)])
    assert len(controller.probes(10 * SECOND)) == 1
    assert controller.probes(round(10.2 * SECOND)) == []
    assert len(controller.probes(round(10.25 * SECOND))) == 1
    probe(controller, flow(1), 10.3, (1, 3))
    assert controller.probes(round(40.2 * SECOND)) == []
    assert len(controller.probes(round(40.4 * SECOND))) == 1


def test_a_changed_path_moves_the_flow_and_makes_all_paths_suspect():
    controller = engine(config())
    two_jobs(controller)
    controller.probes(10 * SECOND)
    controller.step(10 * SECOND)
    assert probe(controller, flow(1), 12, (1, 2), (2, 1))
    step = controller.step(12 * SECOND)
    assert step.desired["S1"].flows[flow(1)] == FlowEntry(3, 1)  # another group, the same slot
    assert step.levels["3"] == {Link("S1", 2): 2, Link("S2", 1): 2}
    assert {each.flow for _, each in controller.probes(12 * SECOND)} == {flow(1), flow(2)}


def test_a_probe_of_nobodys_flow_is_an_error():
    with pytest.raises(PathError, match="no known flow"):
        probe(engine(config()), flow(1), 1, (1, 3))


def test_a_probe_in_anothers_name_does_not_move_its_flow():
    hops = {port: [{"port": port, "mac": f"02:00:00:00:00:0{port}"}] for port in (1, 2, 3)}
    routes = [
        {"prefix": "10.0.1.1/32", "next_hops": hops[1]},
        {"prefix": "10.0.2.1/32", "next_hops": hops[2]},
        {"prefix": "0.0.0.0/0", "next_hops": hops[3]},
    ]
    switches = [
        {
            "name": f"S{n}",
            "address": f"h:{n}",
            "device_id": n,
            "node_id": n,
            "ports": [1, 2, 3],
            "routes": routes,
        }
        for n in (1, 2)
    ]
    controller = engine(config(switches=switches))
    say(controller, "h1", 10, job("a"), flows=[FlowReport(flow(1), "a", 10**6)])
    own, forged = (
        IntReport(
            flow(1),
            (Hop(node, port, 3),),
            hops_exceeded=False,
            mtu_exceeded=False,
            remaining_hops=9,
            domain=0,
        )
        for node, port in ((1, 1), (2, 2))
    )
    assert controller.on_probe(own, 10 * SECOND)
    with pytest.raises(PathError, match=r"10\.0\.1\.1 came in by S2:2"):
        controller.on_probe(forged, 11 * SECOND)
    step = controller.step(11 * SECOND)
    assert step.placement.groups[0].path == (Link("S1", 3),)
    assert flow(1) not in step.desired["S2"].flows


def test_nobody_puts_off_anothers_probe():
    controller = engine(config())
    two_jobs(controller)
    numbers = {probe.flow: probe.number for _, probe in controller.probes(50 * SECOND)}
    assert controller.on_not_sent("h2", numbers[flow(1)], 50 * SECOND) is None
    assert controller.on_not_sent("h1", 10**9, 50 * SECOND) is None
    assert controller.on_not_sent("h1", numbers[flow(1)], 50 * SECOND) == flow(1)


def test_closed_flows_ended_jobs_and_forgotten_hosts_go():
    controller = engine(config())
    two_jobs(controller)
    controller.step(10 * SECOND)
    assert say(controller, "h1", 11, job("a", running=False), closed=[flow(1)]) == ([], True)
    step = controller.step(11 * SECOND)
    assert (list(step.jobs), list(step.desired["S1"].flows)) == (["b"], [flow(2)])
    assert step.desired["S1"].groups == {2: GroupLevel(2)}
    step = controller.step(72 * SECOND)
    assert step.forgotten == ["h1", "h2"]
    assert (step.jobs, step.desired["S1"].flows, controller.paths.path(flow(2))) == ({}, {}, None)


def test_a_flow_of_a_job_that_nobody_reports_is_not_ranked():
    controller = engine(config())
    say(controller, "h1", 10, flows=[FlowReport(flow(1), "ghost", 10**6)])
    probe(controller, flow(1), 10, (1, 3))
    assert controller.step(10 * SECOND).desired["S1"].flows == {}


def test_a_report_from_the_past_changes_no_flow():
    controller = engine(config())
    two_jobs(controller)
    refused, news = say(controller, "h1", 9, closed=[flow(1)])
    assert (refused, news) == (["the agent's clock went back"], False)
    assert flow(1) in controller.flows.known


def test_profiling_first_one_then_the_other_then_normal_ranking():
    controller = engine(config(policy={"profile": True}))
    two_jobs(controller)
    step = controller.step(10 * SECOND)
    assert {name: job.state for name, job in step.jobs.items()} == {"a": "profiling", "b": "waiting"}
    assert step.desired["S1"].groups == {1: GroupLevel(2), 2: GroupLevel(1)}
    _, news = say(controller, "h1", 16, job("a", 6, last_s=16, durations_s=[2, 2, 2]))
    assert news
    say(controller, "h2", 16, job("b", 5))
    step = controller.step(16 * SECOND)
    assert {name: job.state for name, job in step.jobs.items()} == {"a": "ranked", "b": "profiling"}
    assert step.desired["S1"].groups == {1: GroupLevel(1), 2: GroupLevel(2)}
    assert step.jobs["a"].t_ideal_ns == 2 * SECOND
    assert step.jobs["a"].rate == 6 * 2 / 16
    assert "below b, which is being profiled" in step.jobs["a"].reason
    say(controller, "h1", 22, job("a", 6))
    say(controller, "h2", 22, job("b", 8, last_s=22, durations_s=[1, 1, 1]))
    step = controller.step(22 * SECOND)
    assert {name: job.state for name, job in step.jobs.items()} == {"a": "ranked", "b": "ranked"}
    assert step.desired["S1"].groups == {1: GroupLevel(1), 2: GroupLevel(2)}  # R 12/22 and 8/22


def test_jobs_without_log_or_that_went_silent_say_so():
    controller = engine(config(policy={"profile": True}, controller={"forget_after_s": 900}))
    two_jobs(controller)
    say(controller, "h3", 14, job("c", source=False), flows=[FlowReport(flow(3), "c", 10**6)])
    probe(controller, flow(3), 14, (1, 3))
    controller.step(14 * SECOND)
    say(controller, "h3", 134, job("c", source=False))
    step = controller.step(134 * SECOND)
    assert {name: job.state for name, job in step.jobs.items()} == {
        "a": "silent", "b": "silent", "c": "no progress",
    }  # fmt: skip
    assert step.jobs["a"].rate == 0.3
    assert step.jobs["c"].rate == 1.0
    assert "goes last" in step.jobs["c"].reason


def test_static_order_comes_from_the_configuration():
    controller = engine(config(policy={"profile": False, "name": "static", "order": ["b", "a"]}))
    two_jobs(controller)
    assert controller.step(10 * SECOND).desired["S1"].groups == {1: GroupLevel(1), 2: GroupLevel(2)}


def test_a_restarted_controller_leaves_the_switches_until_it_knows_its_flows_again():
    first = engine(config(policy={"profile": True}), now=0)
    two_jobs(first)
    first.step(10 * SECOND)
    say(first, "h1", 16, job("a", 6, last_s=16, durations_s=[2, 2, 2]))
    before = first.step(16 * SECOND)
    saved = first.to_save()
    assert saved.jobs["a"] == (UNIX, 6, 2 * SECOND)

    second = engine(config(policy={"profile": True}), saved, now=17 * SECOND)
    step = second.step(17 * SECOND)
    assert step.desired["S1"].flows is None
    assert step.desired["S1"].groups is None
    say(second, "h2", 17.5, job("b", 6), flows=[FlowReport(flow(2), "b", 10**6)], full=True)
    probe(second, flow(2), 17.6, (1, 3), (2, 2))
    assert second.step(round(17.6 * SECOND)).desired["S1"].flows is None
    say(second, "h1", 17.7, job("a", 6), flows=[FlowReport(flow(1), "a", 10**6)], full=True)
    probe(second, flow(1), 17.8, (1, 3), (2, 1))
    step = second.step(round(17.8 * SECOND))
    assert step.desired["S1"].flows == before.desired["S1"].flows
    assert step.jobs["a"].t_ideal_ns == 2 * SECOND
    assert {name: job.state for name, job in step.jobs.items()} == {"a": "ranked", "b": "profiling"}


def test_a_restarted_controller_waits_no_longer_than_it_says():
    first = engine(config())
    two_jobs(first)
    first.step(10 * SECOND)
    second = engine(config(), first.to_save(), now=0)
    assert second.step(SETTLE_NS - 1).desired["S1"].flows is None
    assert second.step(SETTLE_NS).desired["S1"].flows == {}


def test_a_job_that_started_anew_meanwhile_is_measured_anew():
    first = engine(config(policy={"profile": True}))
    two_jobs(first)
    first.step(10 * SECOND)
    say(first, "h1", 16, job("a", 6, last_s=16, durations_s=[2, 2, 2]))
    first.step(16 * SECOND)
    second = engine(config(policy={"profile": True}), first.to_save(), now=100 * SECOND)
    second.step(100 * SECOND + SETTLE_NS)
    say(second, "h1", 110, job("a", 1, started_s=108), flows=[FlowReport(flow(1), "a", 10**6)], full=True)
    probe(second, flow(1), 110, (1, 3))
    step = second.step(110 * SECOND)
    assert (step.jobs["a"].t_ideal_ns, step.jobs["a"].state) == (None, "profiling")


def test_flows_beyond_the_switches_room_are_named_and_the_rest_is_ranked():
    controller = Engine(config(), Sizes(100, 1), Saved(), Random(1), 0, UNIX)
    two_jobs(controller)
    step = controller.step(10 * SECOND)
    assert step.desired["S1"].flows == {flow(1): FlowEntry(1, 1)}
    assert step.placement.unplaced == (flow(2),)


def test_numbers_of_what_is_gone_are_not_saved_for_ever():
    controller = engine(config())
    two_jobs(controller)
    controller.step(10 * SECOND)
    say(controller, "h1", 11, closed=[flow(1)])
    for now in range(11, 75):
        say(controller, "h1", now, job("a", 3))
        say(controller, "h2", now, job("b", 5))
        controller.step(now * SECOND)
        assert (flow(1) in controller.to_save().slots) == (now < 71)
    assert list(controller.to_save().groups) == [("b", (Link("S1", 3), Link("S2", 2)))]


@pytest.mark.parametrize("profile", [True, False])
def test_a_new_job_goes_first_until_it_has_had_time_to_write_its_log(profile):
    controller = engine(config(policy={"profile": profile}))
    two_jobs(controller)
    controller.step(10 * SECOND)
    for host, name, iterations in (("h1", "a", 13), ("h2", "b", 15)):
        say(controller, host, 20, job(name, iterations, last_s=20, durations_s=[1] * 10))
    say(controller, "h3", 20, job("c", source=False), flows=[FlowReport(flow(3), "c", 10**6)])
    probe(controller, flow(3), 20, (1, 3))
    levels = []
    for now in range(20, 160, 2):
        say(controller, "h1", now, job("a", 13))
        say(controller, "h2", now, job("b", 5 + now // 4, last_s=now, durations_s=[2]))
        say(controller, "h3", now, job("c", source=False))
        levels.append(controller.step(now * SECOND).desired["S1"].groups[3].level)
    assert max(levels[:20]) == 2
    assert set(levels[60:]) == {0}
    last = controller.last.jobs["c"]
    assert (last.rate, last.state) == (1.0, "no progress")


def test_a_controller_killed_while_it_settles_forgets_nothing():
    first = engine(config(policy={"profile": True}))
    two_jobs(first)
    first.step(10 * SECOND)
    say(first, "h1", 16, job("a", 6, last_s=16, durations_s=[2, 2, 2]))
    first.step(16 * SECOND)
    second = engine(config(policy={"profile": True}), first.to_save(), now=17 * SECOND)
    say(second, "h1", 18, job("a", 6), full=True)
    step = second.step(18 * SECOND)
    assert step.jobs["a"].t_ideal_ns == 2 * SECOND
    assert second.to_save() == first.to_save()


@pytest.mark.parametrize("profile", [False, True])
def test_a_ranking_that_changes_nothing_costs_nothing_and_says_nothing(profile):
    controller = engine(config(policy={"profile": profile}))
    two_jobs(controller)
    first = controller.step(10 * SECOND)
    second = controller.step(11 * SECOND)
    assert second.changes == []
    assert all(second.desired[name].groups is first.desired[name].groups for name in ("S1", "S2"))
    assert profile or second.levels is first.levels
    assert {name: (change.now_ns, change.groups) for name, change in controller.changed.items()} == {
        "a": (10 * SECOND, 1),
        "b": (10 * SECOND, 1),
    }
    assert "R 0.500 after 5 iterations" in controller.changed["b"].reason


def test_who_tells_of_fewer_iterations_than_the_switches_counted_does_not_go_first():
    """Jobs a and b do an iteration of 1 s and 1 MB a second; b tells of every second one, once measured."""
    controller = engine(config(policy={"profile": True}))
    for host, name in ((1, "a"), (2, "b")):
        say(controller, f"h{host}", 1, job(name), flows=[FlowReport(flow(host), name, 10**6)], full=True)
        probe(controller, flow(host), 1, (1, 3))
    controller.step(1 * SECOND)
    for now in range(2, 60):
        told = {"a": now, "b": now if now < 15 else 15 + (now - 15) // 2}
        for host, name in (("h1", "a"), ("h2", "b")):
            say(controller, host, now, job(name, told[name], last_s=now, durations_s=[1]))
        controller.on_counters({"S1": {flow(1): now * 10**6, flow(2): now * 10**6}}, now * SECOND)
        step = controller.step(now * SECOND)
    honest, liar = step.jobs["a"], step.jobs["b"]
    assert (honest.verdict.checked, honest.verdict.flagged, honest.rate) == (True, "", 1.0)
    # It told of 37 of 59; of those it left out before it was found out, a few are not made up for.
    assert 0.9 <= liar.rate <= 1.0
    assert liar.verdict.flagged == "it told of 10 iterations while it sent the bytes of 20"
    assert f"its report is not used: {liar.verdict.flagged}" in liar.reason


def test_times_that_are_too_short_do_not_lower_r_where_they_were_not_stable():
    controller = engine(config(policy={"profile": True}))
    say(controller, "h1", 1, job("a"), flows=[FlowReport(flow(1), "a", 10**6)], full=True)
    probe(controller, flow(1), 1, (1, 3))
    controller.step(1 * SECOND)
    for now in range(2, 20):
        # Never two alike, so that the least counts in the end, and all of them a lie.
        say(controller, "h1", now, job("a", now, last_s=now, durations_s=[0.05 * 1.2 ** (now % 12)]))
        controller.on_counters({"S1": {flow(1): now * 10**6}}, now * SECOND)
        step = controller.step(now * SECOND)
    assert step.jobs["a"].state == "ranked"
    assert (step.jobs["a"].t_ideal_ns, step.jobs["a"].rate) == (SECOND, 1.0)


def timed(name, timing, *, ranks=0):
    return job(name, 10, durations_s=[1] * 4, last_s=20)._replace(timing=timing, world_size=ranks)


def test_what_is_measured_of_an_iteration_stands_for_the_intensity_that_nobody_has_given():
    controller = engine(
        config(policy={"name": "crux", "profile": False}, jobs=[{"id": "b", "intensity": 5.0}])
    )
    two_jobs(controller)
    half = Timing(SECOND, 0, 64, 1.0, SECOND // 2)
    say(controller, "h1", 20, timed("a", half, ranks=16))
    say(controller, "h2", 20, timed("b", half, ranks=64))
    step = controller.step(20 * SECOND)
    told = {name: job.as_ranked for name, job in step.jobs.items()}
    assert (told["a"].compute_s, told["a"].comm_s, told["a"].intensity) == (0.5, 0.5, 16.0)
    assert (told["b"].compute_s, told["b"].comm_s, told["b"].intensity) == (0.5, 0.5, 5.0)
    assert step.desired["S1"].groups == {1: GroupLevel(1), 2: GroupLevel(0)}
    # Given an order, a job that is not in it stays last.
    ordered = engine(config(policy={"name": "static", "profile": False, "order": ["b"]}))
    two_jobs(ordered)
    say(ordered, "h1", 20, timed("a", half, ranks=16))
    assert ordered.step(20 * SECOND).desired["S1"].groups == {1: GroupLevel(1), 2: GroupLevel(2)}


@pytest.mark.parametrize(("asked", "installed_us"), [("measured", 41_000), (0, 0), (7, 7)])
def test_slack_is_installed_as_measured_where_that_is_asked_for(asked, installed_us):
    controller = engine(config(levels={"count": 3, "slack_us": asked, "burst_gap_us": 20_000}))
    two_jobs(controller)
    usual = 0 if asked == "measured" else asked
    confirmed = Timing(SECOND, 0, 64, 1.0, SECOND // 2, 83_000_000, True, 2)
    say(controller, "h1", 20, timed("a", confirmed._replace(slack_confirmed=False)))
    assert controller.step(20 * SECOND).desired["S1"].groups[1].slack_us == usual
    say(controller, "h1", 21, timed("a", confirmed))
    groups = controller.step(21 * SECOND).desired["S1"].groups
    assert (groups[1].slack_us, groups[2].slack_us) == (installed_us, usual)
    # Kept while nothing else is confirmed; gone once iterations are seen to take longer for it.
    say(controller, "h1", 22, timed("a", confirmed._replace(slack_ns=0, slack_confirmed=False)))
    assert controller.step(22 * SECOND).desired["S1"].groups[1].slack_us == installed_us
    say(controller, "h1", 23, timed("a", confirmed._replace(slack_ns=0)))
    assert controller.step(23 * SECOND).desired["S1"].groups[1].slack_us == usual


def test_a_job_that_is_profiled_or_silent_has_no_slack():
    levels = {"count": 3, "slack_us": "measured", "burst_gap_us": 20_000}
    controller = engine(config(levels=levels, policy={"profile": True}))
    two_jobs(controller)
    confirmed = Timing(SECOND, 0, 64, 1.0, SECOND // 2, 83_000_000, True, 1)
    for number, name in enumerate("ab", 1):
        say(controller, f"h{number}", 20, timed(name, confirmed))
    step = controller.step(20 * SECOND)
    assert {name: job.state for name, job in step.jobs.items()} == {"a": "profiling", "b": "waiting"}
    assert [step.desired["S1"].groups[number].slack_us for number in (1, 2)] == [0, 83_000]
    assert controller.step(29 * SECOND).desired["S1"].groups[2].slack_us == 0


class Cluster:
    """Jobs a (host 1) and b (host 2): an iteration of 1 s and 1 MB each second, alone; both meet on S1:3."""

    def __init__(self, **sections):
        self.engine = engine(config(policy={"profile": True}, **sections))
        self.told, self.sent = {"a": 1.0, "b": 1.0}, {flow(1): 0, flow(2): 0}
        for host, name in ((1, "a"), (2, "b")):
            flows = [FlowReport(flow(host), name, 10**6)]
            say(self.engine, f"h{host}", 1, job(name), flows=flows, full=True)
            probe(self.engine, flow(host), 1, (1, 3))
        self.engine.step(SECOND)

    def run(self, start, stop, *, told=1.0, sent=1.0, world_size=0, also=lambda now: None):
        """Let the seconds pass, in each of which a tells of ``told`` and sends ``sent`` iterations."""
        for now in range(start, stop):
            self.told = {"a": self.told["a"] + told, "b": self.told["b"] + 1}
            self.sent[flow(1)] += round(sent * 10**6)
            self.sent[flow(2)] += 10**6
            for host, name in (("h1", "a"), ("h2", "b")):
                said = job(name, int(self.told[name]), last_s=now, durations_s=[1])
                say(self.engine, host, now, said._replace(world_size=world_size))
            also(now)
            self.engine.on_counters({"S1": dict(self.sent)}, now * SECOND)
            self.engine.step(now * SECOND)
        return self.engine.last.jobs["a"]


def test_who_reports_anothers_job_and_withdraws_changes_nothing_of_it():
    cluster, alone = Cluster(), Cluster()

    def stranger(now):
        if now == 70:
            say(cluster.engine, "h3", now, job("a", running=False))
        elif 40 <= now < 70:
            say(cluster.engine, "h3", now, job("a", 400_000), full=True)

    cluster.run(2, 40)
    during, after = cluster.run(40, 70, also=stranger), cluster.run(70, 120, also=stranger)
    assert (during.progress.hosts, during.progress.iterations) == (("h1", "h3"), 69)
    assert alone.run(2, 120) == after
    assert (after.rate, after.t_ideal_ns, after.verdict.untold, after.verdict.checked) == (
        1.0,
        SECOND,
        0,
        True,
    )


def test_who_tells_of_a_job_as_it_is_profiled_but_sends_nothing_is_not_asked_later():
    cluster = Cluster()
    state = cluster.run(2, 30, also=lambda now: say(cluster.engine, "h3", now, job("a", 400_000), full=True))
    assert (state.progress.tellers, state.progress.iterations) == (("h1",), 29)


def test_a_start_that_is_told_and_withdrawn_before_it_is_profiled_costs_it_nothing():
    cluster = Cluster()
    say(cluster.engine, "h3", 1, job("a", 7), full=True)
    before = cluster.run(2, 3)
    assert before.state == "profiling"
    say(cluster.engine, "h3", 3, job("a", running=False))
    say(cluster.engine, "h2", 3, job("b", 2))
    assert cluster.engine.step(3 * SECOND).jobs["a"].state == "profiling"


def test_a_job_that_goes_on_in_another_size_is_measured_again_and_not_flagged():
    cluster = Cluster()
    cluster.run(2, 30, world_size=2)
    state = cluster.run(30, 31, sent=1.75, world_size=8)
    assert (state.state, state.verdict) == (
        "waiting",
        Verdict(),
    )  # for ten times its last turn, as b is there
    state = cluster.run(31, 120, sent=1.75, world_size=8)
    assert (state.state, state.verdict) == ("ranked", Verdict(True, "", 0, SECOND, SECOND))


def test_a_job_whose_log_is_away_is_not_judged():
    cluster = Cluster()
    cluster.run(2, 30)
    for now in range(30, 130):
        cluster.sent[flow(1)] += 10**6
        say(cluster.engine, "h1", now, job("a", source=False))
        cluster.engine.on_counters({"S1": dict(cluster.sent)}, now * SECOND)
        state = cluster.engine.step(now * SECOND).jobs["a"]
    assert (state.verdict.flagged, state.verdict.untold) == ("", 0)


def test_the_next_run_of_an_id_has_nothing_of_the_last_ones_verdict():
    cluster = Cluster()
    cluster.run(2, 10)
    assert cluster.run(10, 60, told=0.4).verdict.flagged
    say(cluster.engine, "h1", 60, job("a", running=False), closed=[flow(1)])
    cluster.engine.step(60 * SECOND)
    say(cluster.engine, "h1", 61, job("a", 0, started_s=60), flows=[FlowReport(flow(1, 7), "a", 10**6)])
    assert cluster.engine.step(61 * SECOND).jobs["a"].verdict == Verdict()


@pytest.mark.parametrize("enforce", [True, False])
def test_what_a_job_left_untold_counts_for_r_only_where_it_is_to(enforce):
    cluster = Cluster(counters={"enforce": enforce})
    cluster.run(2, 10)
    state = cluster.run(10, 60, told=0.5)
    assert state.verdict.flagged
    assert state.verdict.untold > 20
    told = state.progress.iterations + (state.verdict.untold if enforce else 0)
    assert state.rate == min(told / 59, 1.0)
    assert f"its report is {'not used' if enforce else 'doubtful'}: it told" in state.reason


def test_who_counts_every_second_iteration_from_the_first_on_is_found_out_too():
    state = Cluster().run(2, 90, told=0.5)
    assert state.verdict.flagged == "it told of 10 iterations while it sent the bytes of 20"


def test_an_honest_job_whose_iterations_have_grown_is_profiled_again_and_not_flagged_any_more():
    cluster = Cluster()
    cluster.run(2, 30)
    states = [cluster.run(now, now + 1, sent=1.6) for now in range(30, 150)]
    flagged = [state.state for state in states if state.verdict.flagged]
    assert 0 < len(flagged) < 20
    assert flagged[-1] == "profiling"
    assert (states[-1].state, states[-1].verdict) == ("ranked", Verdict(True, "", 0, SECOND, SECOND))


def test_a_liar_that_is_profiled_again_for_it_stays_flagged_and_has_one_turn_of_it():
    cluster = Cluster()
    cluster.run(2, 30)
    states = [cluster.run(now, now + 1, told=0.5) for now in range(30, 200)]
    turns = [before.state != "profiling" == after.state for before, after in pairwise(states)]
    assert sum(turns) == 1
    assert states[-1].verdict.flagged
    assert states[-1].verdict.untold == pytest.approx(80, abs=5)


def test_a_t_ideal_that_was_measured_later_without_a_reading_stands():
    cluster = Cluster(profiling={"interval_s": 60, "seed": 1})
    assert cluster.run(2, 20).t_ideal_ns == SECOND
    for tick in range(40, 600):
        say(cluster.engine, "h1", tick / 2, job("a", tick, last_s=tick / 2, durations_s=[0.5]))
        say(cluster.engine, "h2", tick / 2, job("b", tick, last_s=tick / 2, durations_s=[0.5]))
        state = cluster.engine.step(round(tick / 2 * SECOND)).jobs["a"]
    assert state.t_ideal_ns == SECOND // 2


def test_a_slack_beyond_belief_is_cut_to_half_an_iteration():
    controller = engine(config(levels={"count": 3, "slack_us": "measured", "burst_gap_us": 20_000}))
    two_jobs(controller)
    day = 24 * 3600 * SECOND
    say(controller, "h1", 20, timed("a", Timing(day, 0, 64, 1.0, 1, day, True, 1)))
    assert controller.step(20 * SECOND).desired["S1"].groups[1].slack_us == 500_000

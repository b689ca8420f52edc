"""Whose flow counters are read, when, and what comes of a reading."""

from ipaddress import ip_address
from random import Random

import pytest

from controlplane.config import Config
from controlplane.counting import PROMPT_NS, Counting
from controlplane.groups import Placement
from controlplane.model import FiveTuple, Group, Link
from controlplane.profiling import Profiler
from controlplane.progress import Iteration

SECOND = 10**9
CONFIG = Config.model_validate(
    {
        "switches": [
            {"name": f"S{n}", "address": f"h:{n}", "device_id": n, "node_id": n, "ports": [1, 2, 3]}
            for n in (1, 2)
        ]
        + [
            {
                "name": "O1",
                "protocol": "openflow",
                "device_id": 9,
                "node_id": 9,
                "ports": [1],
                "host_ports": [1],
            }
        ]
    }
)


def flow(host):
    return FiveTuple(ip_address(f"10.0.{host}.1"), ip_address("10.0.9.1"), 6, 40000, 5000)


def group(name, job, *switches):
    return Group(name, job, tuple(Link(switch, 3) for switch in switches))


@pytest.fixture
def counting():
    """Job a enters by S1 and S2, b by an OpenFlow switch and then S2."""
    groups = (group("1", "a", "S1", "S2"), group("2", "a", "S2", "S1"), group("3", "b", "O1", "S2"))
    made = Counting(CONFIG)
    flows = {flow(1): ("1", 1), flow(2): ("2", 2), flow(3): ("3", 3)}
    made.place(Placement(groups, {"1": 1, "2": 2, "3": 3}, flows), {"a", "b"})
    return made


@pytest.fixture
def profiler():
    made = Profiler(CONFIG.profiling, Random(1))
    made.step(0, "ab", {}, "ab", [frozenset("a"), frozenset("b")])
    return made


def both(one, other):
    return {"S1": {flow(1): one}, "S2": {flow(2): other, flow(3): 5}}


def test_a_flow_is_counted_by_the_first_switch_that_can_be_asked(counting):
    assert counting.flows() == {"S1": [flow(1)], "S2": [flow(2), flow(3)]}
    assert counting.flows({"b"}) == {"S2": [flow(3)]}
    assert counting.flows({"c"}) == {}


def test_who_is_profiled_and_told_of_an_iteration_is_to_be_read_at_once(counting, profiler):
    assert counting.urgent == frozenset()
    counting.told("b", 1)
    assert counting.urgent == {"b"}
    counting.observe({}, {"b": 1}, profiler, 2, {"b"})  # its switch was not to be had
    assert counting.urgent == frozenset()


def test_a_reading_of_some_jobs_says_nothing_of_the_others(counting, profiler):
    for number in range(5):
        now = number * SECOND
        profiler.observe("a", [Iteration(now, SECOND)] if number else [], now)
        counting.told("a", now)
        counting.observe(
            both(0, 0) | {"S2": {flow(3): number}}, {"a": number, "b": number}, profiler, now, {"b"}
        )
    assert not counting.verdict("a").checked


def profile(counting, profiler, *, late_ns=0, readings=both):
    """Four iterations of 1 s and 1 MB from each host, by which job a is measured."""
    for number in range(5):
        now = number * SECOND
        if number:
            profiler.observe("a", [Iteration(now, SECOND)], now)
        counting.told("a", now)
        counting.observe(readings(number * 10**6, number * 10**6), {"a": number}, profiler, now + late_ns)


def test_who_tells_less_than_was_counted_is_found_out(counting, profiler):
    profile(counting, profiler)
    assert (profiler.t_ideal_ns("a"), counting.verdict("a").checked) == (SECOND, True)
    assert counting.urgent == frozenset()
    assert not counting.verdict("b").checked
    for number in range(9, 99, 5):
        counting.observe(
            both(number * 10**6, number * 10**6), {"a": 4 + number // 2}, profiler, number * SECOND
        )
    assert counting.verdict("a").flagged
    assert [counting.take_again(), counting.take_again()] == [{"a"}, frozenset()]


def test_with_more_hosts_or_fewer_a_job_is_to_be_measured_again(counting, profiler):
    profile(counting, profiler)
    flows = {flow(1): ("1", 1), flow(3): ("3", 3)}
    groups = (group("1", "a", "S1", "S2"), group("3", "b", "O1", "S2"))
    counting.place(Placement(groups, {"1": 1, "3": 3}, flows), {"a", "b"})
    counting.observe(both(0, 0), {"a": 9, "b": 9}, profiler, 20 * SECOND)
    assert not counting.verdict("a").checked
    assert counting.take_again() == {"a"}
    assert counting.take_again() == frozenset()


def test_what_was_measured_without_a_reading_is_not_held_against_an_older_one(counting, profiler):
    profile(counting, profiler)
    assert counting.verdict("a").checked
    profiler.again("a", 10 * SECOND)
    profiler.step(10 * SECOND, "ab", {}, "ab", [frozenset("a"), frozenset("b")])
    profiler.observe("a", [Iteration(n * SECOND // 2, SECOND // 2) for n in range(21, 25)], 12 * SECOND)
    assert profiler.t_ideal_ns("a") == SECOND // 2
    counting.observe(both(10**7, 10**7), {"a": 9}, profiler, 13 * SECOND)
    assert not counting.verdict("a").checked


def test_what_each_host_sent(counting, profiler):
    profile(counting, profiler)
    assert counting.sent("a") == {flow(1).source: 4 * 10**6, flow(2).source: 4 * 10**6}
    assert counting.sent("c") == {}


def test_a_reading_that_comes_late_tells_nothing_of_an_iteration(counting, profiler):
    profile(counting, profiler, late_ns=PROMPT_NS + 1)
    assert (profiler.t_ideal_ns("a"), counting.verdict("a").checked) == (SECOND, False)


def test_a_job_is_looked_at_only_where_all_its_switches_were_read(counting, profiler):
    profile(counting, profiler, readings=lambda one, _: {"S1": {flow(1): one}})
    assert not counting.verdict("a").checked


def test_a_job_that_starts_anew_or_is_gone_is_forgotten(counting, profiler):
    profile(counting, profiler)
    counting.restart("a")
    assert not counting.verdict("a").checked
    profile(counting, profiler)
    counting.place(Placement(), {"b"})
    assert counting.flows() == {}
    assert not counting.verdict("a").checked

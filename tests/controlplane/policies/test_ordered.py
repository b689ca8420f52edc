"""Pruning (scope fabric) and ranking per port: the paper's example, and what must always hold."""

from collections import defaultdict
from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.model import Group, Link
from controlplane.policies import Scope
from controlplane.policies.ordered import levels_in_order

JOBS = "abcde"
LINKS = [Link(f"S{switch}", port) for switch in (1, 2, 3) for port in (1, 2)]
paths = st.lists(st.sampled_from(LINKS), min_size=1, max_size=3, unique=True).map(tuple)
group_lists = st.lists(st.tuples(st.sampled_from(JOBS), paths), max_size=10).map(
    lambda pairs: [Group(str(index), job, path) for index, (job, path) in enumerate(pairs)]
)
orders = st.permutations(JOBS)
counts = st.integers(1, 6)
scopes = st.sampled_from(list(Scope))


def literal_pruning(order, groups, count):
    """The pseudo-code of the paper, on the graph that it draws."""
    graph = nx.Graph()
    graph.add_nodes_from(groups)
    graph.add_edges_from(
        (one, other)
        for one, other in combinations(groups, 2)
        if one.job != other.job and set(one.path) & set(other.path)
    )
    level = {group.id: 0 for group in groups}
    for current in range(count - 1, 0, -1):
        for component in list(nx.connected_components(graph)):
            lowest = min((group.job for group in component), key=order.index)
            chosen = [group for group in component if group.job == lowest]
            level.update({group.id: current for group in chosen})
            graph.remove_nodes_from(chosen)
    return level


def by_link(groups, levels):
    """Link -> job -> levels of its groups there."""
    result = defaultdict(lambda: defaultdict(set))
    for group in groups:
        for link in group.path:
            result[link][group.job].add(levels[group.id][link])
    return result


@given(orders, group_lists, counts)
def test_pruning_equals_the_literal_contention_graph(order, groups, count):
    levels = levels_in_order(order, groups, count, Scope.FABRIC)
    assert {group: set(at.values()) for group, at in levels.items()} == {
        group: {level} for group, level in literal_pruning(order, groups, count).items()
    }


@given(orders, group_lists, counts, scopes)
def test_no_inversion_on_a_link_within_k(order, groups, count, scope):
    for jobs in by_link(groups, levels_in_order(order, groups, count, scope)).values():
        for first, second in combinations(sorted(jobs, key=order.index), 2):
            assert min(jobs[first]) >= max(jobs[second])


@given(orders, group_lists, st.integers(2, 6), scopes)
def test_the_first_job_of_a_link_is_alone_at_its_level_there_where_k_allows(order, groups, count, scope):
    for jobs in by_link(groups, levels_in_order(order, groups, count, scope)).values():
        for first, second in combinations(sorted(jobs, key=order.index), 2):
            assert min(jobs[first]) > max(jobs[second]) or max(jobs[second]) == 0


@given(orders, group_lists, counts, scopes)
def test_a_flow_that_contends_with_nobody_has_the_top_level(order, groups, count, scope):
    levels = levels_in_order(order, groups, count, scope)
    for group in groups:
        if all(other.job == group.job or not set(other.path) & set(group.path) for other in groups):
            assert set(levels[group.id].values()) == {count - 1}


@given(orders, group_lists, counts)
def test_port_scope_ranks_exactly_the_jobs_that_meet(order, groups, count):
    for jobs in by_link(groups, levels_in_order(order, groups, count, Scope.PORT)).values():
        for rank, job in enumerate(sorted(jobs, key=order.index)):
            assert jobs[job] == {max(count - 1 - rank, 0)}


@given(orders, group_lists, counts, scopes)
def test_every_group_has_a_level_on_every_link_of_its_path_and_on_no_other(order, groups, count, scope):
    levels = levels_in_order(order, groups, count, scope)
    assert {group.id: set(group.path) for group in groups} == {group: set(at) for group, at in levels.items()}
    assert all(0 <= level < count for at in levels.values() for level in at.values())


def test_figures_6_and_7_of_the_paper():
    shared_12, shared_23, shared_24 = Link("S1", 1), Link("S2", 1), Link("S2", 2)
    groups = [
        Group("f1", "J1", (shared_12,)),
        Group("f21", "J2", (shared_12,)),
        Group("f22", "J2", (shared_23, shared_24)),
        Group("f3", "J3", (shared_23,)),
        Group("f4", "J4", (shared_24,)),
    ]
    levels = levels_in_order(["J1", "J2", "J3", "J4"], groups, 2, Scope.FABRIC)
    assert {group: set(at.values()) for group, at in levels.items()} == {
        "f1": {1}, "f22": {1}, "f21": {0}, "f3": {0}, "f4": {0},
    }  # fmt: skip


def test_a_job_outside_the_order_is_an_error():
    with pytest.raises(ValueError, match="group 1: job 'z' is not among the jobs"):
        levels_in_order(["a"], [Group("1", "z", (LINKS[0],))], 2, Scope.PORT)


def test_no_levels_is_an_error():
    with pytest.raises(ValueError, match="count = 0"):
        levels_in_order(["a"], [], 0, Scope.FABRIC)


@given(orders, group_lists, counts)
def test_switch_scope_prunes_the_literal_graph_of_each_switch(order, groups, count):
    levels = levels_in_order(order, groups, count, Scope.SWITCH)
    for switch in ("S1", "S2", "S3"):
        here = [
            Group(group.id, group.job, links)
            for group in groups
            if (links := tuple(link for link in group.path if link.switch == switch))
        ]
        expected = literal_pruning(order, here, count)
        for group in here:
            assert {levels[group.id][link] for link in group.path} == {expected[group.id]}


one_port_a_switch = st.lists(
    st.tuples(
        st.sampled_from(JOBS),
        st.lists(st.sampled_from(LINKS), min_size=1, unique_by=lambda link: link.switch).map(tuple),
    ),
    max_size=10,
).map(lambda pairs: [Group(str(index), job, path) for index, (job, path) in enumerate(pairs)])


@given(orders, one_port_a_switch, counts)
def test_switch_scope_is_port_scope_where_paths_leave_a_switch_once(order, groups, count):
    assert levels_in_order(order, groups, count, Scope.SWITCH) == levels_in_order(
        order, groups, count, Scope.PORT
    )


def test_the_scopes_differ():
    # On S1, a goes before b and b before c, though a and c never meet there; S2 has only b and c.
    first, second, other = Link("S1", 1), Link("S1", 2), Link("S2", 1)
    groups = [
        Group("1", "a", (first,)),
        Group("2", "b", (first, second, other)),
        Group("3", "c", (second, other)),
    ]
    fabric, switch, port = (
        [list(at.values()) for at in levels_in_order("abc", groups, 4, scope).values()] for scope in Scope
    )
    assert fabric == [[3], [2, 2, 2], [1, 1]]
    assert switch == [[3], [2, 2, 3], [1, 2]]
    assert port == [[3], [2, 3, 3], [2, 2]]

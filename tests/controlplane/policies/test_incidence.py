"""Incidence: groups by job, links by number, nodes by scope; and levels read one by one."""

from functools import partial
from itertools import pairwise

import pytest

from controlplane.model import Group, Link
from controlplane.policies import Incidence, Scope, incidence

A, B, C = Link("S1", 1), Link("S1", 2), Link("S2", 1)
GROUPS = [
    Group("1", "x", (A, C)),
    Group("2", "y", (A, B)),
    Group("3", "x", (B,)),
]


def columns(starts, table):
    """A relation as lists, one a row."""
    return [[int(column) for column in table[a:b]] for a, b in pairwise(starts)]


@pytest.fixture
def made(kind):
    """Make an incidence with loops of the kind under test."""
    return partial(Incidence, tables=kind)


def test_groups_of_a_job_are_next_to_each_other(made):
    found = made(GROUPS)
    assert [group.id for group in found] == ["1", "3", "2"]
    assert (len(found), found[1], found[1:]) == (3, GROUPS[2], (GROUPS[2], GROUPS[1]))
    assert (found.place, found.jobs, found.number) == ({"1": 0, "3": 1, "2": 2}, ("x", "y"), {"x": 0, "y": 1})
    assert GROUPS[0] in found


def test_relations(made):
    found = made(GROUPS)
    assert (found.link, found.size, found.shared) == ((A, B, C), 3, 2)  # only x uses C
    assert columns(found.starts, found.links) == [[0, 2], [1], [0, 1]]
    assert list(found.job_groups) == [0, 2, 3]


def test_links_may_have_names(made):
    groups = [GROUPS[0], GROUPS[2], GROUPS[1]]
    found, named = made(groups), made(groups, names=[70, 0, 2**40, 70, 2**40])
    assert (list(named.links), named.link, named.shared) == (list(found.links), found.link, found.shared)
    with pytest.raises(ValueError, match="not next to each other"):
        made(GROUPS, names=[70, 0, 70, 2**40, 2**40])


def test_equal_links_are_one_whether_or_not_they_are_one_object(made):
    groups = [Group("1", "x", (Link("S1", 1), Link("S1", 2))), Group("2", "y", (Link("S1", 2),))]
    found = made(groups)
    assert (found.link, list(found.links)) == ((B, A), [1, 0, 0])


def test_more_objects_than_can_be_told_apart_by_address(made, monkeypatch):
    monkeypatch.setattr(incidence, "_DIFFERENT", 4)
    groups = [Group(str(number), "x", (Link("S1", number % 5),)) for number in range(20)]
    found = made(groups)
    assert (found.link, list(found.links)) == (tuple(Link("S1", port) for port in range(5)), [*range(5)] * 4)


@pytest.mark.parametrize(
    ("scope", "node_of", "job_nodes", "links"),
    [
        (Scope.FABRIC, None, [0, 2, 3], [[0], [1], [0, 1]]),
        (Scope.SWITCH, [0, 1, 2, 3, 3], [0, 3, 4], [[0], [], [1], [0, 1]]),
        (Scope.PORT, [0, 1, 2, 3, 4], [0, 3, 5], [[0], [], [1], [0], [1]]),
    ],
)
def test_what_a_node_is(made, scope, node_of, job_nodes, links):
    nodes = made(GROUPS).nodes(scope)
    assert (nodes.node_of if node_of is None else list(nodes.node_of)) == node_of
    assert (list(nodes.job_nodes), columns(nodes.starts, nodes.links)) == (job_nodes, links)
    assert len(nodes) == len(links)


def test_parts_of_a_path_that_comes_back_to_a_switch_are_one_node(made):
    nodes = made([Group("1", "x", (A, C, B)), Group("2", "y", (C, A))]).nodes(Scope.SWITCH)
    assert list(nodes.node_of) == [0, 1, 0, 2, 3]
    assert columns(nodes.starts, nodes.links) == [[0], [1], [1], [0]]  # B is x's alone


def test_a_link_that_a_path_crosses_twice_counts_once(made):
    nodes = made([Group("1", "x", (A, C, A)), Group("2", "y", (A,))]).nodes(Scope.FABRIC)
    assert columns(nodes.starts, nodes.links) == [[0], [0]]


def test_components_while_no_job_is_gone(made):
    # C has only job x, and so connects nothing. Jobs x and y meet on A and on B, which y's group connects.
    fabric, port = made(GROUPS).nodes(Scope.FABRIC), made(GROUPS).nodes(Scope.PORT)
    root = fabric.part[0]
    assert (list(fabric.part), fabric.total[root], fabric.parts) == ([root, root, root], 2, 1)
    assert (list(port.part), list(port.total), port.parts) == ([0, -1, 1, 0, 1], [1, 1], 0)


def test_the_groups_of_some_jobs_alone():
    found = Incidence(GROUPS)
    some = found.only(frozenset("y"))
    assert (list(some), found.only(frozenset("y")) is some) == ([GROUPS[1]], True)
    assert list(found.only(frozenset("x"))) == [GROUPS[0], GROUPS[2]]
    assert (list(found.only(frozenset())), len(found)) == ([], 3)
    assert found.only(frozenset("y")) is not some  # others were asked for meanwhile


def test_nodes_are_made_once():
    found = Incidence(GROUPS)
    assert found.nodes(Scope.PORT) is found.nodes(Scope.PORT)


def test_nothing(made):
    found = made([])
    assert (len(found), found.jobs, found.link, len(found.nodes(Scope.FABRIC))) == (0, (), (), 0)


def test_levels_are_read_by_group(made):
    found = made(GROUPS)
    levels = incidence.NodeLevels(found.nodes(Scope.PORT), [5, 4, 3, 2, 1])
    assert dict(levels) == {"1": {A: 5, C: 4}, "3": {B: 3}, "2": {A: 2, B: 1}}
    assert (list(levels), len(levels), levels.get("4")) == (["1", "3", "2"], 3, None)
    assert all(type(level) is int for on in levels.values() for level in on.values())
    assert incidence.NodeLevels(found.nodes(Scope.FABRIC), [5, 4, 3])["2"] == {A: 3, B: 3}

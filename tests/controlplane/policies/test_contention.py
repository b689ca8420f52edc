"""Components on the incidence are those of the paper's literal contention graph."""

from itertools import combinations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from controlplane.model import Group, Link
from controlplane.policies.contention import group_components, job_components

LINKS = [Link(f"S{switch}", port) for switch in (1, 2, 3) for port in (1, 2)]
paths = st.lists(st.sampled_from(LINKS), min_size=1, max_size=3, unique=True).map(tuple)
group_lists = st.lists(st.tuples(st.sampled_from("abcd"), paths), max_size=9).map(
    lambda pairs: [Group(str(index), job, path) for index, (job, path) in enumerate(pairs)]
)


def literal_graph(groups):
    graph = nx.Graph()
    graph.add_nodes_from(group.id for group in groups)
    graph.add_edges_from(
        (one.id, other.id)
        for one, other in combinations(groups, 2)
        if one.job != other.job and set(one.path) & set(other.path)
    )
    return graph


@given(group_lists)
def test_group_components_are_those_of_the_literal_graph(groups):
    found = {frozenset(group.id for group in component) for component in group_components(groups)}
    assert found == {frozenset(component) for component in nx.connected_components(literal_graph(groups))}


@given(group_lists)
def test_job_components_are_those_of_jobs_that_share_links(groups):
    graph = nx.Graph()
    graph.add_nodes_from("abcde")
    graph.add_edges_from(
        (one.job, other.job) for one, other in combinations(groups, 2) if set(one.path) & set(other.path)
    )
    assert set(job_components("abcde", groups)) == {frozenset(c) for c in nx.connected_components(graph)}


def test_groups_of_one_job_on_one_link_do_not_contend():
    link = Link("S1", 1)
    groups = [Group("1", "a", (link,)), Group("2", "a", (link, Link("S2", 1)))]
    assert [[group.id for group in component] for component in group_components(groups)] == [["1"], ["2"]]


def test_two_jobs_join_all_groups_of_their_link():
    link = Link("S1", 1)
    groups = [Group("1", "a", (link,)), Group("2", "a", (link,)), Group("3", "b", (link,))]
    assert [[group.id for group in component] for component in group_components(groups)] == [["1", "2", "3"]]

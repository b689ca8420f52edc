"""Components of links against networkx, with jobs gone and known borders, by both ways of going on."""

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.model import Group, Link
from controlplane.policies import Incidence, Scope, components

LINKS = [Link("S", port) for port in range(12)]
paths = st.lists(st.sampled_from(LINKS), min_size=1, max_size=3, unique=True).map(tuple)
group_lists = st.lists(st.tuples(st.integers(0, 3), paths), min_size=1, max_size=25).map(
    lambda pairs: [Group(str(index), str(job), path) for index, (job, path) in enumerate(pairs)]
)


@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize("farther", [1, 10**6], ids=["by link", "in a row"])
@settings(deadline=None)
@given(groups=group_lists, gone=st.integers(0, 2))
def test_components_are_those_of_the_graph(samples, farther, groups, gone):
    """Jobs up to number ``gone`` hold nothing together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(components, "SAMPLES", samples)
        patch.setattr(components, "FARTHER", farther)
        found = Incidence(groups)
        size = len(found.link)
        floor, position = [gone] * size, [int(job) for job in found.jobs]
        nodes, label = found.nodes(Scope.FABRIC), [-1] * size
        nodes.connect(list(range(size)), size, [0] * size, floor, position, label)
    graph = nx.Graph()
    graph.add_nodes_from(found.link)
    for group in groups:
        if int(group.job) > gone:
            nx.add_path(graph, group.path)
    number = {link: place for place, link in enumerate(found.link)}
    for together in nx.connected_components(graph):
        smallest = min(number[link] for link in together)
        assert {label[number[link]] for link in together} == {smallest}


def test_only_what_is_to_be_done_is_touched():
    a, b, c, d = LINKS[:4]
    found = Incidence([Group("1", "x", (a, b)), Group("2", "y", (b, c, d))])
    label = [7, 7, 7, 7]
    found.nodes(Scope.FABRIC).connect([2, 3], 2, [0] * 4, [-1] * 4, [0, 1], label)
    assert label == [7, 7, 2, 2]

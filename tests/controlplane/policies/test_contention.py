"""Jobs that share links hold together."""

from itertools import combinations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from controlplane.model import Group, Link
from controlplane.policies.contention import DisjointSets, job_components

LINKS = [Link(f"S{switch}", port) for switch in (1, 2, 3) for port in (1, 2)]
paths = st.lists(st.sampled_from(LINKS), min_size=1, max_size=3, unique=True).map(tuple)
group_lists = st.lists(st.tuples(st.sampled_from("abcd"), paths), max_size=9).map(
    lambda pairs: [Group(str(index), job, path) for index, (job, path) in enumerate(pairs)]
)


@given(group_lists)
def test_job_components_are_those_of_jobs_that_share_links(groups):
    graph = nx.Graph()
    graph.add_nodes_from("abcde")
    graph.add_edges_from(
        (one.job, other.job) for one, other in combinations(groups, 2) if set(one.path) & set(other.path)
    )
    assert set(job_components("abcde", groups)) == {frozenset(c) for c in nx.connected_components(graph)}


def test_disjoint_sets_keep_the_second_ones_representative():
    sets = DisjointSets(4)
    assert sets.join(0, 1)
    assert sets.join(1, 2)
    assert not sets.join(0, 2)
    assert [sets.find(item) for item in range(4)] == [2, 2, 2, 3]

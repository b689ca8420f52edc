"""Parts against networkx; what a ranking takes from one before; and a graph that is put together by hand."""

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.model import Group, Link
from controlplane.policies import Incidence, Scope

LINKS = [Link("S", port) for port in range(12)]
paths = st.lists(st.sampled_from(LINKS), min_size=1, max_size=3, unique=True).map(tuple)
group_lists = st.lists(st.tuples(st.integers(0, 3), paths), min_size=1, max_size=25).map(
    lambda pairs: [Group(str(index), str(job), path) for index, (job, path) in enumerate(pairs)]
)


def nodes_of(kind, *paths):
    """Nodes of one group each, a job before a colon and the links that it uses."""
    groups = []
    for index, path in enumerate(paths):
        job, _, links = path.partition(":")
        groups.append(Group(str(index), job, tuple(Link(link, 1) for link in links)))
    return Incidence(groups, kind).nodes(Scope.FABRIC)


def merged(kind, nodes, *order):
    """The places at which parts become whole when jobs merge, and what `settle` makes of that."""
    level = kind.filled(len(nodes))
    places = kind.of(order, len(order))
    nodes.merge(places, level)
    assert nodes.settle(places, True, 7, level)
    whole = nodes.per_link[-1]
    return [int(whole[part]) for part in sorted(set(nodes.part)) if part >= 0], list(level)


@settings(deadline=None)
@given(group_lists)
def test_parts_are_the_components_of_the_graph(kind, groups):
    found = Incidence(groups, kind)
    jobs_on = {link: {group.job for group in groups if link in group.path} for link in found.link}
    graph = nx.Graph()
    for group in found:
        graph.add_edges_from((group.id, link) for link in group.path if len(jobs_on[link]) > 1)
    nodes = found.nodes(Scope.FABRIC)
    parts = {}
    for number, group in enumerate(found):
        if nodes.part[number] >= 0:
            parts.setdefault(int(nodes.part[number]), set()).add(group.id)
    ids = {group.id for group in found}
    components = [component for component in nx.connected_components(graph) if len(component) > 1]
    assert sorted(map(sorted, parts.values())) == sorted(sorted(one & ids) for one in components)
    links = {min(one & ids): len(one - ids) for one in components}
    assert {min(part): nodes.total[root] for root, part in parts.items()} == links
    assert nodes.parts == sum(count > 1 for count in links.values())


def test_when_a_part_is_whole(kind):
    # 0 and 1 meet on a, 1 and 2 on b, 0 to 3 on c; d is 3's alone.
    nodes = nodes_of(kind, "0:ac", "1:ab", "2:bc", "3:cd")
    assert merged(kind, nodes, 0, 1, 2, 3) == ([0], [7, 6, 5, 4])
    assert merged(kind, nodes, 3, 0, 1, 2) == ([1], [6, 5, 4, 7])  # 3 comes to what is whole without it
    # Without 0, which is not the first, a would have one job.
    assert merged(kind, nodes, 1, 0, 3, 2) == ([0], [6, 7, 4, 5])


def test_a_part_of_one_link_is_whole_whoever_is_there(kind):
    nodes = nodes_of(kind, "0:a", "1:a", "2:b", "3:b", "3:a")
    assert merged(kind, nodes, 0, 1, 2, 3) == ([4, 4], [7, 6, 7, 6, 5])


def test_what_is_whole_without_a_job_stays_so_wherever_that_goes(kind):
    nodes = nodes_of(kind, *(f"{job}:ab" for job in range(5)))
    assert merged(kind, nodes, 0, 1, 2, 3, 4)[0] == [3]

    def settled(top, *order):
        level = kind.filled(5)
        return nodes.settle(kind.of(order, 5), False, top, level) and list(level)

    assert settled(3, 2, 1, 0, 4, 3) == [1, 2, 3, 0, 0]
    assert settled(2, 2, 0, 3, 1, 4) == [1, 0, 2, 0, 0]
    assert not settled(3, 2, 0, 3, 1, 4)  # whether they still are one without 3 is not known

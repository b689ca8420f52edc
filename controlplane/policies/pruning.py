"""The paper's pruning of the contention graph, from its end, on links instead of pairs of flows.

The paper draws a node per flow and an edge where flows of different jobs share a link, and goes from the top
level down: in each connected component the nodes of the first job take the level and leave the graph; what
is left gets level 0. Here nodes are groups (under finer scopes, their parts), and no pair of them is ever
formed: a link with at least two jobs connects all nodes on it, one with a single job connects nothing. So
components are those of the links that several jobs use, which nodes hold together.

Once the first jobs of a component have left, it is what the others make by themselves. So the jobs are put
into an empty graph, the last first, and components only grow, which disjoint sets do in about the time that
it takes to look at each node once. The level of a node is as far below the top as the number of jobs that its
component loses before: of those that come to it later here, wherever it has grown to by then. That is a sum
for each set, kept as offsets between links and roots.

As soon as a component is all that it ever will be, each earlier job there only adds one. Where jobs contend
all over a fabric that is so after a small part of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from controlplane.policies.incidence import Nodes
from controlplane.policies.tables import Table


def prune(nodes: Nodes, order: Sequence[int], count: int) -> Table:
    """Return the level of each of ``nodes`` for jobs in ``order``, with ``count`` levels.

    A node that contends with nobody is on top.
    """
    tables = nodes.incidence.tables
    places, level = tables.of(order, len(order)), tables.filled(len(nodes))
    if not nodes.settle(places, False, count - 1, level):
        nodes.merge(places, level)
        nodes.settle(places, True, count - 1, level)
    return level

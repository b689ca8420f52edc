"""Turn a control-flow graph into nested Python statements without duplicating any node.

Nodes with one way in are nested where they are jumped to. The others follow their immediate dominator:
plainly when every path from there leads to them, else under a flag that the jump sets (N. Ramsey, "Beyond
Relooper", ICFP 2022, with flags for Python's missing labelled break). Cycles become a ``while`` that
dispatches on a step variable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence

import networkx as nx

Node = Hashable
Jump = Callable[[Node | None], list[str]]
_END = ("end",)


def indent(lines: Sequence[str]) -> list[str]:
    """Nest lines one level; a block without a statement gets ``pass``."""
    empty = all(line.lstrip().startswith("#") for line in lines)
    return [*(" " + line for line in lines), *([" pass"] if empty else [])]


def comment(text: str) -> str:
    """Make a comment of a text that is not ours: one line, whatever it holds."""
    return "# " + " ".join(text.split())


def if_else(test: str, then: Sequence[str], other: Sequence[str]) -> list[str]:
    """``if`` with or without ``else``; an ``else`` that is one ``if`` becomes ``elif``, to nest no deeper."""
    if not other:
        return [f"if {test}:", *indent(then)]
    if not then:
        return [f"if not {test}:", *indent(other)]
    only = other[0].startswith("if ") and all(line.startswith((" ", "elif ", "else:")) for line in other[1:])
    rest = [f"el{other[0]}", *other[1:]] if only else ["else:", *indent(other)]
    return [f"if {test}:", *indent(then), *rest]


def structured(
    entry: Node | None,
    successors: Callable[[Node], Sequence[Node | None]],
    render: Callable[[Node, Jump], list[str]],
    label: str,
) -> list[str]:
    """Generate the code of the graph that starts at ``entry``.

    ``successors(node)`` lists the targets of a node's jumps, once per jump; None ends. ``render(node, jump)``
    gives the node's code, with the lines of ``jump(target)`` in tail position of each way out. ``label``
    starts the names of the variables used.
    """
    return [] if entry is None else _Structure(entry, successors, render, label).code()


class _Structure:
    def __init__(
        self,
        entry: Node,
        successors: Callable[[Node], Sequence[Node | None]],
        render: Callable[[Node, Jump], list[str]],
        label: str,
    ) -> None:
        self.entry, self.successors, self.render, self.label = entry, successors, render, label
        flow: nx.MultiDiGraph[Node] = nx.MultiDiGraph()
        pending, seen = [entry], {entry}
        flow.add_node(entry)
        while pending:
            node = pending.pop()
            for target in successors(node):
                flow.add_edge(node, _END if target is None else target)
                if target is not None and target not in seen:
                    seen.add(target)
                    pending.append(target)
        self.flow = flow
        self.loops: dict[Node, tuple[Node, ...]] = {}  # representative of a cycle -> its nodes
        self.home: dict[Node, Node] = {
            node: node for node in flow
        }  # node -> node, or representative of its cycle
        for cycle in nx.strongly_connected_components(flow):
            first = min(cycle, key=str)
            if len(cycle) > 1 or flow.has_edge(first, first):
                self.loops[first] = tuple(sorted(cycle, key=str))
                self.home.update(dict.fromkeys(cycle, first))
        self.flags: dict[Node, int] = {}
        self._analyse()

    def _analyse(self) -> None:
        ways: Counter[tuple[Node, Node]] = Counter()
        for a, b, _ in self.flow.edges(keys=True):
            a, b = self.home[a], self.home[b]
            if a != b:
                ways[a, b] += 1
        graph: nx.DiGraph[Node] = nx.DiGraph()
        start = self.home[self.entry]
        graph.add_nodes_from([start, _END])
        graph.add_edges_from(ways)
        for loop in self.loops:
            if not graph.out_degree(loop):
                graph.add_edge(loop, _END)
        order = {node: i for i, node in enumerate(nx.topological_sort(graph))}
        dominators = nx.immediate_dominators(graph, start)
        after = nx.immediate_dominators(graph.reverse(copy=False), _END)
        incoming: Counter[Node] = Counter()
        for (_, b), n in ways.items():
            incoming[b] += n
        self.merges: dict[Node, list[Node]] = {node: [] for node in graph}
        self.plain: set[Node] = set()
        for node in sorted(graph, key=order.__getitem__):
            above = dominators.get(node)
            if node in (start, _END) or above is None:
                continue
            if after.get(above) == node:
                self.plain.add(node)
            elif incoming[node] < 2:
                continue
            else:
                self.flags[node] = len(self.flags) + 1
            self.merges[above].append(node)

    def code(self) -> list[str]:
        if self.entry in self.home and self.home[self.entry] in self.loops:
            body = self._jump(self.entry, at_start=True)
        else:
            body = self._tree(self.entry)
        return [f"{self.label}_to = 0", *body] if self.flags else body

    def _tree(self, node: Node) -> list[str]:
        lines: list[str] = []
        follow: Node | None = node
        while follow is not None:
            current, follow = follow, None
            lines += self._loop(current) if current in self.loops else self.render(current, self._jump)
            for merge in self.merges[current]:
                if merge in self.plain:
                    follow = merge
                else:
                    lines += [f"if {self.label}_to == {self.flags[merge]}:", *indent(self._tree(merge))]
        return lines

    def _jump(self, target: Node | None, *, at_start: bool = False) -> list[str]:
        if target is None:
            return []
        home = self.home[target]
        lines = [f"{self._step(home)} = {self.loops[home].index(target)}"] if home in self.loops else []
        if home in self.flags:
            return [*lines, f"{self.label}_to = {self.flags[home]}"]
        if home in self.plain and not at_start:
            return lines
        return lines + self._tree(home)

    def _step(self, loop: Node) -> str:
        return f"{self.label}_step{sorted(map(str, self.loops)).index(str(loop))}"

    def _loop(self, loop: Node) -> list[str]:
        """Return a cycle: its nodes by number, its exits by numbers below zero."""
        step, nodes = self._step(loop), self.loops[loop]
        exits: list[Node | None] = []

        def jump(target: Node | None) -> list[str]:
            if target in nodes:
                return [f"{step} = {nodes.index(target)}"]
            if target not in exits:
                exits.append(target)
            return [f"{step} = {-1 - exits.index(target)}", "break"]

        body: list[str] = []
        for i, node in enumerate(nodes):
            body += [f"{'elif' if i else 'if'} {step} == {i}:", *indent(self.render(node, jump))]
        lines = ["while True:", *indent(body)]
        if len(exits) == 1:
            return lines + self._jump(exits[0])
        for i, target in enumerate(exits):
            lines += [f"{'elif' if i else 'if'} {step} == {-1 - i}:", *indent(self._jump(target))]
        return lines

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from softswitch.compiler.structure import if_else, indent, structured


def run(graph, entry, choices):
    """The nodes a generated program visits, when each node takes the way out that ``choices`` says next."""

    def render(node, jump):
        targets = graph[node]
        lines = [f"trace.append({node})", "if len(trace) > 200: raise OverflowError"]
        if len(targets) == 1:
            return lines + jump(targets[0])
        lines.append("way = choose()")
        for i, target in enumerate(targets):
            lines += [f"{'elif' if i else 'if'} way % {len(targets)} == {i}:", *indent(jump(target))]
        return lines

    source = "\n".join(["def f():", *indent(structured(entry, lambda n: graph[n], render, "x"))])
    trace, steps = [], iter(choices)
    scope = {"trace": trace, "choose": lambda: next(steps, 0)}
    exec(source, scope)
    with contextlib.suppress(OverflowError):
        scope["f"]()
    return trace, source


def walk(graph, entry, choices):
    trace, steps, node = [], iter(choices), entry
    while node is not None and len(trace) <= 200:
        trace.append(node)
        targets = graph[node]
        node = targets[0] if len(targets) == 1 else targets[next(steps, 0) % len(targets)]
    return trace


@st.composite
def graphs(draw, *, cycles):
    size = draw(st.integers(1, 9))
    graph = {}
    for node in range(size):
        later = range(0 if cycles else node + 1, size)
        target = st.sampled_from([*later, None]) if later else st.none()
        graph[node] = draw(st.lists(target, min_size=1, max_size=3))
    return graph


CHOICES = st.lists(st.integers(0, 2), max_size=30)


@given(graphs(cycles=False), CHOICES)
@settings(max_examples=400, deadline=None)
def test_code_of_any_dag_takes_the_graphs_path(graph, choices):
    trace, source = run(graph, 0, choices)
    assert trace == walk(graph, 0, choices)
    for node in graph:
        assert source.count(f"trace.append({node})") <= 1


@given(graphs(cycles=True), CHOICES)
@settings(max_examples=400, deadline=None)
def test_code_of_any_graph_with_cycles_takes_the_graphs_path(graph, choices):
    trace, source = run(graph, 0, choices)
    assert trace[:200] == walk(graph, 0, choices)[:200]
    for node in graph:
        assert source.count(f"trace.append({node})") <= 1


def test_a_long_chain_needs_no_deep_nesting():
    graph = {n: [n + 1] for n in range(3000)} | {3000: [None]}
    trace, source = run({**graph, 0: [1]}, 2900, [])
    assert trace == list(range(2900, 3001))
    assert max(len(line) - len(line.lstrip()) for line in source.splitlines()) <= 2


def test_an_else_that_is_one_if_nests_no_deeper():
    chain = []
    for n in reversed(range(300)):
        chain = if_else(f"x == {n}", [f"y = {n}"], chain)
    assert max(len(line) - len(line.lstrip()) for line in chain) == 1
    scope = {"x": 250}
    exec("\n".join(chain), scope)
    assert scope["y"] == 250
    assert if_else("a", [], ["b()"]) == ["if not a:", " b()"]
    assert if_else("a", ["b()"], ["if c:", " d()", "e()"]) == [
        "if a:",
        " b()",
        "else:",
        " if c:",
        "  d()",
        " e()",
    ]


def test_an_empty_graph_is_no_code():
    assert structured(None, lambda _: [], lambda _, __: [], "x") == []

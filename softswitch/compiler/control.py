"""Ingress and egress: table lookups with their actions inlined, and the control flow between them.

A table's way out depends on the action that ran, or on hit and miss. An action is known in the generated code
by its number; the chain of comparisons on it is also where the control flow forks, when it does.
"""

from __future__ import annotations

from collections.abc import Sequence

from softswitch.compiler.actions import Actions
from softswitch.compiler.calculations import Calculations
from softswitch.compiler.emit import Emitter
from softswitch.compiler.expr import Field
from softswitch.compiler.model import ActionDef, ControlDef, TableDef
from softswitch.compiler.structure import Jump, Node, comment, if_else, indent, structured
from softswitch.compiler.values import Val, bits, const

_HIT, _MISS = "__HIT__", "__MISS__"


class Control:
    """Generates one control."""

    def __init__(
        self, control: ControlDef, emitter: Emitter, actions: Actions, calculations: Calculations
    ) -> None:
        self.control = control
        self.emitter = emitter
        self.actions = actions
        self.calculations = calculations
        self.program = emitter.program

    def code(self) -> list[str]:
        """Generate the statements of the whole control."""
        body = structured(self.control.init, self._targets, self._render, self.control.name)
        return ["exited = False", *body] if any("exited" in line for line in body) else body

    def _actions(self, table: TableDef) -> list[ActionDef]:
        """Return a table's actions, those with something to do first."""
        found = [self.program.actions[n] for n in table.actions]
        return sorted(found, key=lambda a: not a.primitives)

    def _fixed(self, table: TableDef) -> tuple[ActionDef, tuple[int, ...]] | None:
        """Return the action a table without keys always runs, if it is const."""
        if table.keys or table.profile or not table.default_const or table.default is None:
            return None
        number, args = table.default
        return self.program.actions[number], args

    def _hit_miss(self, table: TableDef) -> bool:
        return _HIT in table.next or _MISS in table.next

    def _ways(self, table: TableDef) -> list[str | None]:
        """Targets of a table's ways out other than by ``exit``: one, or (hit, miss).

        Or one per action and none.
        """
        if self._hit_miss(table):
            return [table.next.get(_HIT), table.next.get(_MISS)]
        fixed = self._fixed(table)
        if fixed is not None:
            return [table.next.get(fixed[0].name)]
        targets = [table.next.get(a.name) for a in self._actions(table)]
        if table.default is None:
            targets.append(table.base_next)
        return targets if len(set(targets)) > 1 else targets[:1]

    def _exits(self, table: TableDef) -> bool:
        return any(self.actions.exits(self.program.actions[n]) for n in table.actions)

    def _targets(self, node: Node) -> Sequence[str | None]:
        name = str(node)
        if name in self.control.conditionals:
            c = self.control.conditionals[name]
            return [c.true_next, c.false_next]
        table = self.control.tables[name]
        ways = self._ways(table)
        return [None, *ways] if self._exits(table) else ways

    def _render(self, node: Node, jump: Jump) -> list[str]:
        name = str(node)
        if name in self.control.tables:
            return self._table(self.control.tables[name], jump)
        c = self.control.conditionals[name]
        self.emitter.where = f" in condition {name}"
        test = self.emitter.condition(c.expression)
        return if_else(test, jump(c.true_next), jump(c.false_next))

    def _table(self, table: TableDef, jump: Jump) -> list[str]:
        fixed = self._fixed(table)
        if fixed is not None:
            return self._fixed_table(table, fixed, jump)
        self.emitter.where = f" in table {table.name}"
        entry = self.emitter.name("e", table.name)
        lines = [comment(f"table {table.name}"), *self._lookup(table, entry)]
        ways = self._ways(table)
        forked = len(ways) > 1 and not self._hit_miss(table)
        chosen = self._chosen(table, entry)
        branches = [
            (a, self._action(a), ways[i] if forked else None) for i, a in enumerate(self._actions(table))
        ]
        exits = self._exits(table)

        def out(target: str | None) -> list[str]:
            return self._leave(jump, target) if exits else jump(target)

        lines += chosen
        first = True
        for action, body, target in branches:
            block = [*self._arguments(action, body), *body] + (out(target) if forked else [])
            if not block and not (forked and table.default is None):
                continue
            alone = len(branches) == 1 and table.default is not None
            if alone:
                lines += block
            else:
                lines += [f"{'if' if first else 'elif'} act == {action.number}:", *indent(block)]
            first = False
        if forked and table.default is None:
            lines += ["else:", *indent(out(ways[-1]))]
        if self._hit_miss(table):
            miss = self.emitter.name("miss", table.name)
            hit, missed = jump(ways[0]), jump(ways[1])
            inner = if_else(f"{entry} is not {miss}", hit, missed)
            lines += self._guard_exit(inner) if exits else inner
        elif not forked:
            lines += out(ways[0])
        return lines

    def _leave(self, jump: Jump, target: str | None) -> list[str]:
        """Go on to ``target`` unless an action ran ``exit``."""
        return self._guard_exit(jump(target))

    def _guard_exit(self, lines: list[str]) -> list[str]:
        return ["if not exited:", *indent(lines)] if lines else []

    def _fixed_table(
        self, table: TableDef, fixed: tuple[ActionDef, tuple[int, ...]], jump: Jump
    ) -> list[str]:
        action, args = fixed
        lines = self.actions.body(action, [const(a) for a in args])
        ways = self._ways(table)
        target = ways[-1]  # a table without keys always misses
        return lines + (self._leave(jump, target) if self._exits(table) else jump(target))

    def _lookup(self, table: TableDef, entry: str) -> list[str]:
        miss = self.emitter.name("miss", table.name)
        if not table.keys:
            return [f"{entry} = {miss}"]
        keys: list[str] = []
        for key in table.keys:
            value = self.emitter.value(key.target)
            if key.mask is not None and value.high is not None and key.mask & value.high != value.high:
                value = Val(f"({value.code} & {key.mask})", 0, key.mask)
            if isinstance(key.target, Field):
                f = self.program.field(key.target)
                if f.signed:
                    value = Val(f"({value.code} & {(1 << f.width) - 1})", 0, (1 << f.width) - 1)
            keys.append(value.code)
        key_code = keys[0] if len(keys) == 1 else f"({', '.join(keys)})"
        get = self.emitter.name("get", table.name)
        if all(k.kind == "exact" for k in table.keys):
            lines = [f"{entry} = {get}({key_code}, {miss})"]
        else:
            find = self.emitter.name("find", table.name)
            if len(keys) > 1:
                lines = [f"key = {key_code}", f"{entry} = {get}(key) or {find}(key)"]
            else:
                lines = [f"{entry} = {get}({key_code}) or {find}({key_code})"]
        on_hit: list[str] = []
        if table.counters:
            on_hit += [f"{entry}.packets += 1", f"{entry}.bytes += length"]
        if table.timeout:
            on_hit.append(f"{entry}.last_hit_us = now_us")
        if table.meter:
            meter = self.program.meters[table.meter]
            amount = "length" if meter.unit == "bytes" else "1"
            assert meter.target is not None
            on_hit += self.emitter.assign(meter.target, bits(f"{entry}.meter.execute({amount}, now_us)", 2))
        return [*lines, f"if {entry} is not {miss}:", *indent(on_hit)] if on_hit else lines

    def _chosen(self, table: TableDef, entry: str) -> list[str]:
        """Statements that set ``act`` and ``args``."""
        if not table.profile:
            return [f"act, args = {entry}.call"]
        profile = self.program.profiles[table.profile]
        lines = [f"choices = {entry}.target.choices"]
        if profile.algorithm is None:
            return [*lines, "act, args = choices[0].call"]
        prepare, digest = self.calculations.hash(profile.algorithm, profile.inputs)
        return [
            *lines,
            "if len(choices) == 1:",
            " act, args = choices[0].call",
            "elif choices:",
            *indent([*prepare, f"act, args = choices[{digest.code} % len(choices)].call"]),
            "else:",
            " act = -1",
        ]

    def _names(self, action: ActionDef) -> list[str]:
        return [self.emitter.name("p", name) for name, _ in action.params]

    def _action(self, action: ActionDef) -> list[str]:
        params = [bits(n, w) for n, (_, w) in zip(self._names(action), action.params, strict=True)]
        return self.actions.body(action, params)

    def _arguments(self, action: ActionDef, body: list[str]) -> list[str]:
        if not action.params or not body:
            return []
        names = self._names(action)
        return [f"{', '.join(names)}{',' if len(names) == 1 else ''} = args"]

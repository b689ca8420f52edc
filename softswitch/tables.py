"""Match-action tables as the control plane writes them and the generated packet function reads them.

Control-plane operations (``insert``, ``modify``, ``delete``, ``set_default``) are for one writer at a time;
each takes effect for the packet path in one step (one dict or attribute store), so a packet sees an entry
whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from softswitch.action_profiles import ActionProfile
from softswitch.entries import (
    ActionCall,
    ActionSpec,
    Choices,
    Entry,
    KeyField,
    MatchValue,
    NumberedCall,
    TableAction,
)
from softswitch.errors import Code, TableError
from softswitch.externs import MeterCell
from softswitch.lookup import Rule, TupleSpace

_PRIORITISED = ("ternary", "range", "optional")
_CACHED_KEYS = 65536
_NO_PRIORITY = 0


class Table:
    """A match-action table.

    ``exact`` (all keys exact) is the dict the generated code looks into: key value, or tuple of values, to
    entry. Other tables keep ``cache``, the same for keys seen since the last change, and answer the rest with
    ``lookup``. ``miss`` is the entry that holds the default action; it is one object for ever, so generated
    code may bind it.
    """

    def __init__(
        self,
        name: str,
        keys: Sequence[KeyField],
        actions: Sequence[ActionSpec],
        size: int,
        default: ActionCall | None,
        *,
        default_const: bool = False,
        profile: ActionProfile | None = None,
        direct_counter: str | None = None,
        direct_meter: str | None = None,
        idle_timeout: bool = False,
    ) -> None:
        self.name = name
        self.keys = tuple(keys)
        self.actions: Mapping[str, ActionSpec] = {a.name: a for a in actions}
        self.size = size
        self.default_const = default_const
        self.profile = profile
        self.direct_counter = direct_counter
        self.direct_meter = direct_meter
        self.idle_timeout = idle_timeout
        self.entries_const = False
        self.prioritised = any(k.kind in _PRIORITISED for k in self.keys)
        self.all_exact = all(k.kind == "exact" for k in self.keys)
        self.exact: dict[int | tuple[int, ...], Entry] = {}
        self.cache: dict[int | tuple[int, ...], Entry] = {}
        self._space: TupleSpace[Entry] = TupleSpace()
        self._entries: dict[tuple[tuple[MatchValue, ...], int], Entry] = {}
        self._version = 0
        self._initial_default = default
        self.miss = Entry((), _NO_PRIORITY, default or ActionCall(""))
        self._apply_default(default)

    @property
    def action_names(self) -> tuple[str, ...]:
        """The P4 names of the actions this table may run."""
        return tuple(self.actions)

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> Iterator[Entry]:
        """Return the entries, in order of insertion (a snapshot)."""
        return iter(tuple(self._entries.values()))

    def get(self, match: Sequence[MatchValue], priority: int = _NO_PRIORITY) -> Entry:
        """Return the entry with exactly this match and priority. Raises ``TableError`` NOT_FOUND."""
        entry = self._entries.get((tuple(match), priority))
        if entry is None:
            raise TableError(Code.NOT_FOUND, f"table {self.name} has no entry for {_shown(match)}")
        return entry

    def insert(
        self,
        match: Sequence[MatchValue],
        action: TableAction,
        priority: int = _NO_PRIORITY,
        *,
        metadata: bytes = b"",
        controller_metadata: int = 0,
        idle_timeout_ns: int = 0,
        now_us: int = 0,
    ) -> Entry:
        """Add an entry. ``now_us`` starts its idle timeout.

        Raises ``TableError``: INVALID_ARGUMENT (match, priority or action does not fit the table),
        ALREADY_EXISTS, RESOURCE_EXHAUSTED (``size`` entries are in), PERMISSION_DENIED (const entries).
        """
        self._writable()
        self._check_match(match, priority)
        if (tuple(match), priority) in self._entries:
            raise TableError(
                Code.ALREADY_EXISTS, f"table {self.name} already has an entry for {_shown(match)}"
            )
        if len(self._entries) >= self.size:
            raise TableError(Code.RESOURCE_EXHAUSTED, f"table {self.name} is full ({self.size} entries)")
        entry = Entry(tuple(match), priority, action)
        self._bind(entry, action)
        entry.metadata = metadata
        entry.controller_metadata = controller_metadata
        entry.idle_timeout_ns = idle_timeout_ns
        entry.last_hit_us = now_us
        if self.direct_meter is not None:
            entry.meter = MeterCell()
        self._entries[entry.match, priority] = entry
        self._publish(entry)
        return entry

    def modify(self, match: Sequence[MatchValue], action: TableAction, priority: int = _NO_PRIORITY) -> Entry:
        """Give an entry another action; its counter and meter stay. Metadata and timeouts: set on the result.

        Raises ``TableError``: NOT_FOUND, INVALID_ARGUMENT, PERMISSION_DENIED.
        """
        self._writable()
        self._check_match(match, priority)
        entry = self.get(match, priority)
        previous = entry.target
        self._bind(entry, action)
        entry.action = action
        self._release(previous)
        return entry

    def delete(self, match: Sequence[MatchValue], priority: int = _NO_PRIORITY) -> Entry:
        """Remove an entry and return it.

        Raises ``TableError``: NOT_FOUND, INVALID_ARGUMENT, PERMISSION_DENIED.
        """
        self._writable()
        self._check_match(match, priority)
        entry = self.get(match, priority)
        del self._entries[entry.match, priority]
        if self.all_exact:
            del self.exact[self._exact_key(entry)]
        elif entry.rule is not None:
            self._space.remove(entry.rule)
            self._changed()
        self._release(entry.target)
        return entry

    def load_const_entries(self, entries: Sequence[tuple[Sequence[MatchValue], int, TableAction]]) -> None:
        """Install the entries the program itself declares const; the table is read-only from then on."""
        for match, priority, action in entries:
            self.insert(match, action, priority).is_const = True
        self.entries_const = True

    @property
    def default(self) -> ActionCall | None:
        """The default action in force; None if the program gave none and none was set."""
        action = self.miss.action
        return action if isinstance(action, ActionCall) and action.name else None

    def set_default(self, action: ActionCall) -> None:
        """Set the default action. Raises ``TableError``: PERMISSION_DENIED (const), INVALID_ARGUMENT."""
        if self.default_const and action != self._initial_default:
            raise TableError(Code.PERMISSION_DENIED, f"table {self.name} has a const default action")
        self._apply_default(action)

    def reset_default(self) -> None:
        """Back to the default action of the program.

        Raises ``TableError`` PERMISSION_DENIED when it is const.
        """
        if self.default_const:
            raise TableError(Code.PERMISSION_DENIED, f"table {self.name} has a const default action")
        self._apply_default(self._initial_default)

    def lookup(self, key: int | tuple[int, ...]) -> Entry:
        """Return the entry a key hits (``miss`` if none), remembered in ``cache``.

        The packet path's slow half.
        """
        values = key if isinstance(key, tuple) else (key,)
        if self.all_exact:
            return self.exact.get(key, self.miss)
        version = self._version
        entry = self._space.find(values) or self.miss
        if len(self.cache) >= _CACHED_KEYS:
            self.cache.clear()
        self.cache[key] = entry
        if self._version != version:  # a writer came in between: what was found may be stale
            self.cache.pop(key, None)
        return entry

    def call(self, action: ActionCall) -> NumberedCall:
        """Return the action as the generated code runs it. Raises ``TableError`` INVALID_ARGUMENT."""
        spec = self.actions.get(action.name)
        if spec is None:
            raise TableError(Code.INVALID_ARGUMENT, f"table {self.name} has no action {action.name!r}")
        if len(action.args) != len(spec.widths):
            raise TableError(
                Code.INVALID_ARGUMENT,
                f"action {action.name} takes {len(spec.widths)} arguments, not {len(action.args)}",
            )
        for value, width in zip(action.args, spec.widths, strict=True):
            if not 0 <= value < 1 << width:
                raise TableError(
                    Code.INVALID_ARGUMENT, f"argument {value} of {action.name} exceeds {width} bits"
                )
        return spec.number, action.args

    def _apply_default(self, action: ActionCall | None) -> None:
        if action is None:
            self.miss.call, self.miss.action = (-1, ()), ActionCall("")
        else:
            self.miss.call, self.miss.action = self.call(action), action
        if self.profile is not None:
            self.miss.target = self.profile.anonymous(self.miss.call)

    def _bind(self, entry: Entry, action: TableAction) -> None:
        """Resolve ``action`` into what the packet path reads. The last store is the one that takes effect."""
        if self.profile is None:
            if not isinstance(action, ActionCall):
                raise TableError(Code.INVALID_ARGUMENT, f"table {self.name} has no action profile")
            entry.call = self.call(action)
        elif isinstance(action, ActionCall):
            raise TableError(
                Code.INVALID_ARGUMENT, f"entries of table {self.name} name a member or group, not an action"
            )
        else:
            entry.target = self.profile.acquire(self, action)

    def _release(self, target: Choices | None) -> None:
        if self.profile is not None and target is not None:
            self.profile.release(target)

    def _publish(self, entry: Entry) -> None:
        if self.all_exact:
            self.exact[self._exact_key(entry)] = entry
            return
        value: list[int] = []
        masks: list[int] = []
        ranges: list[tuple[int, int, int]] = []
        precedence = entry.priority
        for i, (k, m) in enumerate(zip(self.keys, entry.match, strict=True)):
            v, mask = 0, 0
            if k.kind == "range":
                assert isinstance(m, tuple)
                if m != (0, k.maximum):
                    ranges.append((i, *m))
            elif isinstance(m, int):
                v, mask = m, k.maximum
            elif m is not None and k.kind == "ternary":
                v, mask = m
            elif m is not None:
                v, mask = m[0], k.maximum ^ (k.maximum >> m[1])
                if not self.prioritised:
                    precedence = m[1]
            value.append(v & mask)
            masks.append(mask)
        entry.rule = Rule(tuple(value), tuple(masks), tuple(ranges), precedence, entry)
        self._space.add(entry.rule)
        self._changed()

    def _changed(self) -> None:
        """Forget cached lookups; the order (version first) is what ``lookup`` relies on."""
        self._version += 1
        self.cache.clear()

    def _exact_key(self, entry: Entry) -> int | tuple[int, ...]:
        key = entry.match
        return key[0] if len(key) == 1 else key  # type: ignore[return-value]

    def _writable(self) -> None:
        if self.entries_const:
            raise TableError(Code.PERMISSION_DENIED, f"table {self.name} has const entries")
        if not self.keys:
            raise TableError(Code.INVALID_ARGUMENT, f"table {self.name} has no key, only a default action")

    def _check_match(self, match: Sequence[MatchValue], priority: int) -> None:
        if len(match) != len(self.keys):
            raise TableError(
                Code.INVALID_ARGUMENT, f"table {self.name} has {len(self.keys)} key fields, not {len(match)}"
            )
        for k, m in zip(self.keys, match, strict=True):
            if not k.admits(m):
                raise TableError(
                    Code.INVALID_ARGUMENT, f"{m!r} is no {k.kind} match for {k.name} of {self.name}"
                )
        if self.prioritised and priority <= 0:
            raise TableError(Code.INVALID_ARGUMENT, f"entries of table {self.name} need a priority > 0")
        if not self.prioritised and priority != _NO_PRIORITY:
            raise TableError(Code.INVALID_ARGUMENT, f"entries of table {self.name} take no priority")


def _shown(match: Sequence[MatchValue]) -> str:
    return ", ".join(str(m) for m in match)

"""What a sweep runs: a scenario with some of its keys set to each of several values."""

from __future__ import annotations

import copy
import itertools
import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leveller import config
from leveller.errors import UserError
from simulator.fabric import Fabric
from simulator.scenario import Scenario, prepare, read

Value = str | int | float | bool
Settings = Mapping[str, Value]
"""Key of the scenario, as in ``policy.tau_s`` or ``jobs.0.compute_s`` -> value."""

RANGE = re.compile(r"([0-9]{1,18})\.\.([0-9]{1,18})")
MOST_RUNS = 1_000_000
"""More runs than this are taken for a slip of the finger."""


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a sweep."""

    policy: str
    settings: Settings
    seed: int

    @property
    def key(self) -> str:
        """The point as text: equal for equal points."""
        return json.dumps([self.policy, dict(sorted(self.settings.items())), self.seed])


def parse(options: Sequence[str]) -> dict[str, list[Value]]:
    """Return the values of each key, from texts such as ``policy.tau_s=0.25,1,60`` or ``policy.levels=2..8``.

    Raises UserError for a text that says no such thing.
    """
    found: dict[str, list[Value]] = {}
    for option in options:
        key, equals, text = option.partition("=")
        if not key or not equals or not text:
            raise UserError(f"--set {option}", "write KEY=VALUE,VALUE..., as in policy.tau_s=0.25,1,60")
        if key in found:
            raise UserError(f"--set {key} is given twice", "give all its values at once, with commas between")
        parts = [_values(option, part.strip()) for part in text.split(",")]
        if (count := sum(map(len, parts))) > MOST_RUNS:
            raise UserError(f"--set {option} has {count} values", f"keep to {MOST_RUNS}")
        values = [value for part in parts for value in part]
        if len(set(values)) < len(values):
            raise UserError(f"--set {option} has a value twice", "give each once")
        found[key] = values
    return found


def _values(option: str, text: str) -> Sequence[Value]:
    if bounds := RANGE.fullmatch(text):
        first, last = int(bounds[1]), int(bounds[2])
        if first > last:
            raise UserError(
                f"--set {option} has nothing from {first} to {last}", "put the smaller number first"
            )
        return range(first, last + 1)
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # also numbers and nesting beyond Python's limits
        return [text]
    return [value if isinstance(value, str | int | float | bool) else text]


def limit(policies: Sequence[str], options: Mapping[str, Sequence[Value]], seeds: int) -> None:
    """Raise UserError where the combinations are absurdly many."""
    count = math.prod(map(len, options.values())) * len(policies) * seeds
    if count > MOST_RUNS:
        raise UserError(f"the sweep has {count} runs", f"keep to {MOST_RUNS}")


def points(
    policies: Sequence[str], options: Mapping[str, Sequence[Value]], seeds: Sequence[int]
) -> list[Point]:
    """Return every combination, seeds changing fastest (`limit` says whether they are too many)."""
    combinations = [
        dict(zip(options, values, strict=True)) for values in itertools.product(*options.values())
    ]
    return [
        Point(policy, settings, seed) for settings in combinations for policy in policies for seed in seeds
    ]


def variants(path: Path, options: Mapping[str, Sequence[Value]]) -> dict[str, tuple[Scenario, Fabric]]:
    """Return the scenario of ``path`` for every combination of ``options``, by `name` of its settings.

    Raises UserError where one is no scenario.
    """
    read(path)
    written = config.read(path)
    found = {}
    for values in itertools.product(*options.values()):
        settings = dict(zip(options, values, strict=True))
        data = copy.deepcopy(written)
        for key, value in settings.items():
            _put(data, key, value)
        with_them = f"{path} with --set {name(settings)}" if settings else str(path)
        found[name(settings)] = prepare(path, config.validate(data, Scenario, with_them))
    return found


def name(settings: Settings) -> str:
    """Return settings as people read them."""
    return " ".join(f"{key}={value}" for key, value in settings.items())


def _put(data: dict[str, Any], key: str, value: Value) -> None:
    *outer, last = key.split(".")
    place: Any = data
    try:
        for part in outer:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        if isinstance(place, list):
            place[int(last)] = value
        else:
            place[last] = value
    except (ValueError, IndexError, TypeError, AttributeError):
        mend = "name a key of the scenario, such as policy.tau_s or jobs.0.compute_s"
        raise UserError(f"--set {key} is not in the scenario", mend) from None

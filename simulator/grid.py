"""What a sweep runs: a scenario with some of its keys set to each of several values."""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from leveller.errors import UserError
from simulator.fabric import Fabric
from simulator.scenario import Scenario, prepare, read

Value = str | int | float | bool
Settings = Mapping[str, Value]
"""Key of the scenario, as in ``policy.tau_s`` or ``jobs.0.compute_s`` -> value."""

RANGE = re.compile(r"(\d+)\.\.(\d+)")
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
        values = [value for part in text.split(",") for value in _values(part.strip())]
        if len(set(values)) < len(values):
            raise UserError(f"--set {option} has a value twice", "give each once")
        found[key] = values
    return found


def _values(text: str) -> list[Value]:
    if bounds := RANGE.fullmatch(text):
        return list(range(int(bounds[1]), int(bounds[2]) + 1))
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return [text]
    return [value if isinstance(value, str | int | float | bool) else text]


def points(
    policies: Sequence[str], options: Mapping[str, Sequence[Value]], seeds: Sequence[int]
) -> list[Point]:
    """Return every combination, seeds changing fastest. Raises UserError where they are absurdly many."""
    combinations = [
        dict(zip(options, values, strict=True)) for values in itertools.product(*options.values())
    ]
    count = len(combinations) * len(policies) * len(seeds)
    if count > MOST_RUNS:
        raise UserError(f"the sweep has {count} runs", f"keep to {MOST_RUNS}")
    return [
        Point(policy, settings, seed) for settings in combinations for policy in policies for seed in seeds
    ]


def variants(path: Path, options: Mapping[str, Sequence[Value]]) -> dict[str, tuple[Scenario, Fabric]]:
    """Return the scenario of ``path`` for every combination of ``options``, by `name` of its settings.

    Raises UserError where one is no scenario.
    """
    read(path)
    text = path.read_text(encoding="utf-8")
    found = {}
    for values in itertools.product(*options.values()):
        settings = dict(zip(options, values, strict=True))
        data: dict[str, Any] = tomllib.loads(text)
        for key, value in settings.items():
            _put(data, key, value)
        try:
            scenario = Scenario.model_validate(data)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise UserError(f"{path} with --set {name(settings)}: {where}", first["msg"]) from None
        found[name(settings)] = prepare(path, scenario)
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

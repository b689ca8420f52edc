"""``leveller levels``: the input file, checked strictly, and the controller's own policies run on it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Self

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from controlplane.groups import group_flows
from controlplane.model import Job, Link
from controlplane.policies import Policy, Scope
from leveller.config import Section
from leveller.errors import UserError

Name = Annotated[str, Field(min_length=1, max_length=256)]


class JobInput(Section):
    """One job: ``rate`` is R; the rest is optional and means what it does in `controlplane.model.Job`."""

    model_config = ConfigDict(strict=True)

    id: Name
    rate: float = Field(ge=0, le=1, allow_inf_nan=False)
    iterations: int = Field(default=0, ge=0)
    intensity: float = Field(default=0.0, ge=0, allow_inf_nan=False)


class FlowInput(Section):
    """One flow of a job and the links that it crosses, first hop first."""

    model_config = ConfigDict(strict=True)

    id: Name
    job: Name
    path: list[str] = Field(min_length=1)

    @field_validator("path")
    @classmethod
    def _links(cls, path: list[str]) -> list[str]:
        links = [Link.parse(text) for text in path]
        for index, link in enumerate(links):
            if link in links[:index]:
                raise ValueError(f"link {link} comes twice: a path crosses a link once")
        return path

    def links(self) -> tuple[Link, ...]:
        """Return the path as links."""
        return tuple(Link.parse(text) for text in self.path)


class Question(Section):
    """The whole input file."""

    model_config = ConfigDict(strict=True)

    jobs: list[JobInput]
    flows: list[FlowInput]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        jobs: set[str] = set()
        for index, job in enumerate(self.jobs):
            if job.id in jobs:
                raise ValueError(f"jobs.{index}.id = {job.id!r} comes twice; give every job its own id")
            jobs.add(job.id)
        flows: set[str] = set()
        for index, flow in enumerate(self.flows):
            if flow.id in flows:
                raise ValueError(f"flows.{index}.id = {flow.id!r} comes twice; give every flow its own id")
            if flow.job not in jobs:
                raise ValueError(
                    f"flows.{index}.job = {flow.job!r} is not among the jobs; add it or mend the name"
                )
            flows.add(flow.id)
        return self


def read(path: Path) -> Question:
    """Read and check the JSON file ``path``. Raises UserError naming file, field and mend."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(
            f"{path} does not exist", "give the path of a JSON file with jobs and flows"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read ({error})", "it must be a readable UTF-8 text file") from None
    try:
        data = json.loads(text, object_pairs_hook=_no_key_twice)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON ({error})", "mend the syntax there") from None
    try:
        return Question.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        what = f"{path}: {field}" if field else str(path)
        if first["type"] == "value_error":
            raise UserError(what, str(first["ctx"]["error"])) from None
        if first["type"] == "missing":
            raise UserError(f"{what} is missing", "add it") from None
        raise UserError(f"{what} = {_short(first['input'])}", first["msg"]) from None


def answer(
    question: Question, policy: Policy, count: int, scope: Scope
) -> dict[str, int] | dict[str, dict[str, int]]:
    """Return flow -> level, in file order; under the other scopes flow -> link or switch -> level."""
    jobs = [Job(job.id, job.rate, job.iterations, job.intensity) for job in question.jobs]
    groups, group_of = group_flows((flow.id, flow.job, flow.links()) for flow in question.flows)
    levels = policy(jobs, groups, count, scope)
    if scope is Scope.FABRIC:
        return {flow: next(iter(levels[group].values())) for flow, group in group_of.items()}
    return {
        flow: {
            link.switch if scope is Scope.SWITCH else str(link): level
            for link, level in levels[group].items()
        }
        for flow, group in group_of.items()
    }


def _no_key_twice(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Build a JSON object, refusing what Python would silently overwrite."""
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(
            f"key {next(name for name in names if names.count(name) > 1)!r} comes twice in one object"
        )
    return result


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

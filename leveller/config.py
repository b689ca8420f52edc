"""Reading TOML configuration into pydantic models, with errors a person can act on."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Discriminator, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails

from leveller.errors import UserError

LONGEST_VALUE = 80
"""Characters of a bad value that an error shows: it is to stay one line."""

UNKNOWN_KIND = "unknown_kind"
"""The error type of a section whose ``kind`` is none of those there are; its message names them."""

NO_TABLE = ("model_type", "model_attributes_type", "dict_type", UNKNOWN_KIND)
"""The error types of what is no table where one is asked for."""


def kinds(*names: str, default: str | None = None) -> Discriminator:
    """Return what tells pydantic the ``kind`` of a section that may be of several, each a `pydantic.Tag`.

    Without one it is ``default``. Naming the key to pydantic instead is not possible with a validator of all
    keys, as `Section` has.
    """

    def kind(value: Any) -> str | None:  # noqa: ANN401
        found = value.get("kind", default) if isinstance(value, dict) else getattr(value, "kind", None)
        return found if isinstance(found, str) else None

    mend = f"choose one of {', '.join(names)}"
    return Discriminator(kind, custom_error_type=UNKNOWN_KIND, custom_error_message=mend)


class Section(BaseModel):
    """Base of every configuration section: immutable, and an unknown key is an error, not a surprise.

    Neither is ``true`` a number, nor one in a list: pydantic would take it for 1.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_value(cls, value: object, info: ValidationInfo) -> object:
        if info.field_name and not _takes_truth(cls, info.field_name):
            for one in value if isinstance(value, list | tuple) else [value]:
                if isinstance(one, bool):
                    raise ValueError(f"{str(one).lower()} is no value of it: give a number or a text")
        return value


@cache
def _takes_truth(model: type[BaseModel], field: str) -> bool:
    def among(annotation: object) -> bool:
        return annotation in (bool, Any) or any(among(part) for part in get_args(annotation))

    return among(model.model_fields[field].annotation)


Model = TypeVar("Model", bound=BaseModel)


def load(path: Path, model: type[Model]) -> Model:
    """Read the TOML file ``path`` as a ``model``.

    Raises UserError naming the file and the line or field, for a file that is missing, unreadable,
    not TOML, or not what ``model`` asks for (the first problem only; the rest are counted).
    """
    return validate(read(path), model, str(path))


def read(path: Path) -> dict[str, Any]:
    """Return what the TOML file ``path`` says; some editors begin it with a byte order mark.

    Raises UserError naming the file, for one that is missing, unreadable or not TOML.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{path} does not exist", "give the path of a TOML file") from None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{path} cannot be read ({why})", "it must be a readable UTF-8 text file") from None
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers and nesting beyond Python's limits
        raise UserError(f"{path} is not TOML ({error})", "mend the syntax there") from None


def validate(data: dict[str, Any], model: type[Model], where: str) -> Model:
    """Return ``data`` as a ``model``. Raises UserError that begins with ``where`` and names the field."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _user_error(where, data, error) from None


def _user_error(where: str, data: dict[str, Any], error: ValidationError) -> UserError:
    first = error.errors(include_url=False)[0]
    field = _key(first, data)
    at = f"{where}: {field}" if field else where
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    value = first["input"]
    match first["type"]:
        case "missing":
            return UserError(f"{at} is missing{more}", "add it")
        case "extra_forbidden":
            return UserError(f"{at} is not a known key{more}", "remove it or mend its spelling")
        case "value_error":
            return UserError(f"{at}{more}", str(first["ctx"]["error"]))
        case kind if kind == UNKNOWN_KIND and isinstance(value, dict):
            given = f" = {_shown(value['kind'])}" if "kind" in value else " is missing"
            return UserError(f"{at}.kind{given}{more}", first["msg"])
        case "list_type" if isinstance(value, dict):
            mend = "a list of them" if "." in field else f"a list of them: [[{field}]], not [{field}]"
            return UserError(f"{at} is one table{more}", f"write {mend}")
        case "list_type":
            mend = "write a list of values: [ ... ]"
        case kind if kind in NO_TABLE and field.rpartition(".")[2].isdigit():
            mend = "write a table: { key = value, ... }"
        case kind if kind in NO_TABLE and isinstance(value, list):
            return UserError(f"{at} is a list{more}", f"write one table: [{field}], not [[{field}]]")
        case kind if kind in NO_TABLE:
            mend = f"write a table: [{field}]"
        case "too_long":
            mend = f"give at most {first['ctx']['max_length']}"
        case "too_short":
            mend = f"give at least {first['ctx']['min_length']}"
        case _:
            mend = first["msg"]
    return UserError(f"{at} = {_shown(value)}{more}", mend)


def _key(error: ErrorDetails, data: Any) -> str:  # noqa: ANN401
    """Return the key as the file has it: pydantic also counts the member of a union as a step towards it."""
    found = []
    for part in error["loc"]:
        try:
            data = data[part]
        except (LookupError, TypeError):
            continue
        found.append(part)
    if error["type"] == "missing":
        found.append(error["loc"][-1])
    return ".".join(map(str, found))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "..."

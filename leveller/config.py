"""Reading TOML configuration into pydantic models, with errors a person can act on."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from leveller.errors import UserError

LONGEST_VALUE = 80
"""Characters of a bad value that an error shows: it is to stay one line."""


class Section(BaseModel):
    """Base of every configuration section: immutable, and an unknown key is an error, not a surprise."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Model = TypeVar("Model", bound=BaseModel)


def load(path: Path, model: type[Model]) -> Model:
    """Read the TOML file ``path`` as a ``model``.

    Raises UserError naming the file and the line or field, for a file that is missing, unreadable,
    not TOML, or not what ``model`` asks for (the first problem only; the rest are counted).
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{path} does not exist", "give the path of a TOML file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read ({error})", "it must be a readable UTF-8 text file") from None
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers and nesting beyond Python's limits
        raise UserError(f"{path} is not TOML ({error})", "mend the syntax there") from None
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _user_error(path, error) from None


def _user_error(path: Path, error: ValidationError) -> UserError:
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or "the file as a whole"
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    match first["type"]:
        case "missing":
            return UserError(f"{path}: {field} is missing{more}", "add it")
        case "extra_forbidden":
            return UserError(f"{path}: {field} is not a known key{more}", "remove it or mend its spelling")
        case "value_error":
            return UserError(f"{path}: {field}{more}", str(first["ctx"]["error"]))
        case _:
            value = repr(first["input"])
            if len(value) > LONGEST_VALUE:
                value = value[:LONGEST_VALUE] + "..."
            return UserError(f"{path}: {field} = {value}{more}", first["msg"])

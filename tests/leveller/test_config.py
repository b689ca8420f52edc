from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field, Tag

from leveller.config import Section, kinds, load
from leveller.errors import UserError


class Inner(Section):
    port: int


class Outer(Section):
    name: str
    inner: Inner


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "it.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_good_file_is_read(tmp_path):
    assert load(write(tmp_path, 'name = "a"\n[inner]\nport = 3\n'), Outer) == Outer(
        name="a", inner=Inner(port=3)
    )


@pytest.mark.parametrize(
    ("text", "what", "mend"),
    [
        ("name = \n", "is not TOML (Invalid value (at line 1, column 8))", "mend the syntax"),
        ('name = "a"\n', "inner is missing", "add it"),
        ('name = "a"\n[inner]\nprot = 3\n', "inner.port is missing (and 1 more)", "add it"),
        ('name = "a"\nx = 1\n[inner]\nport = 3\n', "x is not a known key", "spelling"),
        (f"x = {'9' * 5000}\n", "is not TOML", "mend the syntax"),
        (f"x = {'[' * 5000}{']' * 5000}\n", "is not TOML", "mend the syntax"),
        ('name = "a"\n[inner]\nport = "three"\n', "inner.port = 'three'", "valid integer"),
    ],
)
def test_a_bad_file_names_the_field_and_the_mend(tmp_path, text, what, mend):
    path = write(tmp_path, text)
    with pytest.raises(UserError) as caught:
        load(path, Outer)
    assert caught.value.what.startswith(str(path))
    assert what in caught.value.what
    assert mend in caught.value.mend
    assert "\n" not in str(caught.value)


def test_a_huge_bad_value_is_cut(tmp_path):
    with pytest.raises(UserError) as caught:
        load(write(tmp_path, f'name = "a"\n[inner]\nport = "{"x" * 10_000}"\n'), Outer)
    assert len(caught.value.what) < 80 + 100 + len(str(tmp_path))


def test_a_missing_file_and_a_binary_one(tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        load(tmp_path / "none.toml", Outer)
    (tmp_path / "bin.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="cannot be read"):
        load(tmp_path / "bin.toml", Outer)


class Round(Section):
    kind: Literal["round"]
    size: Annotated[int, Field(ge=1)]


class Square(Section):
    kind: Literal["square"]
    sizes: Annotated[list[int], Field(min_length=2, max_length=3)] = Field(default=[1, 1])


class Shapes(Section):
    tall: bool = False
    either: str | int = ""
    shape: Annotated[
        Annotated[Round, Tag("round")] | Annotated[Square, Tag("square")],
        kinds("round", "square"),
    ]
    others: list[Inner] = Field(default=[])


ROUND = '[shape]\nkind = "round"\nsize = 1\n'


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('[shape]\nkind = "round"\nsize = 0\n', "shape.size = 0: Input should be greater than or equal to 1"),
        ('[shape]\nkind = "round"\n', "shape.size is missing: add it"),
        (ROUND + "siez = 3\n", "shape.siez is not a known key: remove it"),
        ('[shape]\nkind = "oval"\n', "shape.kind = 'oval': choose one of round, square"),
        ("[shape]\nsize = 1\n", "shape.kind is missing: choose one of round, square"),
        ("shape = 3\n", "shape = 3: write a table: [shape]"),
        ('[[shape]]\nkind = "round"\nsize = 1\n', "shape is a list: write one table: [shape], not [[shape]]"),
        (
            ROUND + "[others]\nport = 1\n",
            "others is one table: write a list of them: [[others]], not [others]",
        ),
        ("others = 3\n" + ROUND, "others = 3: write a list of values: [ ... ]"),
        ("others = [3]\n" + ROUND, "others.0 = 3: write a table: { key = value, ... }"),
        ('[shape]\nkind = "square"\nsizes = [2, true]\n', "shape.sizes: true is no value of it"),
        ('[shape]\nkind = "square"\nsizes = [1]\n', "shape.sizes = [1]: give at least 2"),
        ('[shape]\nkind = "square"\nsizes = [1, 2, 3, 4]\n', "shape.sizes = [1, 2, 3, 4]: give at most 3"),
        ('[shape]\nkind = "round"\nsize = true\n', "shape.size: true is no value of it: give a number"),
        ("either = false\n" + ROUND, "either: false is no value of it"),
    ],
)
def test_an_error_names_the_key_as_the_file_has_it_and_the_mend(tmp_path, text, error):
    with pytest.raises(UserError) as caught:
        load(write(tmp_path, text), Shapes)
    assert str(caught.value).startswith(f"{tmp_path}/it.toml: {error}")


def test_true_where_it_is_asked_for_and_a_byte_order_mark(tmp_path):
    assert load(write(tmp_path, "\ufefftall = true\n" + ROUND), Shapes).tall is True

from pathlib import Path

import pytest

from leveller.config import Section, load
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

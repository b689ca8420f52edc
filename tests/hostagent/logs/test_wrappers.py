import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.logs.lines import LineSplitter
from hostagent.logs.wrappers import unwrap


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("2026-01-31T12:00:00.669794202Z stdout F iter 1", "iter 1"),
        ("2026-01-31T12:00:00.669794202+01:00 stderr P iter 1", "iter 1"),
        ("2026-01-31T12:00:00Z stdout F ", ""),
        ('{"log":"iter 1\\n","stream":"stdout","time":"2026-01-31T12:00:00Z"}', "iter 1\n"),
        ('{"log":"iter 1', '{"log":"iter 1'),
        ('{"log":"a"}{"log":"b"}', '{"log":"a"}{"log":"b"}'),
        ('{"log":"' + "[" * 60_000, '{"log":"' + "[" * 60_000),
        ("2026-01-31 12:00:00 stdout F iter 1", "2026-01-31 12:00:00 stdout F iter 1"),
        ("iter 1", "iter 1"),
    ],
)
def test_unwrap(text, inside):
    assert unwrap(text) == inside


def test_a_wrapped_progress_bar_is_several_lines():
    line = json.dumps({"log": "\x1b[31ma\r b\n", "stream": "stderr"}, separators=(",", ":"))
    assert LineSplitter().feed(line.encode() + b"\n") == ["a", " b"]


@given(st.text(max_size=200) | st.text(max_size=50).map(lambda text: '{"log":"' + text))
def test_any_text(text):
    assert isinstance(unwrap(text), str)

import contextlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostagent.logs.custom import BUDGET_S, MAX_LINE, custom
from hostagent.logs.format import Mark, RejectedLineError


@pytest.mark.parametrize(
    ("pattern", "line", "mark"),
    [
        (r"done (?P<iteration>\d+)", "done 7", Mark(7)),
        (r"^it=(?P<index>\S+)", "it=7", Mark(8)),
        (
            r"(?P<iteration>\d+) of (?P<total>\d+) in (?P<ms>\S+) ms",
            "7 of 9 in 20.5 ms",
            Mark(7, 20_500_000, 9),
        ),
        (r"(?P<iteration>\d+)( took (?P<s>[\d.]+)s)?$", "7 took 2.5s", Mark(7, 2_500_000_000)),
        (r"(?P<iteration>\d+)( took (?P<s>[\d.]+)s)?$", "7", Mark(7)),
        (r"(?P<epoch>\d+):(?P<iteration>\d+)/(?P<total>\d+)", "2:7/9", Mark(7, None, 9, 2)),
        (r"done (?P<iteration>\d+)", "nothing", None),
        (r"done( (?P<iteration>\d+))?", "done", None),
    ],
)
def test_what_a_line_says(pattern, line, mark):
    assert custom("mine", pattern).parse(line) == mark


def test_its_epochs_go_on():
    see = custom("mine", r"(?P<epoch>\d+):(?P<iteration>\d+)/(?P<total>\d+)").open()
    assert [see(line).completed for line in ("0:9/9", "1:1/9")] == [9, 10]


@pytest.mark.parametrize("text", ["-5", "nan", str(10**18)])
def test_absurd_lines(text):
    with pytest.raises(RejectedLineError):
        custom("mine", r"done (?P<iteration>\S+)").parse(f"done {text}")


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "no regular expression"),
        (r"[[a](?P<iteration>\d+)", "nested set"),
        (r"\d+", "one group"),
        (r"(?P<iteration>\d+)(?P<index>\d+)", "one group"),
        (r"(?P<iteration>\d+)(?P<loss>.)", "group loss is not known"),
        (r"(?P<iteration>\d+)" + "a" * 512, "more than 512"),
        (r"((a+)+)b(?P<iteration>\d+)", "inside a repeat"),
        (r"(\s*\S*)*(?P<iteration>\d+)", "inside a repeat"),
        (r"((?:a|b)*c?){9,}(?P<iteration>\d+)", "inside a repeat"),
        (r"(a|aa)+$(?P<iteration>\d+)", "repeat or a choice inside"),
        (r"(a?a?)*b(?P<iteration>\d+)", "repeat or a choice inside"),
        (r"(?=(a*)*)(?P<iteration>\d+)", "inside a repeat"),
        (r"(.)\1(?P<iteration>\d+)", "refers back"),
        (r".*.*.*x(?P<iteration>\d+)", "takes too long"),
        (r"\d+\d+\d+\d+x(?P<iteration>\d+)", "takes too long"),
    ],
)
def test_expressions_that_are_refused(pattern, problem):
    with pytest.raises(ValueError, match=problem):
        custom("mine", pattern)


def test_long_lines_are_not_given_to_it():
    known = custom("mine", r"done (?P<iteration>\d+)")
    assert known.parse("x" * MAX_LINE + "done 7") is None


@settings(deadline=None)
@given(st.text(alphabet="ab()*+?|[]{}1,\\d.^$<iteration>P:=!", max_size=40))
def test_any_expression_is_refused_or_is_quick(pattern):
    """In CPU time of this thread, which a busy machine does not lengthen, and with room."""
    try:
        known = custom("mine", pattern + r"(?P<iteration>\d+)")
    except ValueError:
        return
    for line in ("a" * MAX_LINE, "ab1" * 300, "1" * MAX_LINE):
        begun = time.thread_time()
        with contextlib.suppress(RejectedLineError):
            known.parse(line)
        assert time.thread_time() - begun < 100 * BUDGET_S

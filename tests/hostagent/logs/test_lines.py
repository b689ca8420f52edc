from hypothesis import given
from hypothesis import strategies as st

from hostagent.logs.lines import MAX_LINE, LineSplitter


def test_line_ends_and_partial_lines():
    splitter = LineSplitter()
    assert splitter.feed(b"one\ntwo\r\nthr") == ["one", "two"]
    assert splitter.feed(b"ee\rfour\r\n\n") == ["three", "four"]
    assert splitter.feed(b"five") == []
    assert splitter.feed(b"\n") == ["five"]


def test_colours_titles_and_nuls_go():
    splitter = LineSplitter()
    data = b"\x1b[32m[titan]\x1b[0m \x1b]0;title\x07step:\x1b[1;31m 5\x1b[K\n\0\0\0next\n"
    assert splitter.feed(data) == ["[titan] step: 5", "next"]


def test_sequence_cut_in_two_by_a_read_goes_too():
    splitter = LineSplitter()
    assert splitter.feed(b"a\x1b[3") == []
    assert splitter.feed(b"2mb\n") == ["ab"]


def test_broken_utf8_spoils_only_itself():
    splitter = LineSplitter()
    assert splitter.feed(b"caf\xc3\xa9 \xff\xfe iter\n") == ["café \ufffd\ufffd iter"]
    assert splitter.feed(b"caf\xc3") == []
    assert splitter.feed(b"\xa9\n") == ["café"]


def test_huge_line_is_dropped_and_counted_once_in_bounded_memory():
    splitter = LineSplitter()
    for _ in range(100):
        assert splitter.feed(b"x" * 50_000) == []
        assert len(splitter._partial) <= MAX_LINE
    assert splitter.feed(b"tail\nnext\n") == ["next"]
    assert splitter.too_long == 1


def test_huge_line_within_one_read():
    splitter = LineSplitter()
    assert splitter.feed(b"a\n" + b"x" * (MAX_LINE + 1) + b"\nb\n") == ["a", "b"]
    assert splitter.too_long == 1
    assert splitter.feed(b"y" * MAX_LINE + b"\n") == ["y" * MAX_LINE]


def test_reset_forgets_the_unfinished_line():
    splitter = LineSplitter()
    splitter.feed(b"half of a li")
    splitter.reset()
    assert splitter.feed(b"whole\n") == ["whole"]


@given(st.lists(st.binary(max_size=200)), st.binary(max_size=50))
def test_cutting_does_not_matter(chunks, end):
    whole = b"".join(chunks) + end
    split, at_once = LineSplitter(), LineSplitter()
    assert [line for chunk in (*chunks, end) for line in split.feed(chunk)] == at_once.feed(whole)


@given(st.binary())
def test_lines_are_clean(data):
    for line in LineSplitter().feed(data + b"\n"):
        assert line
        assert not set(line) & set("\r\n\0")

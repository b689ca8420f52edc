import pytest

from leveller.text import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [("job 'é'", "job 'é'"), ("a\nb", "a\\nb"), ("\x1b[2J", "\\x1b[2J"), ("\u202e", "\\u202e"), ("", "")],
)
def test_control_characters_are_escaped_and_the_rest_stays(text, shown):
    assert printable(text) == shown

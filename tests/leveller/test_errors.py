from leveller.errors import UserError


def test_an_error_says_what_and_how_to_mend_it_in_one_line():
    error = UserError("x.toml: port = 99999", "use 1 to 65535")
    assert (error.what, error.mend) == ("x.toml: port = 99999", "use 1 to 65535")
    assert str(error) == "x.toml: port = 99999: use 1 to 65535"


def test_what_a_stranger_wrote_cannot_break_the_line_or_the_terminal():
    text = str(UserError("job 'a\n\x1b[2Jb'", "rename it"))
    assert "\n" not in text
    assert "\x1b" not in text

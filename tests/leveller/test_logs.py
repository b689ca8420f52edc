"""Log lines whose texts come from others."""

import structlog

from leveller.logs import escape_controls


def test_what_a_peer_says_cannot_touch_the_terminal_or_forge_a_line():
    event = {
        "event": "refused",
        "reason": "\x1b[2J\x9b1m\u202e\nlevel=info",
        "port": 3,
        "on": True,
        "group": None,
    }
    escaped = escape_controls(None, "info", dict(event))
    assert escaped["reason"] == "\\x1b[2J\\x9b1m\\u202e\\nlevel=info"
    assert {**escaped, "reason": None} == {**event, "reason": None}
    assert structlog.processors.LogfmtRenderer()(None, "info", escaped).isprintable()


def test_an_error_as_a_value_is_escaped_too():
    assert escape_controls(None, "info", {"error": OSError("a\x07b")}) == {"error": "a\\x07b"}
    fine = {"reason": "sauber, 训练 ok", "addresses": ["10.0.0.1"]}
    assert escape_controls(None, "info", dict(fine)) == fine

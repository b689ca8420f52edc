import io
import json
import re
import socket
import threading

import pytest
from rich.console import Console

from controlplane import top
from controlplane.status import json_page, serve
from leveller.errors import UserError


def job(name, rate, **more):
    values = {"id": name, "R": rate, "iterations": 7, "state": "ranked", "reason": "lowest R", "hosts": []}
    return {**values, **more}


def status(jobs, groups=()):
    return {
        "controller": {
            "name": "lab",
            "policy": "leveller",
            "scope": "port",
            "levels": 7,
            "tau_s": 0.25,
            "ranked_s_ago": 0.04,
        },
        "jobs": jobs,
        "flows": [{}, {}],
        "groups": list(groups),
        "switches": [
            {
                "name": "s1",
                "connected": True,
                "primary": True,
                "entries": {"a": 2, "b": 3},
                "refused": {},
                "error": None,
            },
            {
                "name": "s2",
                "connected": False,
                "primary": False,
                "entries": {},
                "refused": {"a": 4},
                "error": "gone",
            },
        ],
        "agents": [{}],
    }


def lines(shown, width=120):
    console = Console(file=io.StringIO(), width=width)
    console.print(shown)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_what_the_log_does_not_tell_yet_is_shown_as_estimated():
    shown = lines(top.render(status([job("a", 0.5, estimated=37, estimated_error=2), job("b", 0.6)]), 40))
    assert [line.split()[2] for line in shown[2:4]] == ["7+37±2", "7"]


def test_the_worst_off_comes_first_with_its_levels_and_its_reason():
    groups = [
        {"job": "slow", "levels": {"s1:1": 6, "s2:1": 4}},
        {"job": "slow", "levels": {"s1:2": 5}},
        {"job": "fast", "levels": {"s1:1": 0}},
    ]
    jobs = [job("new", None), job("fast", 0.9), job("slow", 0.25, format="megatron", state="profiling")]
    shown = lines(top.render(status(jobs, groups), 40))
    assert shown[0] == (
        "lab: leveller over port, 7 levels, ranked 0.0 s ago; 3 jobs, 2 flows in 3 groups, 1 agents"
    )
    assert [line.split()[:6] for line in shown[2:5]] == [
        ["slow", "0.250", "7", "4-6", "profiling", "megatron"],
        ["fast", "0.900", "7", "0", "ranked", "-"],
        ["new", "-", "7", "-", "ranked", "-"],
    ]
    assert shown[2].endswith("lowest R")
    assert [line.split() for line in shown[6:]] == [
        ["s1", "primary", "5", "0"],
        ["s2", "not", "connected", "0", "4", "gone"],
    ]


def test_what_does_not_fit_the_screen_is_counted():
    shown = lines(top.render(status([job(f"j{n:03}", n / 100) for n in range(100)]), 30))
    assert len(shown) <= 30
    assert sum(line.startswith("j") and line[1:4].isdigit() for line in shown) == 20
    assert "and 80 more" in shown


def test_a_job_id_cannot_write_to_the_terminal():
    shown = "\n".join(lines(top.render(status([job("a\x1b[2Jb\nc", 0.5)]), 40)))
    assert "a\\x1b[2Jb\\nc" in shown
    assert "\x1b" not in shown


async def test_fetched_over_http():
    import asyncio

    given = status([job("one", 0.5)])
    async with serve("127.0.0.1:0", {"/status": json_page(lambda: given)}) as address:
        assert await asyncio.to_thread(top.fetch, address) == json.loads(json.dumps(given))


def test_no_controller_there():
    with pytest.raises(UserError, match=r"no controller.s status at 127\.0\.0\.1:1 "):
        top.fetch("127.0.0.1:1")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"\x00\x00\x18\x04", "it does not speak HTTP"),  # as gRPC's servers begin
        (b"HTTP/1.0 200 OK\r\n\r\n[1]", "what answers there is something else"),
        (b'HTTP/1.0 200 OK\r\n\r\n{"status": "up"}', "what answers there is something else"),
    ],
)
def test_what_answers_is_no_controller(answer, reason):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve_once():
            peer, _ = server.accept()
            with peer:
                peer.recv(4096)
                peer.sendall(answer)

        thread = threading.Thread(target=serve_once)
        thread.start()
        with pytest.raises(UserError, match=re.escape(reason)) as caught:
            top.fetch(f"127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    assert caught.value.mend.startswith("give --http")


def test_the_latest_of_whom_something_was_refused_are_shown():
    refused = [
        {"who": f"h{n}", "count": n, "reason": f"it claims\x1b 10.0.{n}.1", "s_ago": 9.0 - n}
        for n in range(5)
    ]
    shown = lines(top.render({**status([]), "refused": refused}, 40))
    at = next(number for number, line in enumerate(shown) if line.startswith("refused of"))
    assert [line.split(maxsplit=3) for line in shown[at + 1 : at + 4]] == [
        ["h4", "4", "5", r"it claims\x1b 10.0.4.1"],
        ["h3", "3", "6", r"it claims\x1b 10.0.3.1"],
        ["h2", "2", "7", r"it claims\x1b 10.0.2.1"],
    ]
    assert not any("refused of" in line for line in lines(top.render(status([]), 40)))


def test_a_job_whose_report_is_not_used_is_flagged():
    jobs = [job("a", 0.5, flagged="it told of 10"), job("b", 0.6, flagged=None)]
    states = {line.split()[0]: line.split()[4] for line in lines(top.render(status(jobs), 40))[2:4]}
    assert states == {"a": "flagged", "b": "ranked"}

import os
import resource
from pathlib import Path

import pytest

from leveller.errors import UserError
from simulator.store import Store


def test_a_file_of_another_scenario(path, run_sweep, tmp_path):
    out = tmp_path / "out.jsonl"
    run_sweep(out)
    path.write_text(path.read_text().replace("comm_s = 2", "comm_s = 3"))
    with pytest.raises(UserError, match=r"out.jsonl is not a sweep of this scenario .* give --out another"):
        run_sweep(out)
    (tmp_path / "text").write_text("my notes\n")
    with pytest.raises(UserError, match="is not a sweep of this scenario"):
        run_sweep(tmp_path / "text")
    assert (tmp_path / "text").read_text() == "my notes\n"


def test_a_file_in_use(run_sweep, tmp_path):
    out = tmp_path / "out.jsonl"
    store = Store(out, "x")
    with pytest.raises(UserError, match="is in use by another sweep"):
        run_sweep(out)
    store.close([])
    with pytest.raises(UserError, match="cannot be written"):
        Store(tmp_path, "x")


def test_a_disk_that_fills_up(run_sweep, tmp_path):
    out = tmp_path / "out.jsonl"
    whole = run_sweep(tmp_path / "whole.jsonl")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (900, hard))
    try:
        with pytest.raises(
            UserError, match=r"out.jsonl cannot be written \(File too large\): make room there"
        ):
            run_sweep(out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert out.stat().st_size == 900
    assert not out.read_bytes().endswith(b"\n")
    assert run_sweep(out) == whole
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_a_header_that_was_cut_short(run_sweep, tmp_path):
    whole = run_sweep(tmp_path / "whole.jsonl")
    text = (tmp_path / "whole.jsonl").read_bytes()
    (tmp_path / "out.jsonl").write_bytes(text[:10])
    assert run_sweep(tmp_path / "out.jsonl") == whole
    assert (tmp_path / "out.jsonl").read_bytes() == text


def test_runs_that_cannot_be_put_in_order_stay(run_sweep, tmp_path):
    out = tmp_path / "out.jsonl"
    (tmp_path / "out.jsonl.new").mkdir()
    with pytest.raises(UserError, match=r"out.jsonl cannot be written \(Is a directory\)"):
        run_sweep(out)
    assert len(out.read_text().splitlines()) == 1 + 8


def test_what_is_no_file_of_a_sweep_is_left_alone(run_sweep, tmp_path):
    for path in (tmp_path / "pipe", Path("/dev/full"), Path("/dev/zero")):
        if path.parent == tmp_path:
            os.mkfifo(path)
        if path.exists():
            with pytest.raises(UserError, match=r"is no regular file\): give --out another"):
                run_sweep(path)
    notes = tmp_path / "notes"
    notes.write_text("without a line's end")
    with pytest.raises(UserError, match="is not a sweep of this scenario"):
        run_sweep(notes)
    assert notes.read_text() == "without a line's end"
    out = tmp_path / "out.jsonl"
    run_sweep(out)
    lines = out.read_text().splitlines(keepends=True)
    for broken in ("\0\0\n", "[]\n", "{}\n"):
        out.write_text("".join([*lines[:3], broken, *lines[3:]]))
        with pytest.raises(UserError, match=r"out.jsonl: line 4 is no run: remove that line"):
            run_sweep(out)

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

import pytest

from leveller.errors import UserError
from simulator.scenario import read


def write(tmp_path, text):
    path = tmp_path / "x.toml"
    path.write_text(text)
    return path


def test_lingjun_needs_its_columns(tmp_path):
    (tmp_path / "topo.csv").write_text("host,rack\na,b\n")
    text = 'horizon_s = 1\n[fabric]\nkind = "lingjun"\ntopo = "topo.csv"\n[workload]\njobs = 1\n'
    with pytest.raises(
        UserError, match=r"fabric.topo = .*topo.csv lacks the column ip: give Lingjun's topo.csv"
    ):
        read(write(tmp_path, text))


def test_lingjun_by_psw_and_asw(tmp_path):
    (tmp_path / "topo.csv").write_text("ip,DSW,PSW,ASW\na,G,P1,S1\nb,G,P1,S1\nc,G,P1,S2\nd,G,P2,S1\n")
    text = 'horizon_s = 1\n[fabric]\nkind = "lingjun"\ntopo = "topo.csv"\n[workload]\njobs = 1\n'
    _, fabric = read(write(tmp_path, text))
    places = {name: (host.pod, host.leaf) for name, host in fabric.hosts.items()}
    assert places == {"a": (0, 0), "b": (0, 0), "c": (0, 1), "d": (1, 2)}


def test_rows_of_lingjun_that_cannot_be_used_are_told(tmp_path, caplog):
    (tmp_path / "topo.csv").write_text(
        "\ufeffip,DSW,PSW,ASW\na,G,P1,S1\na,G,P1,S2\nb,G\n,G,P1,S1\n c ,G,P1,S2\n", encoding="utf-8"
    )
    text = 'horizon_s = 1\n[fabric]\nkind = "lingjun"\ntopo = "topo.csv"\n[workload]\njobs = 1\ngpus = [8]\n'
    _, fabric = read(write(tmp_path, text))
    assert {name: host.leaf for name, host in fabric.hosts.items()} == {"a": 0, "c": 1}
    assert (
        "topo.csv: 2 of 5 rows used; skipped: 1 repeat an ip (first: line 3), 1 cut short (first: line 4), "
        "1 without ip, PSW or ASW (first: line 5)"
    ) in caplog.text
    (tmp_path / "none.csv").write_text("ip,DSW,PSW,ASW\n,G,P1,S1\n")
    with pytest.raises(UserError, match=r"x.toml: fabric.topo = .*none.csv has no host: give Lingjun's"):
        read(write(tmp_path, text.replace("topo.csv", "none.csv")))

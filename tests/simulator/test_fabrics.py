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
    with pytest.raises(UserError, match="lacks the columns ip, PSW and ASW"):
        read(write(tmp_path, text))


def test_lingjun_by_psw_and_asw(tmp_path):
    (tmp_path / "topo.csv").write_text("ip,DSW,PSW,ASW\na,G,P1,S1\nb,G,P1,S1\nc,G,P1,S2\nd,G,P2,S1\n")
    text = 'horizon_s = 1\n[fabric]\nkind = "lingjun"\ntopo = "topo.csv"\n[workload]\njobs = 1\n'
    _, fabric = read(write(tmp_path, text))
    places = {name: (host.pod, host.leaf) for name, host in fabric.hosts.items()}
    assert places == {"a": (0, 0), "b": (0, 0), "c": (0, 1), "d": (1, 2)}

import pytest

from controlplane.model import Link
from simulator.fabric import Sizes, clos, parallel

SIZES = Sizes(
    aggs=2, cores_per_agg=2, gpus_per_host=8, nics_per_host=1, nic_gbps=400, uplink_gbps=200, core_gbps=100
)
PODS = [[["h1", "h2"], ["h3", "h4"]], [["h5", "h6"], ["h7", "h8"]]]


def names(fabric, path):
    return [str(fabric.links[link]) for link in path]


def test_parallel_links():
    fabric = parallel(2, 8)
    assert fabric.links == [Link("S1", 1), Link("S1", 2)]
    assert fabric.capacity.tolist() == [1e9, 1e9]


def test_leaf_spine_paths():
    fabric = clos(PODS[:1], SIZES, agg_name="spine")
    h1, h2, h3 = (fabric.hosts[name] for name in ("h1", "h2", "h3"))
    assert fabric.choices(h1, h2) == 1
    assert names(fabric, fabric.route(h1, h2, 0, 0)) == ["h1:1", "leaf1:2"]
    assert fabric.choices(h1, h3) == 2
    assert names(fabric, fabric.route(h1, h3, 0, 0)) == ["h1:1", "leaf1:3", "spine1:2", "leaf2:1"]
    assert names(fabric, fabric.route(h1, h3, 0, 1)) == ["h1:1", "leaf1:4", "spine2:2", "leaf2:1"]
    assert fabric.capacity[list(fabric.route(h1, h3, 0, 0))].tolist() == [5e10, 2.5e10, 2.5e10, 5e10]


def test_three_layers_have_every_path_once():
    fabric = clos(PODS, SIZES)
    h1, h7 = fabric.hosts["h1"], fabric.hosts["h7"]
    assert fabric.choices(h1, h7) == 4
    paths = [names(fabric, fabric.route(h1, h7, 0, choice)) for choice in range(4)]
    assert paths == [
        ["h1:1", "leaf1:3", "agg1:3", "core1:2", "agg3:2", "leaf4:1"],
        ["h1:1", "leaf1:4", "agg2:3", "core3:2", "agg4:2", "leaf4:1"],
        ["h1:1", "leaf1:3", "agg1:4", "core2:2", "agg3:2", "leaf4:1"],
        ["h1:1", "leaf1:4", "agg2:4", "core4:2", "agg4:2", "leaf4:1"],
    ]


def test_no_link_is_there_twice():
    fabric = clos(PODS, SIZES)
    assert len(set(fabric.links)) == len(fabric.links)
    assert len(fabric.rates) == len(fabric.links)


@pytest.mark.parametrize("nic", [0, 1])
def test_each_nic_has_its_own_links(nic):
    sizes = Sizes(2, 0, 8, 2, 400, 200, 100)
    fabric = clos(PODS[:1], sizes, agg_name="spine")
    path = names(fabric, fabric.route(fabric.hosts["h1"], fabric.hosts["h2"], nic, 0))
    assert path == [f"h1:{nic + 1}", f"leaf1:{nic + 3}"]

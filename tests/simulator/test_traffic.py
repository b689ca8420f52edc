import pytest

from simulator.fabric import Sizes, clos, parallel
from simulator.traffic import (
    Collective,
    Placement,
    bytes_per_pair,
    ecmp,
    flows_between,
    full_rate_bytes_per_pair,
    pairs,
    place,
)

FABRIC = clos(
    [[["h1", "h2", "h3"], ["h4", "h5", "h6"]]],
    Sizes(4, 0, 2, 1, 100, 100, 100),
    agg_name="spine",
)
HOSTS = list(FABRIC.hosts.values())
FREE = dict.fromkeys(FABRIC.hosts, 2)


@pytest.mark.parametrize(
    ("collective", "expected"),
    [
        (Collective.ALL_REDUCE, [(0, 1), (1, 2), (2, 0)]),
        (Collective.ALL_GATHER, [(0, 1), (1, 2), (2, 0)]),
        (Collective.PIPELINE, [(0, 1), (1, 2)]),
        (Collective.ALL_TO_ALL, [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]),
    ],
)
def test_who_sends_to_whom(collective, expected):
    assert list(pairs(collective, 3)) == expected
    assert list(pairs(collective, 1)) == []


def test_how_much():
    # A ring all-reduce of n hosts moves 2 (n - 1) / n of the data per host; an all-to-all (n - 1) / n.
    assert bytes_per_pair(Collective.ALL_REDUCE, 4, 100) == 150
    assert bytes_per_pair(Collective.ALL_GATHER, 4, 100) == 75
    assert bytes_per_pair(Collective.ALL_TO_ALL, 4, 100) == 25
    assert bytes_per_pair(Collective.PIPELINE, 4, 100) == 100


def test_communication_seconds_fill_the_nic():
    assert full_rate_bytes_per_pair(Collective.ALL_REDUCE, 4, 2, 10) == 20
    assert full_rate_bytes_per_pair(Collective.ALL_TO_ALL, 4, 3, 10) == 10


def test_flows_of_a_ring_cross_the_fabric():
    flows = flows_between(HOSTS[2:4], Collective.ALL_REDUCE, 7.0, ecmp(FABRIC, [1]))
    assert [(len(row.path), row.volume, row.width) for row in flows] == [(4, 7.0, 1), (4, 7.0, 1)]
    assert FABRIC.links[flows[0].path[0]].switch == "h3"
    assert FABRIC.links[flows[1].path[0]].switch == "h4"


def test_ecmp_is_random_by_seed_and_fixed_per_connection():
    one, other = HOSTS[0], HOSTS[5]
    choose = ecmp(FABRIC, [1])
    assert choose(one, other, 0) == choose(one, other, 0)
    assert len({ecmp(FABRIC, [seed])(one, other, 0) for seed in range(40)}) == 4


def test_packed_takes_the_leaf_that_fits_best():
    free = FREE | {"h1": 0}
    assert place(FABRIC, free, 4, Placement.PACKED, [0]) == {"h2": 2, "h3": 2}
    assert place(FABRIC, free, 5, Placement.PACKED, [0]) == {"h4": 2, "h5": 2, "h6": 1}
    assert place(FABRIC, free, 7, Placement.PACKED, [0]) == {"h4": 2, "h5": 2, "h6": 2, "h2": 1}


def test_links_alone_have_room_for_everybody():
    assert place(parallel(1, 100), {}, 64, Placement.PACKED, [0]) == {}


def test_no_room():
    assert place(FABRIC, FREE, 13, Placement.PACKED, [0]) is None


def test_random_takes_any_and_as_much_as_asked():
    found = [place(FABRIC, FREE, 5, Placement.RANDOM, [seed]) for seed in range(20)]
    assert all(sum(taken.values()) == 5 and max(taken.values()) <= 2 for taken in found)
    assert len({tuple(taken) for taken in found}) > 10

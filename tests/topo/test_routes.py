from topo import fabric
from topo.fabric import ROUTER_MAC
from topo.routes import NextHop, Route, routes


def test_pair_sends_the_other_side_through_the_trunk():
    pair = fabric.pair(1, 100, 1000)
    assert routes(pair, pair.switches["s1"]) == [
        Route("10.1.0.1/32", (NextHop(2, "02:00:00:00:01:01"),)),
        Route("fd00:1::1/128", (NextHop(2, "02:00:00:00:01:01"),)),
        Route("10.2.0.0/24", (NextHop(1, ROUTER_MAC),)),
        Route("fd00:2::/64", (NextHop(1, ROUTER_MAC),)),
    ]


def test_leaf_spreads_over_all_spines_and_spine_knows_the_leaf():
    made = fabric.leaf_spine(3, 2, 3, 40, 400)
    by_prefix = {route.prefix: route for route in routes(made, made.switches["leaf1"])}
    far = by_prefix[str(made.switches["leaf3"].subnet4)]
    assert [hop.port for hop in far.next_hops] == [1, 2]
    spine = {route.prefix: route for route in routes(made, made.switches["spine1"])}
    for leaf in ("leaf1", "leaf2", "leaf3"):
        (hop,) = spine[str(made.switches[leaf].subnet4)].next_hops
        assert made.switches["spine1"].ports[hop.port].peer == leaf
    assert len(spine) == 6  # three leaves, IPv4 and IPv6, and no host of its own

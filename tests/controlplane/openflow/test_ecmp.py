from controlplane.openflow.ecmp import EcmpGroups
from controlplane.southbound.tables import Call


def test_ecmp_groups_are_written_whole() -> None:
    groups = EcmpGroups()
    assert groups.set((1, 1), Call("set_nhop", (3, 0xB))) == (1, None)
    assert groups.set((1, 0), Call("set_nhop", (2, 0xA))) == (1, None)
    assert groups.buckets(1) == [(2, 0xA), (3, 0xB)]
    assert groups.rows() == {
        ("ecmp", (1, 0)): Call("set_nhop", (2, 0xA)),
        ("ecmp", (1, 1)): Call("set_nhop", (3, 0xB)),
    }
    assert groups.set((1, 0), None) == (1, Call("set_nhop", (2, 0xA)))
    assert groups.buckets(1) == [(3, 0xB)]

import re

from topo import htb

DSCPS = (8, 10, 12, 14, 16, 18, 20, 22)


def test_queues_are_strict_and_share_one_rate():
    lines = htb.commands("s1-eth1", 100_000_000, 8, 500, DSCPS)
    leaves = [line for line in lines if "parent 1:1 classid" in line]
    assert [re.search(r"classid (\S+) .* prio (\d)", line).groups() for line in leaves] == [
        (f"1:{0x10 + queue:x}", str(7 - queue)) for queue in range(8)
    ]
    assert all("ceil 100000000bit" in line and "rate 1000bit" in line for line in leaves)
    assert sum("pfifo limit 500" in line for line in lines) == 8


def test_dscp_chooses_the_queue_and_all_else_is_control():
    lines = htb.commands("s1-eth1", 100_000_000, 8, 500, DSCPS)
    assert "root handle 1: htb default 17" in lines[0]
    filters = [line for line in lines if line.startswith("filter") and "protocol ip " in line]
    assert [re.search(r"dsfield (\S+) 0xfc flowid (\S+)", line).groups() for line in filters] == [
        (hex(dscp << 2), f"1:{0x10 + queue:x}") for queue, dscp in enumerate(DSCPS[:7])
    ]
    assert sum("protocol ipv6" in line for line in lines) == 7


def test_splice_passes_packets_both_ways():
    assert htb.splice("a", "b") == [
        "qdisc add dev a clsact",
        "filter add dev a ingress u32 match u32 0 0 action mirred egress mirror dev b",
        "qdisc add dev b clsact",
        "filter add dev b ingress u32 match u32 0 0 action mirred egress mirror dev a",
    ]

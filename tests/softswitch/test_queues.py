"""The kernel's queues: set up, read, strict, and removed without a trace."""

import socket
import threading
import time
from collections import Counter

import pytest

from leveller.errors import UserError
from softswitch import queues
from softswitch.queues import Backlog, PortQueues, classid
from softswitch.sender import Sender


def qdiscs(netlink, interface):
    index = netlink.link_lookup(ifname=interface)[0]
    return sorted(item.get_attr("TCA_KIND") for item in netlink.get_qdiscs(index))


def received(netlink, interface):
    stats = netlink.get_links(ifname=interface)[0].get_attr("IFLA_STATS64")
    return stats["rx_packets"]


def sender(interface, queue, depth=64, count=8, mtu=1500):
    lost = Counter()
    return Sender(
        interface, classid(queue, count), mtu, depth, lost, lambda reason: lost.update([reason])
    ), lost


def test_they_come_and_go(veth, namespace):
    veth("a", "b")
    before = qdiscs(namespace, "a")
    queues.install(namespace, PortQueues("a", 8, 10**8, 64))
    assert qdiscs(namespace, "a") == ["htb"] + ["pfifo"] * 8
    queues.install(namespace, PortQueues("a", 2, None, 64))  # what a killed switch has left is replaced
    assert qdiscs(namespace, "a") == ["htb"] + ["pfifo"] * 2
    queues.remove(namespace, "a")
    assert qdiscs(namespace, "a") == before
    queues.remove(namespace, "a")
    queues.remove(namespace, "gone")


def test_the_largest_frames_of_all_fit_the_kernels_clock(namespace):
    queues.install(namespace, PortQueues("lo", 8, None, 64))  # its MTU is 65536
    assert qdiscs(namespace, "lo") == ["htb"] + ["pfifo"] * 8


def test_somebody_elses_qdisc_is_left_alone(veth, namespace):
    veth("a", "b")
    index = namespace.link_lookup(ifname="a")[0]
    namespace.tc("add", "pfifo", index, 0x70000, limit=5)
    with pytest.raises(UserError, match="pfifo"):
        queues.install(namespace, PortQueues("a", 8, None, 64))
    queues.remove(namespace, "a")
    assert qdiscs(namespace, "a") == ["pfifo"]


def test_a_queue_holds_its_depth_and_tells_it(veth, namespace):
    veth("a", "b")
    queues.install(namespace, PortQueues("a", 8, 8000, 20))  # 1,000 bytes/s: nothing drains meanwhile
    out, lost = sender("a", 3, depth=20)
    for _ in range(60):
        out.put(b"\x02" * 12 + b"\x12\x34" + bytes(1400))
    out.flush()
    backlog = Backlog()
    index = socket.if_nametoindex("a")
    assert backlog.packets(index, classid(3, 8)) == 20
    assert backlog.packets(index, classid(2, 8)) == 0
    assert backlog.packets(index, 0x1_0F00) == 0
    assert out.has_unsent()
    # HTB lets one burst through at once; what is then neither sent nor waiting was counted as lost.
    assert lost["queue full"] == 60 - 20 - received(namespace, "b")
    assert 0 < received(namespace, "b") < 10
    backlog.close()
    out.close()


HEAD = b"\x02" * 12
SIZE = 1500


def packet(ethertype):
    return HEAD + ethertype + bytes(SIZE - 14)


def saturate(out, frame, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(8):
            out.put(frame)
        out.flush()
        time.sleep(0.0005)


@pytest.mark.parametrize("rate", [5_000_000, 20_000_000])
def test_a_port_keeps_its_rate(veth, namespace, rate):
    veth("a", "b")
    queues.install(namespace, PortQueues("a", 8, rate, 50))
    out, _ = sender("a", 0, depth=50)
    saturate(out, packet(b"\x11\x11"), 0.3)
    for _ in range(5):
        before, start = received(namespace, "b"), time.monotonic()
        saturate(out, packet(b"\x11\x11"), 1.0)
        share = (received(namespace, "b") - before) * SIZE * 8 / (time.monotonic() - start) / rate
        assert share < 1.05
        if share > 0.95:
            break  # else the machine had no time for the sender
    else:
        pytest.fail(f"the port sends {share:.0%} of its rate")
    out.close()


class Competition:
    """A flood in a lower queue, 80 % of the port in a higher one, and who hears what of them."""

    def __init__(self, rate, low, high, seconds=2.0):
        self.interval = 8 * SIZE / (0.8 * rate)
        self.arrived = Counter()
        bulk, self.bulk_lost = sender("a", low, depth=50)
        urgent, self.urgent_lost = sender("a", high, depth=50)
        listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        listener.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
        listener.bind(("b", 0))
        listener.settimeout(0.5)
        ear = threading.Thread(target=self._listen, args=(listener,))
        ear.start()
        flood = threading.Thread(target=saturate, args=(bulk, packet(b"\x11\x11"), seconds))
        flood.start()
        self.sent = self._offer(urgent, seconds)
        flood.join()
        ear.join()
        for item in (listener, bulk, urgent):
            item.close()

    def _offer(self, urgent, seconds):
        sent = 0
        now = due = time.monotonic()
        end = now + seconds
        while now < end:
            due = max(due, now - 20 * self.interval)  # a pause of the machine makes no burst of ours
            while due <= now:
                urgent.put(packet(b"\x22\x22"))
                sent, due = sent + 1, due + self.interval
            urgent.flush()
            time.sleep(0.0005)
            now = time.monotonic()
        return sent

    def _listen(self, listener):
        try:
            while True:
                self.arrived[listener.recv(20)[12:14]] += 1
        except TimeoutError:
            pass


@pytest.mark.parametrize(("low", "high"), [(0, 7), (3, 4)])
def test_a_higher_queue_loses_nothing_to_a_saturating_lower_one(veth, namespace, low, high):
    rate, seconds = 20_000_000, 2.0
    veth("a", "b")
    queues.install(namespace, PortQueues("a", 8, rate, 50))
    for _ in range(5):
        run = Competition(rate, low, high, seconds)
        assert run.urgent_lost["queue full"] == 0
        assert run.arrived[b"\x22\x22"] == run.sent
        if run.sent * run.interval > 0.95 * seconds:
            break  # else the machine had no time for the sender
    else:
        pytest.fail("80 % of the port could not be offered")
    assert run.bulk_lost["queue full"] > 0
    share = run.arrived[b"\x11\x11"] * 8 * SIZE / (rate * seconds)
    assert 0.15 < share < 0.3  # the fifth that is left, and what waited at the end

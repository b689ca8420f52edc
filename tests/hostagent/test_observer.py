import json
import os
import re
import select
import socket
import subprocess
import sys
import time
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
from leveller_proto import agent_pb2 as pb

from hostagent import observer
from hostagent.config import AgentSection
from hostagent.interface import find
from hostagent.logs.tail import CHUNK
from hostagent.observer import IDLE_NS, LIVELY_NS, Observer
from hostagent.pacing import Pacer
from hostagent.state import HostState
from leveller.errors import UserError

LINE = " iteration %8d/ 9000000 | elapsed time per iteration (ms): 0.1 | " + "x" * 100 + " |\n"


def config(interface="lo", **settings):
    return AgentSection(host="h1", controllers=("127.0.0.1:9",), interface=interface, **settings)


class Watched:
    """An observer, its state, and what it has been told."""

    def __init__(self, interface="lo", on_addresses=lambda _: None, **settings):
        self.urgent = 0
        self.state = HostState(self._note)
        self.observer = Observer(config(interface, **settings), find(interface, ()), self.state, on_addresses)
        self.listings = 0
        connections = self.observer._namespaces.connections

        def counted(*arguments):
            self.listings += 1
            return connections(*arguments)

        self.observer._namespaces.connections = counted

    def _note(self):
        self.urgent += 1

    def look(self):
        now = time.monotonic_ns()
        self.observer.look(now)
        return now

    def job(self, id_):
        return next((job for job in self.state.report(None, 0, 0).jobs if job.job == id_), None)

    def flows(self):
        return list(self.state.report(None, 0, 0).flows)


@pytest.fixture
def watched():
    watched = Watched()
    yield watched
    watched.observer.close()


def test_a_large_log_is_worked_off_in_small_steps_that_are_due_soon(watched, trainers, tmp_path, monkeypatch):
    monkeypatch.setattr(observer, "DEAR_NS", 10**9)  # on a loaded machine, any of the steps may be dear
    trainers.start(rank=1)
    log = tmp_path / "train.log"
    log.write_text("".join(LINE % n for n in range(1, 6001)))
    assert log.stat().st_size > 3 * CHUNK
    seen = []
    deadline = time.monotonic() + 10
    while not seen or seen[-1] < 6000:
        assert time.monotonic() < deadline
        now = watched.look()
        job = watched.job(trainers.job)
        if job is not None and job.iterations and job.iterations not in seen:
            seen.append(job.iterations)
            if job.iterations < 6000:
                assert watched.observer.due_ns <= now + 20_000_000
    assert len(seen) >= 4


def test_growth_of_a_log_is_told_and_read_at_once(watched, trainers, tmp_path, eventually):
    trainers.start(rank=1, mode="ab")
    eventually(lambda: watched.look() and watched.job(trainers.job))
    watched.look()
    urgent = watched.urgent
    with (tmp_path / "train.log").open("a") as log:
        log.write(LINE % 1)
    watched.observer.look(0)  # nothing is due at time 0: only what the watcher tells is done
    assert watched.job(trainers.job).iterations == 1
    assert watched.urgent == urgent + 1


@pytest.fixture
def alone(tmp_path):
    """An observer whose socket nobody else has."""
    watched = Watched(report_socket=str(tmp_path / "agent.sock"), hung_min_s=1, hung_after=2)
    yield watched
    watched.observer.close()


def test_training_code_tells_how_far_it_is(alone, trainers, tmp_path):
    socket_path = tmp_path / "agent.sock"
    code = (
        "import sys, time; import hostagent.report\n"
        "while True:\n"
        "    for n in range(1, 10**9):\n"
        "        hostagent.report.iteration(n); time.sleep(0.05)"
    )
    path = os.pathsep.join(sys.path)
    trainers.start(program=code, log="/dev/null", LEVELLER_AGENT_SOCKET=str(socket_path), PYTHONPATH=path)
    deadline = time.monotonic() + 20
    while not ((job := alone.job(trainers.job)) and job.iterations >= 5):
        assert time.monotonic() < deadline
        select.select([alone.observer], [], [], 0.2)
        alone.look()
    assert (job.log_format, job.source) == ("report", "report")
    assert job.iterations < 500  # it was counted from where it began


def test_a_job_that_hangs_is_told(alone, trainers, tmp_path, eventually):
    trainers.start("idle", "-", 0, 3, 0.02, mode="ab")
    hung = eventually(
        lambda: alone.look() and (job := alone.job(trainers.job)) and job.state == pb.JOB_STATE_HUNG and job
    )
    assert (hung.iterations, hung.source) == (3, "stdout")
    with (tmp_path / "train.log").open("a") as log:
        log.write(LINE % 4)
    eventually(lambda: alone.look() and alone.job(trainers.job).state == pb.JOB_STATE_RUNNING)


def test_an_agent_that_stood_still_does_not_take_a_job_for_hanging(alone, trainers, tmp_path, eventually):
    trainers.start("idle", "-", 0, 3, 0.01, rank=1)
    now = time.monotonic_ns()
    eventually(lambda: alone.look() and (job := alone.job(trainers.job)) and job.iterations == 3)
    with (tmp_path / "train.log").open("a") as log:
        log.write(LINE % 4)
    alone.observer.look(now + 3_600 * 10**9)
    assert alone.job(trainers.job).state == pb.JOB_STATE_RUNNING
    assert alone.job(trainers.job).iterations == 4


def test_reading_that_takes_long_is_followed_by_a_rest(alone, trainers, tmp_path, monkeypatch, eventually):
    trainers.start(rank=1)
    eventually(lambda: alone.look() and alone.job(trainers.job))
    monkeypatch.setattr(observer, "DEAR_NS", -1)
    monkeypatch.setattr(observer, "READ_SHARE", 1e-12)
    with (tmp_path / "train.log").open("a") as log:
        log.write(LINE % 1)
    now = alone.look()
    assert alone.job(trainers.job).iterations == 1
    with (tmp_path / "train.log").open("a") as log:
        log.write(LINE % 2)
    alone.observer.look(now + 10**9)
    assert alone.job(trainers.job).iterations == 1  # not yet
    alone.observer.look(now + 10**18)
    assert alone.job(trainers.job).iterations == 2


def test_a_job_without_a_progress_source_says_so_and_a_named_log_is_found(trainers, tmp_path, eventually):
    watched = Watched(logs=[f"{tmp_path}/*.mylog"], report_socket=str(tmp_path / "agent.sock"))
    try:
        code = (
            "import sys, time; time.sleep(1.5)\n"
            f"log = open({str(tmp_path / 'a.mylog')!r}, 'w', buffering=1)\n"
            f"log.write({LINE % 1!r}); log.write({LINE % 2!r}); time.sleep(60)"
        )
        trainers.start(program=code, log="/dev/null")
        job = eventually(lambda: watched.look() and watched.job(trainers.job))
        assert (job.source, job.log_format) == ("none", "")
        job = eventually(lambda: watched.look() and (job := watched.job(trainers.job)).iterations and job)
        assert (job.source, job.log_format, job.iterations) == ("glob", "megatron", 2)
    finally:
        watched.observer.close()


def test_what_a_log_does_not_tell_yet_is_estimated_when_a_report_is_made(
    alone, trainers, tmp_path, eventually
):
    trainers.start(mode="ab")
    eventually(lambda: alone.look() and alone.job(trainers.job))
    with (tmp_path / "train.log").open("a") as log:
        for number in (100, 200, 300, 400):
            log.write((LINE % number).replace("(ms): 0.1", "(ms): 100.0"))
    alone.look()
    job = alone.job(trainers.job)
    assert (job.iterations, job.estimated) == (400, 0)
    since, now = alone.state.version, time.monotonic_ns()
    (entry,) = alone.state.report(since, 1, now + 4_000_000_000).jobs
    assert 35 <= entry.estimated <= 40
    assert entry.estimated_error == 1
    since = alone.state.version
    assert not alone.state.report(since, 2, now + 4_000_000_000).jobs  # nothing has changed


def test_where_another_agent_listens_only_logs_are_read(alone, trainers, tmp_path, eventually, capsys):
    second = Watched(report_socket=str(tmp_path / "agent.sock"))
    try:
        assert "only its logs are read" in capsys.readouterr().out
        trainers.start("idle", "-", 0, 3, 0.02)
        eventually(lambda: second.look() and (job := second.job(trainers.job)) and job.iterations == 3)
    finally:
        second.observer.close()


def test_connections_are_listed_when_there_is_reason_to(two_hosts, trainers, tmp_path):
    trainers.start("listen", two_hosts.b_addresses[0], 29_600, 0, 0, namespace=two_hosts.b, log="b.log")
    time.sleep(0.5)

    def inside():
        watched = Watched("data0")
        try:
            # Nothing goes on here: the kernel's table is walked now and then only.
            begun = time.monotonic_ns()
            while time.monotonic_ns() < begun + LIVELY_NS + 300_000_000:
                watched.look()
                time.sleep(0.01)
            calm, begun = watched.listings, time.monotonic_ns()
            while time.monotonic_ns() < begun + 2 * IDLE_NS:
                watched.look()
                time.sleep(0.01)
            assert watched.listings - calm <= 3

            trainers.start(
                "connect", two_hosts.b_addresses[0], 29_600, 0, 0, namespace=two_hosts.a, rank=1, log="a.log"
            )
            deadline = time.monotonic() + 10
            while not watched.flows():
                assert time.monotonic() < deadline
                watched.look()
                time.sleep(0.01)
            while watched.flows()[0].bytes_sent < 100_000:
                assert time.monotonic() < deadline
                watched.look()
                time.sleep(0.01)
            return [flow.job for flow in watched.flows()]
        finally:
            watched.observer.close()

    assert two_hosts.inside(two_hosts.a, inside) == [trainers.job]


def test_nothing_is_left_open():
    before = len(os.listdir("/proc/self/fd"))
    watched = Watched()
    watched.look()
    watched.observer.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_without_proc(tmp_path):
    with pytest.raises(OSError, match="thread-self"):
        Observer(config().model_copy(update={"proc": tmp_path}), find("lo", ()), HostState(lambda: None))


def observe_inside(two_hosts, function, **settings):
    """Run ``function`` on an observer that is in namespace a, where data0 is."""

    def inside():
        watched = Watched("data0", **settings)
        try:
            return function(watched)
        finally:
            watched.observer.close()

    return two_hosts.inside(two_hosts.a, inside)


def until(watched, condition, timeout_s=10):
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline
        watched.look()
        time.sleep(0.01)
    return found


@pytest.fixture
def container(two_hosts):
    """A network namespace on host a's NIC, with an address of its network; its name and that address."""
    name, address = two_hosts.a.replace("-a", "-c"), "10.201.0.65"
    commands = [
        f"-n {two_hosts.a} link add link data0 name eth0 netns {name} type macvlan mode bridge",
        f"-n {name} link set lo up",
        f"-n {name} link set eth0 up",
        f"-n {name} addr add {address}/24 dev eth0",
        f"-n {name} addr add 172.30.0.2/24 dev eth0",
    ]
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        for command in commands:
            subprocess.run(["ip", *command.split()], check=True)
        yield name, address
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def test_flows_of_a_container_with_an_address_of_the_hosts_network(two_hosts, container, trainers, capsys):
    namespace, address = container
    # No training process: all namespaces count here, and b is to be another host.
    sink = SINK % (two_hosts.b_addresses[0], 29_601)
    peer = subprocess.Popen(["ip", "netns", "exec", two_hosts.b, sys.executable, "-c", sink])
    time.sleep(0.5)
    process = trainers.start(
        "connect", two_hosts.b_addresses[0], 29_601, 0, 0, namespace=namespace, rank=1, log="c.log"
    )
    told = []

    def body(watched):
        flow = until(watched, watched.flows)[0]
        assert flow.job == trainers.job
        assert flow.tuple.source == socket.inet_aton(address)
        assert told[-1] == (*find("data0", ()).addresses, socket.inet_aton(address))
        process.kill()
        process.wait()
        until(watched, lambda: not watched.flows() and told[-1] == find("data0", ()).addresses)

    observe_inside(two_hosts, body, on_addresses=told.append, network_namespace="any")
    assert peer.wait(10) == 0  # its connection has ended, and so it has
    out = capsys.readouterr().out
    assert "flows from containers' addresses are not reported" in out
    assert "172.30.0.2" in out


def test_container_networks_that_are_routed_are_named(two_hosts, container, trainers):
    process = trainers.start(namespace=container[0], rank=1)
    told = []

    def body(watched):
        until(watched, lambda: told)
        return {str(ip_address(address)) for address in told[-1]}

    found = observe_inside(
        two_hosts,
        body,
        on_addresses=told.append,
        network_namespace="any",
        container_networks=(ip_network("172.30.0.0/16"),),
    )
    assert found == {*two_hosts.a_addresses, container[1], "172.30.0.2"}
    assert process.poll() is None


def test_other_namespaces_do_not_count_where_the_agent_is_in_one_itself(two_hosts, container, trainers):
    trainers.start(namespace=container[0], rank=1, log="c.log")
    trainers.start(namespace=two_hosts.a, rank=0, log="a.log")
    told = []

    def body(watched):
        until(watched, lambda: watched.job(trainers.job))
        return watched.job(trainers.job).local_ranks, told

    assert observe_inside(two_hosts, body, on_addresses=told.append) == (1, [])


def test_an_interface_that_is_deleted_is_an_error(two_hosts):
    def body(watched):
        watched.look()
        subprocess.run(["ip", "-n", two_hosts.a, "link", "del", "data0"], check=True)
        time.sleep(1.0)
        with pytest.raises(UserError, match="data0 is gone"):
            watched.look()

    observe_inside(two_hosts, body)


def test_an_interface_that_was_made_anew_is_another(two_hosts):
    def body(watched):
        watched.look()
        subprocess.run(["ip", "-n", two_hosts.a, "link", "set", "data0", "name", "data1"], check=True)
        subprocess.run(["ip", "-n", two_hosts.a, "link", "add", "data0", "type", "bridge"], check=True)
        time.sleep(1.0)
        with pytest.raises(UserError, match="made anew"):
            watched.look()

    observe_inside(two_hosts, body)


def test_control_connections_are_told_from_collectives(two_hosts, trainers):
    address = two_hosts.b_addresses[0]
    for port in (29_602, 29_603):
        trainers.start("listen", address, port, 0, 0, namespace=two_hosts.b, log=f"{port}.log")
    time.sleep(0.5)
    trainers.start("connect", address, 29_602, 0, 0, namespace=two_hosts.a, rank=0, log="a.log")
    trainers.start("store", address, 29_603, 0, 0, namespace=two_hosts.a, rank=1, log="store.log")

    def body(watched):
        kinds = until(
            watched,
            lambda: (
                len(watched.flows()) == 2
                and any(flow.bytes_sent for flow in watched.flows())
                and {flow.tuple.destination_port: flow.kind for flow in watched.flows()}
            ),
        )
        until(watched, lambda: sum(flow.bytes_sent for flow in watched.flows()) > 100_000)
        return kinds | {flow.tuple.destination_port: flow.kind for flow in watched.flows()}

    assert observe_inside(two_hosts, body) == {
        29_602: pb.FLOW_KIND_COLLECTIVE,
        29_603: pb.FLOW_KIND_CONTROL,
    }


RING = """
import array, fcntl, socket, termios
orders = socket.socket(socket.AF_UNIX)
orders.connect(%r)
connection = socket.create_connection((%r, %d))
number, waiting = 0, array.array("i", [0])
for order in iter(lambda: orders.recv(1), b""):
    if order == b"s":
        connection.sendall(bytes(4_000))
        waiting[0] = 1
        while waiting[0]:
            fcntl.ioctl(connection, termios.TIOCOUTQ, waiting)
    else:
        number += 1
        print(f"iter {number}: loss 3.1, time 990ms, mfu 2.0%%", flush=True)
    orders.send(b"k")
"""
SINK = """
import socket
connection, _ = socket.create_server(("%s", %d)).accept()
while connection.recv(1 << 20):
    pass
"""


def test_what_an_iteration_is_made_of_is_measured(two_hosts, trainers, tmp_path):
    """A real job's real flow, in the test's own time: it sends and logs when it is told to."""
    address, step = two_hosts.b_addresses[0], 15_000_000
    sink = ["ip", "netns", "exec", two_hosts.b, sys.executable, "-c", SINK % (address, 29_604)]
    with socket.socket(socket.AF_UNIX) as server, subprocess.Popen(sink) as peer:
        server.bind(str(tmp_path / "orders"))
        server.listen()
        server.settimeout(60)
        listening = f":{29_604:04X} "
        until_listens(peer.pid, listening)
        trainers.start(program=RING % (str(tmp_path / "orders"), address, 29_604), namespace=two_hosts.a)
        orders, _ = server.accept()
        orders.settimeout(60)

        def order(what):
            orders.send(what)
            assert orders.recv(1) == b"k"

        def body(watched):
            until(watched, lambda: [flow for flow in watched.flows() if flow.job == trainers.job], 60)
            watched.observer._flow_pace = Pacer(step // 2, 1.0)
            now = time.monotonic_ns()
            for number in range(10 * 66):
                now += step
                if number % 66 >= 53:
                    order(b"s")
                watched.observer.look(now)
                if number % 66 == 65:
                    order(b"i")
                    watched.observer.look(now)
            watched.observer.look(now + 1_000_000_000)
            return watched.job(trainers.job)

        job = observe_inside(two_hosts, body)
        orders.close()
        peer.kill()
    assert job.iterations == 10
    assert job.timing.iteration_ns == 66 * step
    assert job.timing.iterations == 10
    # 13 steps send. How far into the first and the last of them is not known.
    assert 11 * step <= job.timing.communication_ns <= 13 * step
    assert job.timing.HasField("slack_ns")


def until_listens(pid, port):
    """Wait until a process listens, in its own namespace; ``port`` is as /proc/net/tcp has it."""
    deadline = time.monotonic() + 60
    while not re.search(f"{port}.* 0A ", Path(f"/proc/{pid}/net/tcp").read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_queue_pairs_of_a_job_are_reported(two_hosts, trainers, tmp_path):
    process = trainers.start(namespace=two_hosts.a)
    port = tmp_path / "sys" / "mlx5_0" / "ports" / "1"
    (port / "gids").mkdir(parents=True)
    (port / "gid_attrs" / "types").mkdir(parents=True)
    (port / "gids" / "0").write_text("0000:0000:0000:0000:0000:ffff:0ac9:0001\n")  # 10.201.0.1
    (port / "gid_attrs" / "types" / "0").write_text("RoCE v2\n")
    listing = {"ifname": "mlx5_0", "port": 1, "lqpn": 3, "rqpn": 8, "type": "RC", "state": "RTS"}
    (tmp_path / "listing").write_text(json.dumps([listing | {"pid": process.pid, "comm": "python"}]))

    def body(watched):
        pairs = until(watched, lambda: list(watched.state.report(None, 0, 0).queue_pairs.pairs))
        since = watched.state.version
        assert not watched.state.report(since, 0, 0).HasField("queue_pairs")
        (tmp_path / "listing").write_text("[]")
        until(watched, lambda: watched.state.report(since, 0, 0).HasField("queue_pairs"))
        assert not watched.state.report(since, 0, 0).queue_pairs.pairs
        return pairs

    (pair,) = observe_inside(
        two_hosts,
        body,
        rdma_command=("cat", str(tmp_path / "listing")),
        rdma_devices=tmp_path / "sys",
    )
    assert (pair.source, pair.job) == (socket.inet_aton("10.201.0.1"), trainers.job)
    assert (pair.local_qp, pair.remote_qp, pair.source_port) == (3, 8, 0xC018)


BRIEF = """
import socket, time
kept = socket.create_connection(("%s", %d))
kept.sendall(bytes(1000))
time.sleep(3)  # until it is known
for _ in range(20):
    with socket.create_connection(("%s", %d)) as brief:
        brief.sendall(bytes(1000))
    time.sleep(0.03)
print("done", flush=True)
time.sleep(60)
"""

OPEN_HOUSE = """
import selectors, socket
server, chosen = socket.create_server(("%s", %d)), selectors.DefaultSelector()
chosen.register(server, selectors.EVENT_READ)
while True:
    for key, _ in chosen.select():
        if key.fileobj is server:
            chosen.register(server.accept()[0], selectors.EVENT_READ)
        elif not key.fileobj.recv(1 << 16):
            chosen.unregister(key.fileobj)
            key.fileobj.close()
"""


def test_connections_that_come_and_go_within_a_second_are_seen_or_counted(two_hosts, trainers, tmp_path):
    where = two_hosts.b_addresses[0], 29_605
    peer = ["ip", "netns", "exec", two_hosts.b, sys.executable, "-c", OPEN_HOUSE % where]
    with subprocess.Popen(peer) as house:
        time.sleep(0.5)
        trainers.start(program=BRIEF % (where * 2), namespace=two_hosts.a)

        def body(watched):
            seen = set()

            def look():
                seen.update(flow.tuple.source_port for flow in watched.flows())
                return "done" in (tmp_path / "train.log").read_text()

            until(watched, look, 30)
            time.sleep(0.3)
            look()
            until(watched, lambda: watched.job(trainers.job).brief_flows + len(seen) >= 21)
            return watched.job(trainers.job), len(seen)

        job, seen = observe_inside(two_hosts, body)
        house.kill()
    assert job.brief_flows + seen == 21
    assert job.brief_flows >= 5
    assert job.brief_bytes == 1000 * job.brief_flows


def test_a_process_that_enters_a_container_after_it_was_found(two_hosts, container, trainers):
    entering = f"""
import ctypes, os, time
time.sleep(2)
descriptor = os.open("/run/netns/{container[0]}", os.O_RDONLY)
assert ctypes.CDLL(None).setns(descriptor, 0) == 0
time.sleep(60)
"""
    trainers.start(program=entering, namespace=two_hosts.a)
    told = []

    def body(watched):
        until(watched, lambda: watched.job(trainers.job))
        assert told == []
        until(watched, lambda: told)
        return told[-1][-1]

    found = observe_inside(two_hosts, body, on_addresses=told.append, network_namespace="any")
    assert found == socket.inet_aton(container[1])

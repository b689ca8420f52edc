"""``leveller check`` against real switches: each refusal with its mend, and that it disturbs nobody."""

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from finsy.proto import U128, p4i, p4r, p4r_grpc
from google.protobuf import text_format

from controlplane.southbound import Fabric, Result, Target
from tests.controlplane.southbound.helpers import PROGRAM, connected
from tests.controlplane.southbound.proxy import Proxy

LEVELLER = Path(sys.executable).parent / "leveller"


@pytest.fixture
def config(tmp_path):
    """Write leveller.toml for switches at these addresses; ``more`` goes into each of their sections."""

    def write(*targets, levels="", more=""):
        lines = ["[levels]", levels]
        for target in targets:
            lines += [
                "[[switches]]", f'name = "{target.name}"', f'address = "{target.address}"',
                f"device_id = {target.device_id}", f"node_id = {target.device_id}",
                "ports = [1, 2, 3]", "host_ports = [1, 2]", more,
            ]  # fmt: skip
        path = tmp_path / "leveller.toml"
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


async def check(config, *options, within=()):
    """Run ``leveller check``; return its exit code and the lines that it wrote."""
    process = await asyncio.create_subprocess_exec(
        *within, LEVELLER, "check", config, *options, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert b"Traceback" not in err
    return process.returncode, out.decode().splitlines()


def refusals(lines):
    return [line for line in lines if ": note: " not in line]


def routes(count):
    hop = 'next_hops = [{ port = 3, mac = "02:00:00:00:00:01" }]'
    return "\n".join(
        f'[[switches.routes]]\nprefix = "10.{n // 256}.{n % 256}.0/24"\n{hop}' for n in range(count)
    )


async def push(switch, p4info, program=PROGRAM.json):
    """Push a program as another controller would."""
    info = text_format.Parse(p4info, p4i.P4Info())
    async with grpc.aio.insecure_channel(switch.address) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        stream = stub.StreamChannel()
        who = {"device_id": switch.device_id, "election_id": U128.encode(1)}
        arbitration = p4r.MasterArbitrationUpdate(**who)
        await stream.write(p4r.StreamMessageRequest(arbitration=arbitration))
        await stream.read()
        config = p4r.ForwardingPipelineConfig(p4info=info, p4_device_config=program.read_bytes())
        config.cookie.cookie = 0x1234
        action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        await stub.SetForwardingPipelineConfig(
            p4r.SetForwardingPipelineConfigRequest(action=action, config=config, **who)
        )


# -- what fits


async def test_a_fresh_switch_fits_and_what_cannot_be_checked_is_said(switch, config):
    code, lines = await check(config(switch.target()))
    assert code == 0
    assert lines[-1] == "it fits"
    assert any(line.startswith("S1: pipeline cookie: note: no pipeline that") for line in lines)
    assert any(line.startswith("S1: scheduler: note: P4Runtime tells neither") for line in lines)


async def test_a_running_controller_is_not_disturbed(switch, config, desire):
    """It asks by unary reads alone: no stream, no write, no push; and the primary stays primary."""
    async with Fabric([switch.target()], PROGRAM) as fabric, Proxy(switch) as proxy:
        await connected(fabric)
        await fabric.apply({"S1": desire(1, 2, 3)})
        code, lines = await check(config(proxy.target()))
        assert (code, refusals(lines)) == (0, ["it fits"])
        assert {method for method, _, _ in proxy.calls} == {"GetForwardingPipelineConfig", "Read"}
        assert proxy.streams == 0
        status = fabric.status()["S1"]
        assert (status.primary, status.sessions) == (True, 1)
        assert (await fabric.apply({"S1": desire(3, 2, 1)}))["S1"].result is Result.APPLIED


async def test_json(switch, config):
    code, lines = await check(config(switch.target(), more=routes(1100)), "--json")
    report = json.loads("".join(lines))
    assert (code, report["fits"]) == (2, False)
    (finding,) = report["findings"]
    assert finding == {
        "switch": "S1",
        "topic": "table sizes",
        "what": "ipv4_lpm needs 1100 entries, and our P4Info has room for 1024",
        "mend": "configure less, or compile the program with a larger table (p4src/shared/sizes.p4)",
    }
    assert {note["topic"] for note in report["notes"]} == {"pipeline cookie", "scheduler"}


# -- offline


async def test_offline_no_switch_is_asked(config, kind):
    if kind == "bmv2":
        pytest.skip("no switch is asked")
    nobody = [nowhere(n) for n in (1, 2)]
    code, lines = await check(config(*nobody), "--offline")
    assert (code, refusals(lines)) == (0, ["it fits"])
    code, lines = await check(config(*nobody, more=routes(1025)), "--offline")
    assert code == 2
    assert [line.split(": ")[:2] for line in refusals(lines)] == [
        ["S1", "table sizes"],
        ["S2", "table sizes"],
    ]
    code, lines = await check(config(*nobody, levels="count = 8"), "--offline")
    assert code == 2
    assert len(refusals(lines)) == 1
    assert "control_queue = 7 is also the queue of level 7" in lines[0]
    code, lines = await check(config(*nobody, levels="count = 8"), "--offline", "--json")
    assert (code, json.loads(lines[0])["findings"][0]["topic"]) == (2, "configuration")


def nowhere(number):
    """A switch that nobody asks."""
    return Target(f"S{number}", f"127.0.0.1:{number}", number)


# -- each refusal


async def test_connection_a_switch_that_is_not_there_or_hangs(switches, config):
    there, hung = switches(), switches()
    hung.freeze()
    gone = replace(there.target("S3"), address="127.0.0.1:1", device_id=3)
    path = config(there.target("S1"), hung.target("S2"), gone)
    code, lines = await check(path, "--deadline-s", "1")
    assert code == 2
    said = refusals(lines)
    assert len(said) == 2
    assert said[0].startswith(f"S2: connection: {hung.address} gave no answer in 1 s: ")
    assert said[1].startswith("S3: connection: 127.0.0.1:1 cannot be reached (")
    assert said[1].endswith(": start it, or mend switches.address")


async def test_device_id_of_another_switch(kind, switch, config):
    code, lines = await check(config(replace(switch.target(), device_id=77)))
    if kind == "bmv2":
        # Never pushed to, it says the same of every device id, and has nothing else that tells its own.
        assert (code, refusals(lines)) == (0, ["it fits"])
        assert "ours will be, which shows whether 77 is its device id: it would say the same of" in lines[0]
    else:
        assert code == 2
        assert refusals(lines) == [
            "S1: device: NOT_FOUND (device 77 is not here; this is 1): switches.device_id is 77; set it to 1"
        ]


async def test_device_id_of_another_switch_once_that_has_its_program(kind, switch, config):
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        code, lines = await check(config(replace(switch.target(), device_id=77)))
        assert (code, len(refusals(lines))) == (2, 1)
        if kind == "bmv2":
            assert refusals(lines) == [
                "S1: device: device 77 has no pipeline, but there is one in device 1:"
                " switches.device_id is 77; set it to 1"
            ]
        else:
            assert lines[0].endswith(
                "(device 77 is not here; this is 1): switches.device_id is 77; set it to 1"
            )
        code, lines = await check(config(switch.target()))
        assert (code, refusals(lines)) == (0, ["it fits"])


async def test_device_id_0_is_none_of_ours(kind, switches, config):
    switch = switches(started=False)
    switch._command[switch._command.index("--device-id") + 1] = "0"
    switch.start()
    wrong, switch.device_id = switch.target(), 0
    await push(switch, PROGRAM.p4info.read_text())
    code, lines = await check(config(wrong))
    assert (code, len(refusals(lines))) == (2, 1)
    if kind == "bmv2":
        assert lines[0].startswith("S1: device: device 1 has no pipeline, but there is one in device 0: ")
    assert lines[0].endswith(": start it with --device-id 1: ids are from 1 on")


async def test_connection_to_grpc_that_is_not_p4runtime(config):
    server = grpc.aio.server()
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    code, lines = await check(config(Target("S1", address, 1)))
    await server.stop(None)
    assert (code, refusals(lines)) == (
        2,
        [
            f"S1: connection: {address} is a gRPC server without P4Runtime (Method not found!):"
            " set switches.address to the switch's P4Runtime"
        ],
    )


async def test_gnmi_that_gives_no_answer_is_not_waited_for(switch, config, monkeypatch):
    async def never(self, request, context):
        await asyncio.Event().wait()

    monkeypatch.setattr(Proxy, "_get", never)
    async with Proxy(switch) as proxy:
        code, lines = await check(config(proxy.target()), "--deadline-s", "0.5")
    assert (code, refusals(lines)) == (0, ["it fits"])
    assert (
        "S1: port map: note: gNMI gave no answer in 0.5 s: what it knows of ports and queues was not seen"
        in lines
    )


async def test_device_id_that_a_controller_has_tried_to_push_to(kind, switch, config):
    if kind != "bmv2":
        pytest.skip("the softswitch refuses to begin with")
    wrong = replace(switch.target(), device_id=77)
    async with Fabric([wrong], PROGRAM) as fabric:
        async with asyncio.timeout(20):
            while "assign device" not in str(fabric.status()["S1"].error):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    code, lines = await check(config(wrong))
    assert (code, len(refusals(lines))) == (2, 1)
    assert lines[0] == (
        "S1: device: a push to device 77 has failed: it is another device, or the program was no good:"
        " switches.device_id is 77; set it to the switch's own, and start the switch anew"
    )
    code, lines = await check(config(switch.target()))
    assert (code, refusals(lines)) == (0, ["it fits"]), "and it still stands"


async def test_pipeline_cookie_of_another_program(switch, config):
    await push(switch, PROGRAM.p4info.read_text())
    code, lines = await check(config(switch.target()))
    assert (code, len(refusals(lines))) == (2, 1)
    assert lines[0].startswith("S1: pipeline cookie: it runs another program (cookie 0x1234, ours is 0x")
    assert "check with --replace-pipeline" in lines[0]
    code, lines = await check(config(switch.target()), "--replace-pipeline")
    assert (code, refusals(lines)) == (0, ["it fits"])
    assert any("will be pushed, which clears its tables" in line for line in lines)


async def test_pipeline_cookie_with_a_role_nobody_pushes(switch, config):
    code, lines = await check(config(switch.target(), more='role = "leveller"'))
    assert (code, len(refusals(lines))) == (2, 1)
    assert "let the controller with the default role push it" in lines[0]
    assert any(line.startswith("S1: role: note: whether it has roles was not asked") for line in lines)


async def test_p4info_of_a_program_without_the_level_control(switch, config):
    await push(switch, PROGRAM.p4info.read_text().replace('alias: "burst_gap"', 'alias: "bursts"'))
    code, lines = await check(config(switch.target()), "--replace-pipeline")
    assert (code, len(refusals(lines))) == (2, 1)
    assert lines[0].startswith("S1: P4Info: the switch's P4Info: has no table 'burst_gap': compile a program")


async def test_table_sizes_of_the_program_that_the_switch_runs(switch, config, smaller):
    async with Fabric([switch.target()], smaller(p4info_too=True, ipv4_lpm=4, group_level=100)) as fabric:
        await connected(fabric)
    code, lines = await check(config(switch.target(), more=routes(5)), "--replace-pipeline")
    assert code == 2
    mend = "configure less, or compile the program with a larger table (p4src/shared/sizes.p4)"
    assert refusals(lines) == [
        f"S1: table sizes: ipv4_lpm needs 5 entries, and the switch's P4Info has room for 4: {mend}",
        "S1: table sizes: group_level has 100 entries, and the numbers that are handed out go to 65536:"
        f" {mend}",
    ]


async def test_port_map_lacks_a_port_that_carries_traffic(switch, config):
    async with Fabric([switch.target()], PROGRAM) as fabric:
        await connected(fabric)
        session = fabric._sessions["S1"]
        counter = fabric._counters["ingress_port_counter"]
        for port in (2, 7):
            entry = p4r.CounterEntry(counter_id=counter, index=p4r.Index(index=port))
            entry.data.packet_count = 5
            update = p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(counter_entry=entry))
            assert (
                await session.device().write([p4r.WriteRequest(updates=[update]).SerializeToString()]) == {}
            )
    code, lines = await check(config(switch.target()))
    assert (code, len(refusals(lines))) == (2, 1)
    assert lines[0] == (
        "S1: port map: port 7 has carried 5 packets, but is not among ports: add it to switches.ports, and to"
        " host_ports where it leads to hosts"
    )


async def test_tls_that_the_switch_does_not_have(switch, config, tmp_path):
    code, lines = await check(config(switch.target(), more=f'ca = "{tmp_path}/none.pem"'))
    assert code == 2
    assert "switch S1: " in lines[0]
    assert "none.pem cannot be read (No such file or directory): give a PEM file" in lines[0]

"""What a person does with p4runtime-shell, as a script for its own virtual environment.

Usage: python shell_session.py ADDRESS PROGRAM (without suffix). test_p4runtime_shell.py checks what it says.
"""

import sys

import p4runtime_sh.shell as sh

address, program = sys.argv[1:]
config = sh.FwdPipeConfig(f"{program}.p4info.txtpb", f"{program}.json")
sh.setup(device_id=1, grpc_addr=address, election_id=(0, 1), config=config, verbose=False)


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")


def count(entity):
    found = []
    entity.read(found.append)
    return len(found)


entry = sh.TableEntry("mac")(action="forward")
entry.match["dst"] = "00:00:00:00:00:02"
entry.action["port"] = "2"
entry.insert()
say("entries", count(sh.TableEntry("mac")))
entry.action["port"] = "3"
entry.modify()
entry.read(lambda e: say("port", e.action["port"].value.hex()))

acl = sh.TableEntry("acl")(action="drop")
acl.match["src"] = "10.0.0.0&&&255.0.0.0"
acl.match["protocol"] = "6"
acl.match["ttl"] = "1..9"
acl.match["ingress_port"] = "1"
acl.priority = 5
acl.insert()
acl.read(lambda e: say("priority", e.priority))

default = sh.TableEntry("mac")(action="punt", is_default=True)
default.action["reason"] = "3"
default.modify()

member = sh.ActionProfileMember("spreader")(member_id=1, action="forward")
member.action["port"] = "1"
member.insert()
group = sh.ActionProfileGroup("spreader")(group_id=1)
group.add(1, 1)
group.insert()
say("groups", count(sh.ActionProfileGroup("spreader")))

counter = sh.CounterEntry("port_counter")
counter.index = 5
counter.packet_count = 7
counter.modify()
counter.read(lambda c: say("packets", c.packet_count))
multicast = sh.MulticastGroupEntry(1)
multicast.add(1, 1).add(2, 1)
multicast.insert()
say("multicast groups", count(sh.MulticastGroupEntry()))
session = sh.CloneSessionEntry(1)
session.add(1, 1)
session.insert()
say("clone sessions", count(sh.CloneSessionEntry()))

packet = sh.PacketOut(payload=bytes(14), egress_port="510", pad="0")
packet.send()
say("packet-in", [len(message.packet.payload) for message in sh.PacketIn().sniff(timeout=2)])
entry.delete()
acl.delete()
say("entries", count(sh.TableEntry("mac")))
say("version", sh.APIVersion())
sh.teardown()

from finsy import P4Schema
from finsy.proto import stratum

from controlplane.southbound.contract import CONTRACT
from controlplane.southbound.roles import message
from tests.controlplane.southbound.helpers import PROGRAM

SCHEMA = P4Schema(PROGRAM.p4info, PROGRAM.json)


def test_the_level_control_is_ours_alone_and_forwarding_is_shared():
    role = message("levels", SCHEMA.p4info)
    config = stratum.P4RoleConfig()
    assert role.name == "levels"
    assert role.config.Unpack(config)
    names = {table.preamble.id: table.preamble.alias for table in SCHEMA.p4info.tables}
    forwarding = {"ipv4_lpm", "ipv6_lpm", "ecmp", "ecmp_seed"}
    assert {names[number] for number in config.exclusive_p4_ids} == set(CONTRACT) - forwarding
    assert {names[number] for number in config.shared_p4_ids if number in names} == forwarding
    assert {counter.preamble.id for counter in SCHEMA.p4info.counters} <= set(config.shared_p4_ids)
    assert (config.receives_packet_ins, config.can_push_pipeline) == (True, False)

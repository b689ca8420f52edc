import pytest
from finsy import P4Schema
from finsy.proto import p4i

import p4src
from controlplane.southbound.contract import CONTRACT, bind
from leveller.errors import UserError


@pytest.fixture
def p4info():
    copy = p4i.P4Info()
    copy.CopyFrom(P4Schema(p4src.program("v1model").p4info).p4info)
    return copy


def table(p4info, name):
    return next(table for table in p4info.tables if table.preamble.alias == name)


def action(p4info, name):
    return next(action for action in p4info.actions if action.preamble.alias == name)


def complaint(p4info):
    with pytest.raises(UserError) as error:
        bind(p4info, "other.p4info.txtpb")
    assert "P4Info" in error.value.mend
    return error.value.what


def test_the_reference_program_keeps_the_contract(p4info):
    binding = bind(p4info, "leveller.p4info.txtpb")
    assert binding.keys() == CONTRACT.keys()
    assert binding["group_level"].widths == (1, 16)
    assert binding["group_level"].id == table(p4info, "group_level").preamble.id
    assert binding["ipv4_lpm"].kind == "lpm"


def test_columns_are_found_by_name_whatever_their_order(p4info):
    fields = table(p4info, "group_level").match_fields
    bank, group = p4i.MatchField(), p4i.MatchField()
    bank.CopyFrom(fields[0])
    group.CopyFrom(fields[1])
    fields[0].CopyFrom(group)
    fields[1].CopyFrom(bank)
    assert bind(p4info, "x")["group_level"].keys == (bank.id, group.id)


def test_a_missing_table(p4info):
    table(p4info, "burst_gap").preamble.alias = "bursts"
    assert complaint(p4info) == "other.p4info.txtpb: has no table 'burst_gap'"


def test_a_key_of_another_width(p4info):
    table(p4info, "group_level").match_fields[1].bitwidth = 12
    assert complaint(p4info) == "other.p4info.txtpb: field group_level.group is 12 bits, not 16"


def test_a_missing_or_extra_key(p4info):
    table(p4info, "level_queue").match_fields[0].name = "lvl"
    assert "unknown key field 'lvl'" in complaint(p4info)
    del table(p4info, "level_queue").match_fields[0]
    assert complaint(p4info).endswith("table 'level_queue' has no key field 'level'")


def test_a_key_of_another_kind(p4info):
    table(p4info, "ipv4_lpm").match_fields[0].match_type = p4i.MatchField.EXACT
    assert complaint(p4info).endswith("field ipv4_lpm.dst is not lpm")


def test_a_missing_action(p4info):
    action(p4info, "set_bank").preamble.name = "LevellerIngress.level_control.use_bank"
    assert complaint(p4info).endswith("has no action 'active_bank.set_bank'")


def test_an_action_may_be_one_of_several_with_its_name(p4info):
    """As on Tofino, where each flow table has a set_group of its own: its alias is more than that then."""
    preamble = action(p4info, "set_group").preamble
    preamble.name, preamble.alias = "LevellerIngress.level_control.v4.set_group", "v4.set_group"
    assert bind(p4info, "source")["flow_group_v4"].actions["set_group"].id == preamble.id


def test_parameters(p4info):
    action(p4info, "set_level").params[1].bitwidth = 16
    assert complaint(p4info).endswith("parameter group_level.set_level.guard_us is 16 bits, not 32")
    action(p4info, "set_level").params[1].name = "guard"
    assert "unknown parameter 'guard'" in complaint(p4info)
    del action(p4info, "set_level").params[1]
    assert complaint(p4info).endswith("action 'group_level.set_level' has no parameter 'guard_us'")


def test_a_pipeline_of_ones_own_may_do_without_the_reference_forwarding():
    own = P4Schema(p4src.program("l2").p4info).p4info
    assert CONTRACT.keys() - bind(own, "l2.p4info.txtpb").keys() == {
        "ipv4_lpm",
        "ipv6_lpm",
        "ecmp",
        "ecmp_seed",
    }

// The four flow tables. Each has an action of its own, whose name ends in set_group like the others': on this target
// the action counts, and a direct counter belongs to one table.
#ifndef _LEVELLER_TNA_FLOW_TABLES_P4_
#define _LEVELLER_TNA_FLOW_TABLES_P4_

control Flows(in ipv4_h ipv4, in ipv6_h ipv6, in transport_t l4, inout level_metadata_t meta) {
    DirectCounter<bit<32>>(CounterType_t.PACKETS_AND_BYTES) flow_counter_v4;
    DirectCounter<bit<32>>(CounterType_t.PACKETS_AND_BYTES) flow_counter_v6;
    DirectCounter<bit<32>>(CounterType_t.PACKETS_AND_BYTES) flow_counter_qp_v4;
    DirectCounter<bit<32>>(CounterType_t.PACKETS_AND_BYTES) flow_counter_qp_v6;

    @name("v4.set_group")
    action set_group_v4(bit<16> group, bit<32> slot) {
        meta.known = 1;
        meta.group = group;
        meta.slot = (slot_t)slot;
        flow_counter_v4.count();
    }

    table flow_group_v4 {
        key = {
            ipv4.src_addr : exact @name("src");
            ipv4.dst_addr : exact @name("dst");
            ipv4.protocol : exact @name("protocol");
            l4.sport      : exact @name("sport");
            l4.dport      : exact @name("dport");
        }
        actions = { set_group_v4; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = flow_counter_v4;
        idle_timeout = true;
        size = FLOWS_V4;
    }

    @name("v6.set_group")
    action set_group_v6(bit<16> group, bit<32> slot) {
        meta.known = 1;
        meta.group = group;
        meta.slot = (slot_t)slot;
        flow_counter_v6.count();
    }

    table flow_group_v6 {
        key = {
            ipv6.src_addr    : exact @name("src");
            ipv6.dst_addr    : exact @name("dst");
            ipv6.next_header : exact @name("protocol");
            l4.sport         : exact @name("sport");
            l4.dport         : exact @name("dport");
        }
        actions = { set_group_v6; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = flow_counter_v6;
        idle_timeout = true;
        size = FLOWS_V6;
    }

    @name("qp_v4.set_group")
    action set_group_qp_v4(bit<16> group, bit<32> slot) {
        meta.known = 1;
        meta.group = group;
        meta.slot = (slot_t)slot;
        flow_counter_qp_v4.count();
    }

    table flow_group_qp_v4 {
        key = {
            ipv4.src_addr : exact @name("src");
            ipv4.dst_addr : exact @name("dst");
            l4.qp         : exact @name("qp");
        }
        actions = { set_group_qp_v4; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = flow_counter_qp_v4;
        idle_timeout = true;
        size = FLOWS_QP_V4;
    }

    @name("qp_v6.set_group")
    action set_group_qp_v6(bit<16> group, bit<32> slot) {
        meta.known = 1;
        meta.group = group;
        meta.slot = (slot_t)slot;
        flow_counter_qp_v6.count();
    }

    table flow_group_qp_v6 {
        key = {
            ipv6.src_addr : exact @name("src");
            ipv6.dst_addr : exact @name("dst");
            l4.qp         : exact @name("qp");
        }
        actions = { set_group_qp_v6; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = flow_counter_qp_v6;
        idle_timeout = true;
        size = FLOWS_QP_V6;
    }

    // A packet that is not RoCEv2 has queue pair 0, which no entry has.
    apply {
        if (ipv4.isValid()) {
            if (flow_group_qp_v4.apply().miss) {
                flow_group_v4.apply();
            }
        } else if (ipv6.isValid()) {
            if (flow_group_qp_v6.apply().miss) {
                flow_group_v6.apply();
            }
        }
    }
}

#endif

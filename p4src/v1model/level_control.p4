// THE LIBRARY: flow -> group -> level -> queue, for any v1model pipeline.
//
// Include this file, keep a zeroed `level_metadata_t` per packet, and apply LevelControl once in ingress:
//
//     level_control.apply(hdr.ipv4, hdr.ipv6, meta.l4, meta.level, standard_metadata);
//
// It sets standard_metadata.priority and, where the operator asks for it, the DSCP. It reads nothing of the
// pipeline's forwarding and drops nothing. `is_control`, `is_ack` and `keep_dscp` are the caller's to set before.
//
// A TCP segment without payload goes at the level of its flow, where that is known: it must not overtake the flow's
// data. Where both directions of a connection carry data, that data would come with an acknowledgement older than a
// whole window, and be dropped for it (RFC 5961, 5.2). Guard and slack hold it as they hold data, but it is none: it
// ends no gap, begins no burst, and leaves no level in force. Where its flow is not known it has the control level:
// else the flow that it acknowledges, one that has data in one direction only, would starve with it.
//
// The reorder guard takes a silence of guard_us for "the flow's packets have left the queue": make it as long
// as the slowest queue needs to drain.
//
// Per-flow state is kept by slot, an index that the controller hands out. A flow takes over the state of a
// slot that another flow had: if its first packet comes within guard_us of the other's last, it is held at
// that flow's level, if lower, until its first gap of guard_us. So a controller reuses the slot that has been
// free for longest.
#ifndef _LEVELLER_LEVEL_CONTROL_P4_
#define _LEVELLER_LEVEL_CONTROL_P4_

#include "../shared/constants.p4"
#include "../shared/headers.p4"
#include "../shared/sizes.p4"
#include "checksum.p4"

struct level_metadata_t {
    // From the caller.
    bit<1>  is_control; // control traffic: the control level, no flow lookup
    bit<1>  is_ack;     // a TCP segment without payload: its flow's level, or the control level
    bit<1>  keep_dscp;  // whatever the level's queue says, the DSCP stays
    // For the caller.
    bit<8>  level;      // in force for this packet
    bit<1>  known;      // a flow entry matched
    bit<16> group;
    // Between the tables.
    bit<32> slot;
    bit<1>  bank;
    bit<8>  control_level;
    bit<32> guard_us;
    bit<32> slack_us;
    bit<32> gap_us;
    bit<1>  rewrite;
    bit<6>  dscp;
}

control LevelControl(inout ipv4_h ipv4,
                     inout ipv6_h ipv6,
                     in transport_t l4,
                     inout level_metadata_t meta,
                     inout standard_metadata_t standard_metadata) {

    direct_counter(CounterType.packets_and_bytes) flow_counter_v4;
    direct_counter(CounterType.packets_and_bytes) flow_counter_v6;
    direct_counter(CounterType.packets_and_bytes) flow_counter_qp_v4;
    direct_counter(CounterType.packets_and_bytes) flow_counter_qp_v6;

    // By slot. Times are microseconds of the switch's clock.
    register<bit<48>>(FLOW_SLOTS) last_seen;
    register<bit<48>>(FLOW_SLOTS) burst_start;
    register<bit<8>>(FLOW_SLOTS) level_in_force;
    counter(FLOW_SLOTS, CounterType.packets) burst_count;  // a counter: P4Runtime on bmv2 reads no registers

    action set_default_level(bit<8> level, bit<8> control_level) {
        meta.level = level;
        meta.control_level = control_level;
    }

    table default_level {
        actions = { set_default_level; }
        default_action = set_default_level(LEVEL_DEFAULT, LEVEL_CONTROL);
    }

    action set_group(bit<16> group, bit<32> slot) {
        meta.known = 1;
        meta.group = group;
        meta.slot = slot;
    }

    table flow_group_v4 {
        key = {
            ipv4.src_addr : exact @name("src");
            ipv4.dst_addr : exact @name("dst");
            ipv4.protocol : exact @name("protocol");
            l4.sport      : exact @name("sport");
            l4.dport      : exact @name("dport");
        }
        actions = { set_group; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = flow_counter_v4;
        support_timeout = true;
        size = FLOWS_V4;
    }

    table flow_group_v6 {
        key = {
            ipv6.src_addr    : exact @name("src");
            ipv6.dst_addr    : exact @name("dst");
            ipv6.next_header : exact @name("protocol");
            l4.sport         : exact @name("sport");
            l4.dport         : exact @name("dport");
        }
        actions = { set_group; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = flow_counter_v6;
        support_timeout = true;
        size = FLOWS_V6;
    }

    table flow_group_qp_v4 {
        key = {
            ipv4.src_addr : exact @name("src");
            ipv4.dst_addr : exact @name("dst");
            l4.qp         : exact @name("qp");
        }
        actions = { set_group; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = flow_counter_qp_v4;
        support_timeout = true;
        size = FLOWS_QP_V4;
    }

    table flow_group_qp_v6 {
        key = {
            ipv6.src_addr : exact @name("src");
            ipv6.dst_addr : exact @name("dst");
            l4.qp         : exact @name("qp");
        }
        actions = { set_group; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = flow_counter_qp_v6;
        support_timeout = true;
        size = FLOWS_QP_V6;
    }

    // Which half of group_level holds. One write here re-ranks every group at once.
    action set_bank(bit<1> bank) {
        meta.bank = bank;
    }

    table active_bank {
        actions = { set_bank; }
        default_action = set_bank(0);
    }

    action set_level(bit<8> level, bit<32> guard_us, bit<32> slack_us) {
        meta.level = level;
        meta.guard_us = guard_us;
        meta.slack_us = slack_us;
    }

    // A group without an entry has the default level.
    table group_level {
        key = {
            meta.bank  : exact @name("bank");
            meta.group : exact @name("group");
        }
        actions = { set_level; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 2 * GROUPS;
    }

    // 0: bursts are not told apart, and slack never holds.
    action set_burst_gap(bit<32> gap_us) {
        meta.gap_us = gap_us;
    }

    table burst_gap {
        actions = { set_burst_gap; }
        default_action = set_burst_gap(BURST_GAP_US);
    }

    action set_queue(bit<8> queue, bit<6> dscp, bit<1> rewrite) {
        standard_metadata.priority = (bit<3>)queue;
        meta.dscp = dscp;
        meta.rewrite = rewrite;
    }

    // A level without an entry goes to queue 0, which every switch has.
    table level_queue {
        key = {
            meta.level : exact @name("level");
        }
        actions = { set_queue; @defaultonly NoAction; }
        const default_action = NoAction();
        size = LEVELS;
    }

    apply {
        default_level.apply();
        if (meta.is_control == 1) {
            meta.level = meta.control_level;
        } else {
            if (ipv4.isValid()) {
                if (l4.roce == 1) {
                    flow_group_qp_v4.apply();
                }
                if (meta.known == 0) {
                    flow_group_v4.apply();
                }
            } else if (ipv6.isValid()) {
                if (l4.roce == 1) {
                    flow_group_qp_v6.apply();
                }
                if (meta.known == 0) {
                    flow_group_v6.apply();
                }
            }
            if (meta.known == 1) {
                active_bank.apply();
                group_level.apply();
                burst_gap.apply();

                // Modulo 2^48 us, which is nine years. A slot never used has been silent for ever.
                bit<48> now = standard_metadata.ingress_global_timestamp;
                bit<48> last;
                last_seen.read(last, meta.slot);
                if (meta.is_ack == 0) {
                    last_seen.write(meta.slot, now);
                }
                bit<48> silence = now - last;
                if (last == 0) {
                    silence = 0xFFFFFFFFFFFF;
                }

                if (meta.gap_us != 0) {
                    if (silence >= (bit<48>)meta.gap_us && meta.is_ack == 0) {
                        burst_start.write(meta.slot, now);
                        burst_count.count(meta.slot);
                    }
                    // The start of a burst waits at the lowest level: it may, its job does not need it yet.
                    if (meta.slack_us != 0) {
                        bit<48> start;
                        burst_start.read(start, meta.slot);
                        if (now - start < (bit<48>)meta.slack_us) {
                            meta.level = 0;
                        }
                    }
                }

                // Only a promotion can let a packet overtake those before it: it waits until they have
                // drained. That holds for the end of the slack as well.
                if (meta.guard_us != 0) {
                    if (silence < (bit<48>)meta.guard_us) {
                        bit<8> held;
                        level_in_force.read(held, meta.slot);
                        if (held < meta.level) {
                            meta.level = held;
                        }
                    }
                }
                // Kept without a guard too, so that a guard turned on under traffic knows where the flow is.
                if (meta.is_ack == 0) {
                    level_in_force.write(meta.slot, meta.level);
                }
            } else if (meta.is_ack == 1) {
                meta.level = meta.control_level;
            }
        }

        level_queue.apply();

        if (meta.rewrite == 1 && meta.keep_dscp == 0) {
            if (ipv4.isValid() && ipv4.dscp != meta.dscp) {
                ipv4.checksum = checksum_replace(
                    ipv4.checksum, (bit<16>)(ipv4.dscp ++ 2w0), (bit<16>)(meta.dscp ++ 2w0));
                ipv4.dscp = meta.dscp;
            } else if (ipv6.isValid()) {
                ipv6.dscp = meta.dscp;
            }
        }
    }
}

#endif

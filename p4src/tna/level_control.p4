// THE LIBRARY, for Tofino: flow -> group -> level -> queue, for any TNA pipeline. The contract is that of
// v1model/level_control.p4, which says what guard, slack and bursts are for.
//
// Include this file, keep a zeroed `level_metadata_t` per packet, and apply LevelControl once in ingress:
//
//     level_control.apply(hdr.ipv4, hdr.ipv6, meta.l4, meta.level, ig_prsr_md, ig_tm_md);
//
// It sets ig_tm_md.qid and, where the operator asks for it, the DSCP; the IPv4 checksum is then the caller's
// deparser's to update. `is_control`, `is_routing`, `is_ack` and `keep_dscp` are the caller's to set before.
//
// Time is kept in units of 256 ns, 32 bits of them, and 4 are taken for a microsecond: so every guard, slack and gap is
// 2.4 % longer than written, and at most 2^30 us. It wraps after 18 minutes: a flow that pauses for just so long may have
// one burst miscounted, and one guard too many. Each pipe of the chip has registers of its own; a flow comes in by one.
// Slot 0 and group 0 are nobody's, the controller hands out those from 1.
#ifndef _LEVELLER_TNA_LEVEL_CONTROL_P4_
#define _LEVELLER_TNA_LEVEL_CONTROL_P4_

#include "../shared/constants.p4"
#include "../shared/headers.p4"
#include "../shared/sizes.p4"

typedef bit<17> slot_t;  // FLOW_SLOTS fit

struct level_metadata_t {
    // From the caller.
    bit<1>  is_control; // control traffic: the control level, no flow lookup
    bit<1>  is_routing; // control traffic that is known too late to skip the lookup
    bit<1>  is_ack;     // a TCP segment without payload: its flow's level, or the control level
    bit<1>  keep_dscp;  // whatever the level's queue says, the DSCP stays
    // For the caller.
    bit<8>  level;      // in force for this packet
    bit<1>  known;      // a flow entry matched
    bit<16> group;
    // Between the tables.
    slot_t  slot;
    bit<1>  bank;
    bit<8>  control_level;
    bit<32> guard;
    bit<32> slack;
    bit<1>  rewrite;
    bit<6>  dscp;
}

#include "flow_tables.p4"

control LevelControl(inout ipv4_h ipv4,
                     inout ipv6_h ipv6,
                     in transport_t l4,
                     inout level_metadata_t meta,
                     in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                     inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Flows() flows;

    bit<32> now = 0;
    bit<32> gap = 0;
    bit<32> silence = 0;     // before this packet
    bit<32> into_burst = 0;  // since the first packet of its burst
    bit<32> gap_left = 0;
    bit<32> guard_left = 0;
    bit<32> slack_left = 0;

    // By slot, as on v1model.
    Register<bit<32>, slot_t>(FLOW_SLOTS) last_seen;
    Register<bit<32>, slot_t>(FLOW_SLOTS) burst_start;
    Register<bit<8>, slot_t>(FLOW_SLOTS) level_in_force;
    Counter<bit<32>, slot_t>(FLOW_SLOTS, CounterType_t.PACKETS) burst_count;

    RegisterAction<bit<32>, slot_t, bit<32>>(last_seen) see = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = now - value;
            value = now;
        }
    };

    // A TCP segment without payload is no data: it finds the state, and leaves it.
    RegisterAction<bit<32>, slot_t, bit<32>>(last_seen) look = {
        void apply(inout bit<32> value, out bit<32> result) {
            result = now - value;
        }
    };

    // A whole gap begins a burst.
    RegisterAction<bit<32>, slot_t, bit<32>>(burst_start) follow = {
        void apply(inout bit<32> value, out bit<32> result) {
            if (gap_left == 0) {
                result = 0;
                value = now;
            } else {
                result = now - value;
            }
        }
    };

    // The start of a burst waits at the lowest level: it may, its job does not need it yet.
    RegisterAction<bit<8>, slot_t, bit<8>>(level_in_force) rest = {
        void apply(inout bit<8> value, out bit<8> result) {
            value = 0;
            result = 0;
        }
    };

    // Only a promotion can let a packet overtake those before it: it waits until they have drained.
    RegisterAction<bit<8>, slot_t, bit<8>>(level_in_force) hold = {
        void apply(inout bit<8> value, out bit<8> result) {
            if (value > meta.level) {
                value = meta.level;
            }
            result = value;
        }
    };

    // A TCP segment without payload waits behind data, but nothing waits for it.
    RegisterAction<bit<8>, slot_t, bit<8>>(level_in_force) stay_behind = {
        void apply(inout bit<8> value, out bit<8> result) {
            result = min(value, meta.level);
        }
    };

    // Kept without a guard too, so that a guard turned on under traffic knows where the flow is.
    RegisterAction<bit<8>, slot_t, bit<8>>(level_in_force) settle = {
        void apply(inout bit<8> value, out bit<8> result) {
            value = meta.level;
            result = value;
        }
    };

    action set_default_level(bit<8> level, bit<8> control_level) {
        meta.level = level;
        meta.control_level = control_level;
    }

    table default_level {
        actions = { set_default_level; }
        default_action = set_default_level(LEVEL_DEFAULT, LEVEL_CONTROL);
        size = 1;
    }

    // Which half of group_level holds. One write here re-ranks every group at once.
    action set_bank(bit<1> bank) {
        meta.bank = bank;
    }

    table active_bank {
        actions = { set_bank; }
        default_action = set_bank(0);
        size = 1;
    }

    action set_level(bit<8> level, bit<32> guard_us, bit<32> slack_us) {
        meta.level = level;
        meta.guard[31:2] = guard_us[29:0];
        meta.slack[31:2] = slack_us[29:0];
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
        gap[31:2] = gap_us[29:0];
    }

    table burst_gap {
        actions = { set_burst_gap; }
        default_action = set_burst_gap(BURST_GAP_US);
        size = 1;
    }

    action set_queue(bit<8> queue, bit<6> dscp, bit<1> rewrite) {
        ig_tm_md.qid = (QueueId_t)queue;
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

    @hidden action see_data() {
        silence = see.execute(meta.slot);
    }

    // With the longest gap, no burst begins.
    @hidden action see_ack() {
        silence = look.execute(meta.slot);
        gap = 0xFFFFFFFF;
    }

    @hidden
    table measure_silence {
        key = {
            meta.is_ack : exact;
        }
        actions = { see_data; see_ack; }
        const entries = {
            0: see_data();
            1: see_ack();
        }
        size = 2;
    }

    @hidden action begin() {
        burst_count.count(meta.slot);
    }

    @hidden
    table count_burst {
        key = {
            gap_left : exact;
        }
        actions = { begin; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            0: begin();
        }
        size = 1;
    }

    @hidden action govern_rest() {
        meta.level = rest.execute(meta.slot);
    }

    @hidden action govern_hold() {
        meta.level = hold.execute(meta.slot);
    }

    @hidden action govern_settle() {
        meta.level = settle.execute(meta.slot);
    }

    @hidden action govern_ack_rest() {
        meta.level = 0;
    }

    @hidden action govern_ack_behind() {
        meta.level = stay_behind.execute(meta.slot);
    }

    @hidden action govern_control() {
        meta.level = meta.control_level;
    }

    // Slack goes before the guard, which goes before nothing. A table, since 64 bits are too much for an `if`.
    @hidden
    table govern {
        key = {
            meta.is_control : ternary;
            meta.is_routing : ternary;
            meta.is_ack     : ternary;
            meta.known      : ternary;
            slack_left      : ternary;
            guard_left      : ternary;
        }
        actions = {
            govern_control; govern_rest; govern_hold; govern_settle; govern_ack_rest; govern_ack_behind; NoAction;
        }
        const entries = {
            (1, _, _, _, _, _): govern_control();
            (_, 1, _, _, _, _): govern_control();
            (_, _, 1, 0, _, _): govern_control();
            (_, _, 1, _, 0, 0): NoAction();
            (_, _, 1, _, 0, _): govern_ack_behind();
            (_, _, 1, _, _, _): govern_ack_rest();
            (_, _, _, _, 0, 0): govern_settle();
            (_, _, _, _, 0, _): govern_hold();
            (_, _, _, _, _, _): govern_rest();
        }
        size = 9;
    }

    // Straight on, with no branch but the flow tables': on Tofino 1 whatever follows a branch waits for its end. So all
    // packets pass through the registers, those that no flow entry knows by slot 0 and group 0, which are nobody's.
    apply {
        default_level.apply();
        active_bank.apply();
        burst_gap.apply();
        gap = gap - 1;  // a unit does not matter, and what was 0 is the longest gap
        now = ig_prsr_md.global_tstamp[39:8];

        if (meta.is_control == 0) {
            flows.apply(ipv4, ipv6, l4, meta);
        }

        group_level.apply();
        measure_silence.apply();
        guard_left = meta.guard |-| silence;
        gap_left = gap |-| silence;
        into_burst = follow.execute(meta.slot);
        slack_left = meta.slack |-| into_burst;
        count_burst.apply();
        govern.apply();
        level_queue.apply();
        if (meta.rewrite == 1 && meta.keep_dscp == 0) {
            if (ipv4.isValid()) {
                ipv4.dscp = meta.dscp;
            } else if (ipv6.isValid()) {
                ipv6.dscp = meta.dscp;
            }
        }
    }
}

#endif

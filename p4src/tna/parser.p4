// Ingress parser: what v1model/parser.p4 understands, and what kind of probe a packet is: the parser compares for
// nothing, tables would need stages. See v1model/int_edge.p4 for why the forms are what they are.
//
// Differences: a packet with IPv4 options, or whose IPv4 checksum is wrong, is not forwarded. The length of the frame is
// not known before egress.

parser LevellerIngressParser(packet_in packet,
                             out ingress_headers_t hdr,
                             out ingress_metadata_t meta,
                             out ingress_intrinsic_metadata_t ig_intr_md) {
    Checksum() ipv4_checksum;

    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        hdr.bridged.setValid();
        hdr.bridged.probe = 0;
        hdr.bridged.plain = 0;
        hdr.bridged.words = 0;
        hdr.bridged.pair_words = 0;
        hdr.bridged.last_words = 0;
        hdr.bridged.sunk = 0;
        hdr.bridged.from_host = 0;
        hdr.bridged.small = 0;
        hdr.bridged.egress_port = 0;
        hdr.bridged.limit = 0;
        hdr.bridged.node_id = 0;
        meta.l4 = { 0, 0, 0, 0 };
        meta.level.is_control = 0;
        meta.level.is_routing = 0;
        meta.level.is_ack = 0;
        meta.level.keep_dscp = 0;
        meta.level.slot = 0;
        meta.level.group = 0;
        meta.level.guard = 0;
        meta.level.slack = 0;
        meta.level.known = 0;
        meta.probe = { 0, 0, 0 };
        meta.ecmp = { 0, 0, 0, 0 };
        meta.form = 0;
        meta.icmpv6 = 0;
        meta.checksum_error = false;
        meta.from_controller = 0;
        meta.fabric_port = 0;
        meta.refused = 0;
        meta.routed = 0;
        transition select(ig_intr_md.ingress_port) {
            TOFINO_CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        meta.from_controller = 1;
        meta.level.is_control = 1;
        meta.level.keep_dscp = 1;
        transition accept;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: check_ipv4;
            ETHERTYPE_IPV6: check_ipv6;
            ETHERTYPE_VLAN: parse_vlan_outer;
            ETHERTYPE_QINQ: parse_vlan_outer;
            default: accept;
        }
    }

    state parse_vlan_outer {
        packet.extract(hdr.vlan_outer);
        transition select(hdr.vlan_outer.ether_type) {
            ETHERTYPE_IPV4: check_ipv4;
            ETHERTYPE_IPV6: check_ipv6;
            ETHERTYPE_VLAN: parse_vlan_inner;
            ETHERTYPE_QINQ: parse_vlan_inner;
            default: accept;
        }
    }

    state parse_vlan_inner {
        packet.extract(hdr.vlan_inner);
        transition select(hdr.vlan_inner.ether_type) {
            ETHERTYPE_IPV4: check_ipv4;
            ETHERTYPE_IPV6: check_ipv6;
            default: accept;
        }
    }

    // Version 4 and IHL 5. A header with options is not taken for IP: it could not be checked, nor its checksum
    // made anew.
    state check_ipv4 {
        transition select(packet.lookahead<bit<8>>()) {
            0x45: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        ipv4_checksum.add(hdr.ipv4);
        meta.checksum_error = ipv4_checksum.verify();
        transition select(hdr.ipv4.dscp, hdr.ipv4.more_fragments, hdr.ipv4.frag_offset, hdr.ipv4.protocol) {
            (INT_DSCP, 0, 0, PROTOCOL_TCP): parse_int_tcp;
            (INT_DSCP, 0, 0, PROTOCOL_UDP): parse_int_udp;
            (INT_DSCP, _, _, _): mark_int;
            (_, _, 0, PROTOCOL_TCP): parse_tcp;
            (_, _, 0, PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }

    state check_ipv6 {
        transition select(packet.lookahead<bit<4>>()) {
            6: parse_ipv6;
            default: accept;
        }
    }

    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        transition select(hdr.ipv6.dscp, hdr.ipv6.next_header) {
            (INT_DSCP, PROTOCOL_TCP): parse_int_tcp;
            (INT_DSCP, PROTOCOL_UDP): parse_int_udp;
            (INT_DSCP, _): mark_int;
            (_, PROTOCOL_TCP): parse_tcp;
            (_, PROTOCOL_UDP): parse_udp;
            (_, PROTOCOL_ICMPV6): parse_icmpv6;
            default: accept;
        }
    }

    state parse_tcp {
        packet.extract(hdr.tcp);
        meta.l4.sport = hdr.tcp.src_port;
        meta.l4.dport = hdr.tcp.dst_port;
        transition accept;
    }

    state parse_udp {
        packet.extract(hdr.udp);
        meta.l4.sport = hdr.udp.src_port;
        meta.l4.dport = hdr.udp.dst_port;
        transition select(hdr.udp.dst_port) {
            PORT_ROCE: parse_bth;
            default: accept;
        }
    }

    state parse_bth {
        meta.form = packet.lookahead<bth_h>().opcode;
        meta.l4.qp = packet.lookahead<bth_h>().dest_qp;
        meta.l4.roce = 1;
        transition accept;
    }

    state parse_icmpv6 {
        meta.form = packet.lookahead<icmpv6_h>().type;
        meta.icmpv6 = 1;
        transition accept;
    }

    // A TCP probe has a header of 20 bytes, INT is found right behind it; int_edge.p4 checks that.
    state parse_int_tcp {
        packet.extract(hdr.tcp);
        meta.l4.sport = hdr.tcp.src_port;
        meta.l4.dport = hdr.tcp.dst_port;
        transition parse_int_shim;
    }

    state parse_int_udp {
        packet.extract(hdr.udp);
        meta.l4.sport = hdr.udp.src_port;
        meta.l4.dport = hdr.udp.dst_port;
        transition parse_int_shim;
    }

    // Shorter than INT_EMPTY_WORDS is malformed.
    state parse_int_shim {
        packet.extract(hdr.int_shim);
        transition select(hdr.int_shim.type, hdr.int_shim.length) {
            (INT_TYPE_MD, INT_EMPTY_WORDS): mark_empty;
            (INT_TYPE_MD, 0 &&& 0xFC): mark_int;
            (INT_TYPE_MD, _): parse_int_md;
            default: mark_int;
        }
    }

    state mark_empty {
        meta.probe.empty = 1;
        transition parse_int_md;
    }

    state parse_int_md {
        packet.extract(hdr.int_md);
        transition select(hdr.int_md.version, hdr.int_md.d) {
            (INT_VERSION, 1): mark_well_formed;
            default: mark_int;
        }
    }

    // Reserved bits, the checksum complement (there is no valid checksum to complement) and domain-specific
    // instructions are not for this switch: INT 2.1, 5.8, has it add nothing then. For the rest, the words that
    // the instructions ask for must be those that the header announces: int_transit.p4 adds them up.
    state mark_well_formed {
        meta.probe.well_formed = 1;
        transition select(packet.lookahead<int_instructions_h>().ask_reserved,
                          packet.lookahead<int_instructions_h>().ask_checksum_complement,
                          packet.lookahead<int_instructions_h>().ds_instruction) {
            (0, 0, 0): mark_plain;
            default: mark_int;
        }
    }

    state mark_plain {
        hdr.bridged.plain = 1;
        transition count_first;
    }

    // Node id, level 1 ports, hop latency, queue: a word each.
    state count_first {
        transition select(packet.lookahead<bit<4>>()) {
            0b0000: count_times;
            0b0001: take_1;
            0b0010: take_1;
            0b0100: take_1;
            0b1000: take_1;
            0b0111: take_3;
            0b1011: take_3;
            0b1101: take_3;
            0b1110: take_3;
            0b1111: take_4;
            default: take_2;
        }
    }
    state take_1 {
        hdr.bridged.words = 1;
        transition count_times;
    }
    state take_2 {
        hdr.bridged.words = 2;
        transition count_times;
    }
    state take_3 {
        hdr.bridged.words = 3;
        transition count_times;
    }
    state take_4 {
        hdr.bridged.words = 4;
        transition count_times;
    }

    // Ingress time, egress time, level 2 ports: two words each.
    state count_times {
        transition select(packet.lookahead<bit<7>>()[2:0]) {
            0b000: count_last;
            0b001: take_one_pair;
            0b010: take_one_pair;
            0b100: take_one_pair;
            0b111: take_three_pairs;
            default: take_two_pairs;
        }
    }
    state take_one_pair {
        hdr.bridged.pair_words = 2;
        transition count_last;
    }
    state take_two_pairs {
        hdr.bridged.pair_words = 4;
        transition count_last;
    }
    state take_three_pairs {
        hdr.bridged.pair_words = 6;
        transition count_last;
    }

    // Transmit utilization, buffer: a word each.
    state count_last {
        transition select(packet.lookahead<bit<9>>()[1:0]) {
            0b00: mark_int;
            0b11: take_last_2;
            default: take_last_1;
        }
    }
    state take_last_1 {
        hdr.bridged.last_words = 1;
        transition mark_int;
    }
    state take_last_2 {
        hdr.bridged.last_words = 2;
        transition mark_int;
    }
    // A probe travels at the control level: the path of a starved flow must be known too. The second half of the
    // INT-MD header stays in the payload, like all behind it.
    state mark_int {
        meta.probe.marked = 1;
        hdr.bridged.small = 1;
        meta.level.is_control = 1;
        meta.level.keep_dscp = 1;
        transition accept;
    }
}

// INT-MD transit, in egress: push what the probe asks of each hop, in front of the older hops (INT 2.1, 5.8).
//
// Times are the switch's nanoseconds, queue occupancy is in the traffic manager's cells (80 bytes on Tofino,
// 176 on Tofino 2). What this target cannot tell is all ones.

control IntTransit(inout egress_headers_t hdr,
                   inout egress_metadata_t meta,
                   in egress_intrinsic_metadata_t eg_intr_md,
                   in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
                   inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    bit<16> words = 0;   // that a hop pushes
    bit<16> bytes = 0;
    bit<16> length = 0;  // of the IP packet, and
    bit<16> stack = 0;   // of the stack, with this hop
    bit<16> over_mtu = 0;
    bit<16> over_stack = 0;
    bit<8> announced = 0;  // words that a hop pushes by the header, and
    bit<8> asked = 0;      // by the instructions, less those announced
    bit<1> understood = 0;
    bit<1> push = 0;

    // Actions, each a step: what they compute the next needs.
    @hidden action count_words() {
        words = (bit<16>)hdr.int_md.hop_ml;
        stack = (bit<16>)hdr.int_shim.length;
    }

    @hidden action count_bytes() {
        bytes = words << 2;
        stack = stack + words;
    }

    @hidden action lengthen_v4() {
        length = hdr.ipv4.total_len + bytes;
    }

    @hidden action lengthen_v6() {
        length = hdr.ipv6.payload_len + bytes;
    }

    @hidden action add_v6_header() {
        length = length + 40;
    }

    @hidden action announce() {
        announced = meta.announced & 31;
        asked = meta.bridged.words + meta.bridged.pair_words;
    }

    @hidden action add_last() {
        asked = asked + meta.bridged.last_words;
    }

    @hidden action compare_words() {
        asked = asked - announced;
    }

    @hidden action compare() {
        over_mtu = length |-| INT_MTU;
        over_stack = stack |-| 255;
    }

    @hidden action use_hop() {
        hdr.int_md.remaining_hops = hdr.int_md.remaining_hops - 1;
    }

    @hidden action lengthen_stack() {
        hdr.int_shim.length = (bit<8>)stack;
    }

    @hidden action tell_queue() {
        hdr.int_queue.queue = meta.bridged.queue;
    }

    @hidden action tell_occupancy() {
        hdr.int_queue.occupancy = (bit<24>)eg_intr_md.deq_qdepth;
    }

    apply {
        announce();
        add_last();
        compare_words();
        if (meta.bridged.plain == 1 && asked == 0) {
            understood = 1;
        }
        count_words();
        count_bytes();
        if (hdr.ipv4.isValid()) {
            lengthen_v4();
        } else {
            lengthen_v6();
            add_v6_header();
        }
        compare();
        if (meta.bridged.from_host == 1 && hdr.int_md.remaining_hops > INT_MAX_HOPS) {
            hdr.int_md.remaining_hops = INT_MAX_HOPS;
        }

        // The edge's last condition, which ingress has no time for.
        if (meta.bridged.from_host == 1 && understood == 0) {
            eg_dprsr_md.drop_ctl = 1;
        }

        if (hdr.int_md.remaining_hops == 0) {
            hdr.int_md.e = 1;
        } else if (understood == 1) {
            if (over_mtu == 0 && over_stack == 0) {
                push = 1;
            } else {
                hdr.int_md.m = 1;
            }
        }

        if (push == 1) {
            use_hop();
            lengthen_stack();
            if (hdr.ipv4.isValid()) {
                hdr.ipv4.total_len = hdr.ipv4.total_len + bytes;
            } else {
                hdr.ipv6.payload_len = hdr.ipv6.payload_len + bytes;
            }
            if (hdr.udp.isValid()) {
                hdr.udp.length = hdr.udp.length + bytes;
            }

            if (hdr.int_md.ask_node_id == 1) {
                hdr.int_node_id.setValid();
                hdr.int_node_id.node_id = meta.bridged.node_id;
            }
            if (hdr.int_md.ask_level1_ports == 1) {
                hdr.int_level1_ports.setValid();
                hdr.int_level1_ports.ingress_port = meta.bridged.ingress_port;
                hdr.int_level1_ports.egress_port = meta.bridged.egress_port;
            }
            if (hdr.int_md.ask_hop_latency == 1) {
                hdr.int_hop_latency.setValid();
                hdr.int_hop_latency.nanoseconds = eg_prsr_md.global_tstamp[31:0] - meta.bridged.ingress_time[31:0];
            }
            if (hdr.int_md.ask_queue == 1) {
                hdr.int_queue.setValid();
                if (meta.bridged.sunk == 1) {
                    hdr.int_queue.queue = 0xFF;
                    hdr.int_queue.occupancy = 0xFFFFFF;
                } else {
                    tell_queue();
                    tell_occupancy();
                }
            }
            if (hdr.int_md.ask_ingress_time == 1) {
                hdr.int_ingress_time.setValid();
                hdr.int_ingress_time.nanoseconds = (bit<64>)meta.bridged.ingress_time;
            }
            if (hdr.int_md.ask_egress_time == 1) {
                hdr.int_egress_time.setValid();
                hdr.int_egress_time.nanoseconds = (bit<64>)eg_prsr_md.global_tstamp;
            }
            if (hdr.int_md.ask_level2_ports == 1) {
                hdr.int_level2_ports.setValid();
                hdr.int_level2_ports.ingress_port = (bit<32>)meta.bridged.ingress_port;
                hdr.int_level2_ports.egress_port = (bit<32>)meta.bridged.egress_port;
            }
            if (hdr.int_md.ask_tx_utilization == 1) {
                hdr.int_tx_utilization.setValid();
                hdr.int_tx_utilization.value = 0xFFFFFFFF;
            }
            if (hdr.int_md.ask_buffer == 1) {
                hdr.int_buffer.setValid();
                hdr.int_buffer.value = 0xFFFFFFFF;
            }
        }
    }
}

// What counts as control traffic besides probes; v1model/control_traffic.p4 says why.
//
// Two controls, since the first decides before the flow lookup, and knows neither the frame's length (hidden_data.p4)
// nor where the packet came from.

// Packets that have no room for data, as a host may send them: a TCP segment without payload, which is no reset
// (level_control.p4 looks for its flow first), a CNP (CNP_UDP_BYTES), a neighbour discovery message (ICMPV6_ND_FIRST to
// ICMPV6_ND_LAST, ND_MAX_BYTES).
control EmptyTraffic(inout ingress_headers_t hdr, inout ingress_metadata_t meta) {
    @hidden action is_control() {
        meta.level.is_control = 1;
        hdr.bridged.small = 1;
    }

    @hidden action is_ack() {
        meta.level.is_ack = 1;
        hdr.bridged.small = 1;
    }

    @hidden
    table empty_traffic {
        key = {
            hdr.ipv4.isValid()  : ternary;
            hdr.ipv4.total_len  : ternary;
            hdr.ipv6.isValid()  : ternary;
            hdr.ipv6.payload_len : ternary;
            hdr.ipv6.hop_limit  : ternary;
            hdr.tcp.isValid()   : ternary;
            hdr.tcp.data_offset : ternary;
            hdr.tcp.rst         : ternary;
            hdr.udp.length      : ternary;
            meta.l4.roce        : ternary;
            meta.icmpv6         : ternary;
            meta.form           : ternary;
        }
        actions = { is_control; is_ack; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            (true, 40, _, _, _, true, 5, 0, _, _, _, _): is_ack();
            (true, 44, _, _, _, true, 6, 0, _, _, _, _): is_ack();
            (true, 48, _, _, _, true, 7, 0, _, _, _, _): is_ack();
            (true, 52, _, _, _, true, 8, 0, _, _, _, _): is_ack();
            (true, 56, _, _, _, true, 9, 0, _, _, _, _): is_ack();
            (true, 60, _, _, _, true, 10, 0, _, _, _, _): is_ack();
            (true, 64, _, _, _, true, 11, 0, _, _, _, _): is_ack();
            (true, 68, _, _, _, true, 12, 0, _, _, _, _): is_ack();
            (true, 72, _, _, _, true, 13, 0, _, _, _, _): is_ack();
            (true, 76, _, _, _, true, 14, 0, _, _, _, _): is_ack();
            (true, 80, _, _, _, true, 15, 0, _, _, _, _): is_ack();
            (_, _, true, 20, _, true, 5, 0, _, _, _, _): is_ack();
            (_, _, true, 24, _, true, 6, 0, _, _, _, _): is_ack();
            (_, _, true, 28, _, true, 7, 0, _, _, _, _): is_ack();
            (_, _, true, 32, _, true, 8, 0, _, _, _, _): is_ack();
            (_, _, true, 36, _, true, 9, 0, _, _, _, _): is_ack();
            (_, _, true, 40, _, true, 10, 0, _, _, _, _): is_ack();
            (_, _, true, 44, _, true, 11, 0, _, _, _, _): is_ack();
            (_, _, true, 48, _, true, 12, 0, _, _, _, _): is_ack();
            (_, _, true, 52, _, true, 13, 0, _, _, _, _): is_ack();
            (_, _, true, 56, _, true, 14, 0, _, _, _, _): is_ack();
            (_, _, true, 60, _, true, 15, 0, _, _, _, _): is_ack();
            (true, 60, _, _, _, _, _, _, CNP_UDP_BYTES, 1, _, BTH_OPCODE_CNP): is_control();
            (_, _, true, 40, _, _, _, _, CNP_UDP_BYTES, 1, _, BTH_OPCODE_CNP): is_control();
            (_, _, _, 0 &&& 0xFFE0, HOP_LIMIT_MAX, _, _, _, _, _, 1, 133): is_control();
            (_, _, _, 32 &&& 0xFFF8, HOP_LIMIT_MAX, _, _, _, _, _, 1, 133): is_control();
            (_, _, _, 40, HOP_LIMIT_MAX, _, _, _, _, _, 1, 133): is_control();
            (_, _, _, 0 &&& 0xFFE0, HOP_LIMIT_MAX, _, _, _, _, _, 1, 134 &&& 0xFE): is_control();
            (_, _, _, 32 &&& 0xFFF8, HOP_LIMIT_MAX, _, _, _, _, _, 1, 134 &&& 0xFE): is_control();
            (_, _, _, 40, HOP_LIMIT_MAX, _, _, _, _, _, 1, 134 &&& 0xFE): is_control();
            (_, _, _, 0 &&& 0xFFE0, HOP_LIMIT_MAX, _, _, _, _, _, 1, 136 &&& 0xFE): is_control();
            (_, _, _, 32 &&& 0xFFF8, HOP_LIMIT_MAX, _, _, _, _, _, 1, 136 &&& 0xFE): is_control();
            (_, _, _, 40, HOP_LIMIT_MAX, _, _, _, _, _, 1, 136 &&& 0xFE): is_control();
        }
        size = 40;
    }

    apply {
        empty_traffic.apply();
    }
}

// Routing protocols, from a fabric port, with the TTL that no host behind a router can give.
control RoutingTraffic(in ingress_headers_t hdr, inout ingress_metadata_t meta) {
    @hidden action is_routing() {
        meta.level.is_routing = 1;
    }

    @hidden
    table routing_traffic {
        key = {
            meta.fabric_port       : ternary;
            hdr.ipv4.isValid()     : ternary;
            hdr.ipv4.ttl           : ternary;
            hdr.ipv4.protocol      : ternary;
            hdr.ipv6.isValid()     : ternary;
            hdr.ipv6.hop_limit     : ternary;
            hdr.ipv6.next_header   : ternary;
            hdr.tcp.isValid()      : ternary;
            hdr.udp.isValid()      : ternary;
            meta.l4.sport          : ternary;
            meta.l4.dport          : ternary;
        }
        actions = { is_routing; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            (1, true, HOP_LIMIT_MAX, _, _, _, _, true, _, PORT_BGP, _): is_routing();
            (1, true, HOP_LIMIT_MAX, _, _, _, _, true, _, _, PORT_BGP): is_routing();
            (1, true, HOP_LIMIT_MAX, _, _, _, _, _, true, _, PORT_BFD): is_routing();
            (1, true, HOP_LIMIT_MAX, PROTOCOL_OSPF, _, _, _, _, _, _, _): is_routing();
            (1, _, _, _, true, HOP_LIMIT_MAX, _, true, _, PORT_BGP, _): is_routing();
            (1, _, _, _, true, HOP_LIMIT_MAX, _, true, _, _, PORT_BGP): is_routing();
            (1, _, _, _, true, HOP_LIMIT_MAX, _, _, true, _, PORT_BFD): is_routing();
            (1, _, _, _, true, HOP_LIMIT_MAX, PROTOCOL_OSPF, _, _, _, _): is_routing();
        }
        size = 8;
    }

    apply {
        routing_traffic.apply();
    }
}

// Ethernet, up to two VLAN tags, IPv4 with options or IPv6, TCP, UDP or ICMPv6, then INT or a RoCEv2 BTH.
//
// Whatever is not understood is left in the payload: a malformed IP header makes the packet non-IP, a
// fragment that is not the first has no L4 header, IPv6 extension headers are not walked. A packet that ends
// inside a header sets parser_error, and is dropped.

parser LevellerParser(packet_in packet,
                      out headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {

    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
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

    // Version 4 and IHL 5 is nearly every packet; IHL 6 to 15 has options; less is malformed.
    state check_ipv4 {
        transition select(packet.lookahead<bit<8>>()) {
            0x45: parse_ipv4;
            0x40 &&& 0xFC: accept;
            0x44: accept;
            0x40 &&& 0xF0: parse_ipv4_with_options;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        meta.dscp = hdr.ipv4.dscp;
        transition select(hdr.ipv4.frag_offset, hdr.ipv4.protocol) {
            (0, PROTOCOL_TCP): parse_tcp;
            (0, PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }

    state parse_ipv4_with_options {
        packet.extract(hdr.ipv4);
        packet.extract(hdr.ipv4_options, ((bit<32>)hdr.ipv4.ihl - 5) << 5);
        meta.dscp = hdr.ipv4.dscp;
        transition select(hdr.ipv4.frag_offset, hdr.ipv4.protocol) {
            (0, PROTOCOL_TCP): parse_tcp;
            (0, PROTOCOL_UDP): parse_udp;
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
        meta.dscp = hdr.ipv6.dscp;
        transition select(hdr.ipv6.next_header) {
            PROTOCOL_TCP: parse_tcp;
            PROTOCOL_UDP: parse_udp;
            PROTOCOL_ICMPV6: parse_icmpv6;
            default: accept;
        }
    }

    // A TCP probe has a header of 20 bytes: INT is found right behind it.
    state parse_tcp {
        packet.extract(hdr.tcp);
        meta.l4.sport = hdr.tcp.src_port;
        meta.l4.dport = hdr.tcp.dst_port;
        transition select(meta.dscp, hdr.tcp.data_offset) {
            (INT_DSCP, 5): parse_int_shim;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        meta.l4.sport = hdr.udp.src_port;
        meta.l4.dport = hdr.udp.dst_port;
        transition select(meta.dscp, hdr.udp.dst_port) {
            (INT_DSCP, _): parse_int_shim;
            (_, PORT_ROCE): parse_bth;
            default: accept;
        }
    }

    state parse_icmpv6 {
        packet.extract(hdr.icmpv6);
        transition accept;
    }

    state parse_bth {
        packet.extract(hdr.bth);
        meta.l4.qp = hdr.bth.dest_qp;
        meta.l4.roce = 1;
        transition accept;
    }

    // The newest hop is pushed in front, so the hops that are there already can stay in the payload.
    state parse_int_shim {
        packet.extract(hdr.int_shim);
        transition select(hdr.int_shim.type) {
            INT_TYPE_MD: parse_int_md;
            default: accept;
        }
    }

    state parse_int_md {
        packet.extract(hdr.int_md);
        transition accept;
    }
}

// Egress parser: only a probe is looked into, of any other packet the frame stays payload.
//
// Ingress has let through only probes in the form that is parsed here: IHL 5, TCP with 20 bytes or UDP.

parser LevellerEgressParser(packet_in packet,
                            out egress_headers_t hdr,
                            out egress_metadata_t meta,
                            out egress_intrinsic_metadata_t eg_intr_md) {
    state start {
        packet.extract(eg_intr_md);
        meta.announced = 0;
        packet.extract(meta.bridged);
        transition select(meta.bridged.probe) {
            1: parse_ethernet;
            default: accept;
        }
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            ETHERTYPE_VLAN: parse_vlan_outer;
            ETHERTYPE_QINQ: parse_vlan_outer;
            default: accept;
        }
    }

    state parse_vlan_outer {
        packet.extract(hdr.vlan_outer);
        transition select(hdr.vlan_outer.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            ETHERTYPE_VLAN: parse_vlan_inner;
            ETHERTYPE_QINQ: parse_vlan_inner;
            default: accept;
        }
    }

    state parse_vlan_inner {
        packet.extract(hdr.vlan_inner);
        transition select(hdr.vlan_inner.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            PROTOCOL_TCP: parse_tcp;
            default: parse_udp;
        }
    }

    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        transition select(hdr.ipv6.next_header) {
            PROTOCOL_TCP: parse_tcp;
            default: parse_udp;
        }
    }

    state parse_tcp {
        packet.extract(hdr.tcp);
        transition parse_int;
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition parse_int;
    }

    // The newest hop is pushed in front, so the hops that are there already can stay in the payload.
    state parse_int {
        packet.extract(hdr.int_shim);
        meta.announced = packet.lookahead<bit<24>>()[7:0];
        packet.extract(hdr.int_md);
        transition accept;
    }
}

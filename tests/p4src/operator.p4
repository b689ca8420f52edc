// An operator's own pipeline, as small as can be: static forwarding by ingress port, and Leveller's level
// control as a library. Nothing of the reference program but level_control.p4 and what that includes.

#include <core.p4>
#include <v1model.p4>
#include "level_control.p4"

struct my_headers_t {
    ethernet_h ethernet;
    ipv4_h     inner;
    ipv6_h     unused;
    udp_h      udp;
}

struct my_metadata_t {
    transport_t      ports;
    level_metadata_t level;
}

parser MyParser(packet_in packet, out my_headers_t hdr, inout my_metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.inner);
        transition select(hdr.inner.protocol) {
            PROTOCOL_UDP: parse_udp;
            default: accept;
        }
    }
    state parse_udp {
        packet.extract(hdr.udp);
        meta.ports.sport = hdr.udp.src_port;
        meta.ports.dport = hdr.udp.dst_port;
        transition accept;
    }
}

control MyIngress(inout my_headers_t hdr, inout my_metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    LevelControl() level_control;
    apply {
        standard_metadata.egress_spec = standard_metadata.ingress_port ^ 3;
        level_control.apply(hdr.inner, hdr.unused, meta.ports, meta.level, standard_metadata);
    }
}

control MyEgress(inout my_headers_t hdr, inout my_metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    apply { }
}

control MyChecksum(inout my_headers_t hdr, inout my_metadata_t meta) {
    apply { }
}

control MyDeparser(packet_out packet, in my_headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.inner);
        packet.emit(hdr.udp);
    }
}

V1Switch(MyParser(), MyChecksum(), MyIngress(), MyEgress(), MyChecksum(), MyDeparser()) main;

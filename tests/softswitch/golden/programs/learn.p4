// Digests of several structs, from header fields and metadata, wide and narrow.
#include <core.p4>
#include <v1model.p4>

header frame_t {
    bit<48>  src;
    bit<8>   kind;
    bit<1>   flag;
    bit<7>   rest;
    bit<128> wide;
}
struct small_t {
    bit<48> src;
    bit<9>  port;
}
struct large_t {
    bit<128> wide;
    bit<1>   flag;
    bit<7>   rest;
    bit<16>  sum;
}
struct headers_t {
    frame_t frame;
}
struct metadata_t {
    bit<16> sum;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.frame);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action learn_small() {
        digest<small_t>(1, { hdr.frame.src, sm.ingress_port });
    }
    action learn_large() {
        meta.sum = (bit<16>)hdr.frame.src;
        digest<large_t>(1, { hdr.frame.wide, hdr.frame.flag, hdr.frame.rest, meta.sum });
    }
    table known {
        key = { hdr.frame.src : exact; }
        actions = { NoAction; learn_small; learn_large; }
        default_action = learn_small();
        size = 16;
    }
    apply {
        sm.egress_spec = 2;
        known.apply();
        if (hdr.frame.kind == 1) { learn_large(); }
        hdr.frame.src = hdr.frame.src + 1;
        hdr.frame.rest = 0;
        if (hdr.frame.kind == 2) { mark_to_drop(sm); }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }

control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.frame);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

// log_msg, assert and assume that hold, random with one choice, hashes into ranges, with other polynomials.
#include <core.p4>
#include <v1model.p4>

header in_t {
    bit<8>  a;
    bit<16> b;
    bit<32> c;
    bit<8>  more;
}
header extra_t {
    bit<24> value;
}
header out_t {
    bit<16> small;
    bit<32> wide;
    bit<8>  narrow;
    bit<16> missing;
    bit<16> custom;
    bit<32> custom32;
    bit<16> nested;
    bit<16> random;
    bit<64> sum;
    bit<16> offset;
}
struct pair_t {
    bit<8>  x;
    bit<16> y;
}
struct headers_t {
    out_t   o;
    in_t    i;
    extra_t extra;
}
struct metadata_t {
    pair_t pair;
    bit<16> low;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.i);
        transition select(hdr.i.more) {
            0: accept;
            default: extra;
        }
    }
    state extra {
        packet.extract(hdr.extra);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 2;
        hdr.o.setValid();
        meta.pair = { hdr.i.a, hdr.i.b };
        meta.low = 5;
        hash(hdr.o.small, HashAlgorithm.crc16, 16w100, { hdr.i.a, hdr.i.c }, 16w7);
        hash(hdr.o.wide, HashAlgorithm.crc32, 32w1, { hdr.i.b }, 32w0xffffffff);
        hash(hdr.o.narrow, HashAlgorithm.csum16, 8w0, { hdr.i.a, hdr.i.b, hdr.i.c }, 16w256);
        if (hdr.extra.isValid()) {
            hash(hdr.o.missing, HashAlgorithm.crc16, 16w0, { hdr.extra.value, hdr.i.a }, 32w65536);
        }
        hash(hdr.o.custom, HashAlgorithm.crc16_custom, 16w0, { hdr.i.c }, 32w65536);
        hash(hdr.o.custom32, HashAlgorithm.crc32_custom, 32w0, { hdr.i.c, 8w7 }, 64w0x100000000);
        hash(hdr.o.nested, HashAlgorithm.xor16, 16w0, { meta.pair.x, meta.pair.y, hdr.i.c }, 32w65536);
        hash(hdr.o.sum, HashAlgorithm.identity, 64w0, { hdr.i.c, hdr.i.b, hdr.i.a, 8w1 }, 64w0xffffffffffff);
        hash(hdr.o.offset, HashAlgorithm.crc32, meta.low, { hdr.i.a }, hdr.i.b);
        random(hdr.o.random, 16w42, 16w42);
        log_msg("a {} b {}", { hdr.i.a, hdr.i.b });
        log_msg("nothing to add");
        assert(hdr.i.isValid() || sm.parser_error != error.NoError);
        assume(hdr.o.isValid());
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }

control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.o);
        packet.emit(hdr.i);
        packet.emit(hdr.extra);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

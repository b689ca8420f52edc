// Arithmetic, slices, casts, signed integers, header copies and comparisons: every result goes into a header.
#include <core.p4>
#include <v1model.p4>

header values_t {
    bit<8>  a;
    bit<8>  b;
    int<8>  s;
    int<8>  t;
    bit<32> w;
    bit<8>  n;
}

header results_t {
    bit<8>  add;
    bit<8>  sub;
    bit<8>  mul;
    bit<8>  sat_add;
    bit<8>  sat_sub;
    int<8>  ssat_add;
    int<8>  ssat_sub;
    int<8>  sadd;
    bit<8>  neg;
    bit<8>  inv;
    bit<32> shl;
    bit<32> shr;
    int<8>  sshr;
    bit<8>  slice;
    bit<16> concat;
    bit<8>  narrow;
    int<16> widen;
    bit<8>  mux;
    bit<1>  lt;
    bit<1>  slt;
    bit<1>  eq;
    bit<1>  same;
    bit<4>  nibble;
    bit<8>  xor;
}

struct headers_t {
    values_t  values;
    values_t  copy;
    results_t results;
}

struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.values);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }
control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.results.setValid();
        hdr.results.add = hdr.values.a + hdr.values.b;
        hdr.results.sub = hdr.values.a - hdr.values.b;
        hdr.results.mul = hdr.values.a * hdr.values.b;
        hdr.results.sat_add = hdr.values.a |+| hdr.values.b;
        hdr.results.sat_sub = hdr.values.a |-| hdr.values.b;
        hdr.results.ssat_add = hdr.values.s |+| hdr.values.t;
        hdr.results.ssat_sub = hdr.values.s |-| hdr.values.t;
        hdr.results.sadd = hdr.values.s + hdr.values.t;
        hdr.results.neg = -hdr.values.a;
        hdr.results.inv = ~hdr.values.a;
        hdr.results.shl = hdr.values.w << hdr.values.n;
        hdr.results.shr = hdr.values.w >> hdr.values.n;
        hdr.results.sshr = hdr.values.s >> 2;
        hdr.results.slice = hdr.values.w[19:12];
        hdr.results.concat = hdr.values.a ++ hdr.values.b;
        hdr.results.narrow = (bit<8>)hdr.values.w;
        hdr.results.widen = (int<16>)hdr.values.s;
        hdr.results.mux = hdr.values.a < hdr.values.b ? hdr.values.a : hdr.values.b;
        hdr.results.lt = (bit<1>)(hdr.values.a < hdr.values.b);
        hdr.results.slt = (bit<1>)(hdr.values.s < hdr.values.t);
        hdr.results.eq = (bit<1>)(hdr.values.a == hdr.values.b);
        hdr.results.nibble = hdr.values.b[3:0];
        hdr.results.nibble[2:1] = hdr.values.a[7:6];
        hdr.results.xor = (hdr.values.a ^ hdr.values.b) | (hdr.values.a & 0xf);
        hdr.copy = hdr.values;
        if (hdr.values.n == 7) {
            hdr.copy.a = hdr.copy.a + 1;
        }
        hdr.results.same = (bit<1>)(hdr.copy == hdr.values);
        sm.egress_spec = 2;
    }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.results);
        packet.emit(hdr.copy);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

// Arithmetic on odd and large widths, signed and unsigned: 1, 7, 33, 64 and 128 bits.
#include <core.p4>
#include <v1model.p4>

header in_t {
    bit<1>   one;
    bit<7>   seven;
    bit<33>  a;
    int<33>  s;
    bit<6>   shift;
    bit<64>  q;
    bit<128> w;
    int<64>  z;
}
header out_t {
    bit<33>  sum;
    bit<33>  sat;
    int<33>  ssat;
    int<33>  sneg;
    bit<4>   pad;
    bit<64>  qmul;
    bit<64>  qshl;
    int<64>  zshr;
    bit<128> wshl;
    bit<128> wadd;
    bit<128> cat;
    bit<64>  part;
    int<64>  zmix;
    bit<8>   flags;
    bit<7>   mod;
    bit<1>   xor;
    bit<8>   div;
}
struct headers_t {
    in_t  i;
    out_t o;
}
struct metadata_t {
    bit<64> t;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.i);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 2;
        hdr.o.setValid();
        hdr.o.sum = hdr.i.a + (bit<33>)hdr.i.q[32:0];
        hdr.o.sat = hdr.i.a |+| hdr.i.q[32:0];
        hdr.o.ssat = hdr.i.s |-| (int<33>)hdr.i.a;
        hdr.o.sneg = -hdr.i.s;
        hdr.o.qmul = hdr.i.q * 0x9e3779b97f4a7c15;
        hdr.o.qshl = hdr.i.q << hdr.i.shift;
        hdr.o.zshr = hdr.i.z >> hdr.i.shift;
        hdr.o.wshl = hdr.i.w << (bit<8>)(hdr.i.shift ++ 2w1);
        hdr.o.wadd = hdr.i.w + (bit<128>)hdr.i.q;
        hdr.o.cat = hdr.i.q ++ (bit<64>)hdr.i.z;
        hdr.o.part = 0;
        hdr.o.part[40:9] = hdr.i.w[95:64];
        hdr.o.part[63:63] = hdr.i.one;
        hdr.o.zmix = hdr.i.z + (int<64>)(int<33>)hdr.i.s;
        hdr.o.flags = 0;
        if (hdr.i.s < 0) { hdr.o.flags[0:0] = 1; }
        if (hdr.i.z >= (int<64>)hdr.i.s) { hdr.o.flags[1:1] = 1; }
        if (hdr.i.w > (bit<128>)hdr.i.q) { hdr.o.flags[2:2] = 1; }
        if ((hdr.i.seven & 0x55) != 0 || hdr.i.one == 1 && hdr.i.a[32:32] == 0) { hdr.o.flags[3:3] = 1; }
        if (!(hdr.i.q[7:0] == hdr.i.w[7:0])) { hdr.o.flags[4:4] = 1; }
        hdr.o.mod = hdr.i.seven & 0x0f;
        hdr.o.xor = hdr.i.one ^ hdr.i.seven[0:0];
        hdr.o.div = (bit<8>)(~hdr.i.seven ++ hdr.i.one) - 3;
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }

control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.o);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

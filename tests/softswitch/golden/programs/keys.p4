// Table keys that are expressions, slices, masks and validity; mixed match kinds, wide and narrow.
#include <core.p4>
#include <v1model.p4>

header one_t {
    bit<8>   a;
    bit<8>   b;
    bit<128> wide;
    int<8>   signed_;
    bit<4>   low;
    bit<4>   high;
    bit<64>  path;
}
header two_t {
    bit<16> value;
}
struct headers_t {
    one_t one;
    two_t two;
}
struct metadata_t {
    bool flag;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.one);
        transition select(hdr.one.high) {
            1: more;
            default: accept;
        }
    }
    state more {
        packet.extract(hdr.two);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action mark(bit<8> letter) { hdr.one.path = hdr.one.path << 8 | (bit<64>)letter; }
    table sums {
        key = { hdr.one.a + hdr.one.b : exact @name("sum"); hdr.one.a & 0x0f : exact @name("low"); }
        actions = { mark; }
        default_action = mark(0x61);
    }
    table wides {
        key = { hdr.one.wide : lpm; }
        actions = { mark; }
        default_action = mark(0x62);
    }
    table slices {
        key = { hdr.one.wide[127:96] : ternary @name("top"); hdr.one.wide[3:0] : range @name("end"); }
        actions = { mark; }
        default_action = mark(0x63);
    }
    table states {
        key = { hdr.two.isValid() : exact; meta.flag : exact @name("flag"); hdr.one.low : exact; }
        actions = { mark; }
        default_action = mark(0x64);
    }
    table signs {
        key = { hdr.one.signed_ : ternary; hdr.one.low ++ hdr.one.high : exact @name("joined"); }
        actions = { mark; }
        default_action = mark(0x65);
    }
    table absent {
        key = { hdr.two.value : exact; }
        actions = { mark; }
        default_action = mark(0x66);
    }
    table maybe {
        key = { hdr.one.a : optional; hdr.one.wide[15:0] : lpm @name("low16"); hdr.one.b : range; }
        actions = { mark; }
        default_action = mark(0x67);
    }
    table none {
        actions = { mark; NoAction; }
        default_action = NoAction();
    }
    apply {
        sm.egress_spec = 2;
        meta.flag = hdr.one.a > hdr.one.b;
        sums.apply();
        wides.apply();
        slices.apply();
        states.apply();
        signs.apply();
        absent.apply();
        maybe.apply();
        none.apply();
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }

control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.one);
        packet.emit(hdr.two);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

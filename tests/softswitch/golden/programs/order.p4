// Deparsing in another order than parsing, headers parsed and not emitted, extracted twice by two paths.
#include <core.p4>
#include <v1model.p4>

header a_t {
    bit<8> kind;
    bit<8> value;
}
header b_t {
    bit<16> value;
}
header c_t {
    bit<4> left;
    bit<4> right;
}
struct inner_t {
    b_t b;
    c_t c;
}
struct headers_t {
    a_t     a;
    inner_t inner;
    b_t     other;
    c_t     last;
}
struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.a);
        transition select(hdr.a.kind) {
            1: b_first;
            2: c_first;
            3: other;
            4: both;
            5: peek;
            default: accept;
        }
    }
    state b_first {
        packet.extract(hdr.inner.b);
        packet.extract(hdr.inner.c);
        transition last;
    }
    state c_first {
        packet.extract(hdr.inner.c);
        packet.extract(hdr.inner.b);
        transition last;
    }
    state other {
        packet.extract(hdr.other);
        transition b_first;
    }
    state both {
        packet.extract(hdr.last);
        packet.extract(hdr.other);
        transition accept;
    }
    state peek {
        packet.lookahead<bit<40>>();
        transition accept;
    }
    state last {
        transition select(hdr.inner.c.left) {
            0: accept;
            default: extract_last;
        }
    }
    state extract_last {
        packet.extract(hdr.last);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 2;
        if (sm.parser_error != error.NoError) { hdr.a.kind = 0xee; }
        hdr.inner.c.right = hdr.inner.c.right + 1;
        if (hdr.a.value == 1) { hdr.other.setValid(); hdr.other.value = 0xabcd; }
        if (hdr.a.value == 2) { hdr.a.setInvalid(); }
        if (hdr.a.value == 3) { hdr.last.left = 7; }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }

control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.last);
        packet.emit(hdr.inner);
        packet.emit(hdr.a);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

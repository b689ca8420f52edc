// Headers added, removed and moved in the middle of a packet; MPLS-like labels on a stack; varbit kept and moved.
#include <core.p4>
#include <v1model.p4>

header outer_t {
    bit<16> id;
    bit<16> next;
}
header label_t {
    bit<20> label;
    bit<3>  tc;
    bit<1>  bottom;
    bit<8>  ttl;
}
header inner_t {
    bit<8>      size;
    bit<8>      next;
    varbit<128> body;
}
struct headers_t {
    outer_t    outer;
    label_t[3] labels;
    inner_t    inner;
    outer_t    second;
    inner_t    spare;
}
struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.outer);
        transition select(hdr.outer.next) {
            0x8847: labels;
            0x0800: inner;
            0x6558: second;
            default: accept;
        }
    }
    state labels {
        packet.extract(hdr.labels.next);
        transition select(hdr.labels.last.bottom) {
            1: inner;
            default: labels;
        }
    }
    state second {
        packet.extract(hdr.second);
        transition select(hdr.second.next) {
            0x0800: inner;
            default: accept;
        }
    }
    state inner {
        bit<8> size = packet.lookahead<bit<8>>();
        packet.extract(hdr.inner, (bit<32>)size << 3);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action push(bit<20> label, bit<3> tc) {
        hdr.labels.push_front(1);
        hdr.labels[0].setValid();
        hdr.labels[0] = { label, tc, (bit<1>)(!hdr.labels[1].isValid() ? 1w1 : 0), 64 };
        hdr.outer.next = 0x8847;
    }
    action pop() {
        hdr.labels.pop_front(1);
    }
    action swap(bit<20> label) {
        hdr.labels[0].label = label;
        hdr.labels[0].ttl = hdr.labels[0].ttl - 1;
    }
    action wrap() {
        hdr.second = hdr.outer;
        hdr.outer.id = 0xbeef;
        hdr.outer.next = 0x6558;
    }
    action unwrap() {
        hdr.outer = hdr.second;
        hdr.second.setInvalid();
    }
    action move() {
        hdr.spare = hdr.inner;
        hdr.inner.setInvalid();
        hdr.spare.next = 0x42;
    }
    action strip() {
        hdr.outer.setInvalid();
        hdr.labels[1].setInvalid();
    }
    table forward {
        key = { hdr.outer.id : exact; }
        actions = { push; pop; swap; wrap; unwrap; move; strip; NoAction; }
        default_action = NoAction();
    }
    apply {
        sm.egress_spec = 2;
        forward.apply();
        if (hdr.labels[0].isValid() && hdr.labels[0].ttl == 0) { mark_to_drop(sm); }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }

control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.outer);
        packet.emit(hdr.labels);
        packet.emit(hdr.inner);
        packet.emit(hdr.second);
        packet.emit(hdr.spare);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

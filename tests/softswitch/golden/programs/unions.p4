// A header union: one member is valid at most, by extraction, setValid and assignment.
#include <core.p4>
#include <v1model.p4>

header kind_t {
    bit<8> kind;
    bit<8> then;
}
header short_t {
    bit<8> value;
}
header long_t {
    bit<16> value;
    bit<8>  more;
}
header_union either_t {
    short_t small;
    long_t  large;
}
header seen_t {
    bit<8> small;
    bit<8> large;
    bit<16> value;
}
struct headers_t {
    seen_t   seen;
    kind_t   kind;
    either_t either;
}
struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.kind);
        transition select(hdr.kind.kind) {
            0: small;
            1: large;
            2: both;
            default: accept;
        }
    }
    state small {
        packet.extract(hdr.either.small);
        transition accept;
    }
    state large {
        packet.extract(hdr.either.large);
        transition accept;
    }
    state both {
        packet.extract(hdr.either.small);
        transition select(hdr.either.small.value) {
            0xff: large;
            default: accept;
        }
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 2;
        hdr.seen.setValid();
        if (hdr.kind.then == 1) {
            hdr.either.large.setValid();
            hdr.either.large.value = 0x1234;
            hdr.either.large.more = 0x56;
        } else if (hdr.kind.then == 2) {
            hdr.either.small.setValid();
            hdr.either.small.value = 0x99;
        } else if (hdr.kind.then == 3) {
            hdr.either.small.setInvalid();
        } else if (hdr.kind.then == 4) {
            hdr.either.small = { 7 };
        }
        if (!hdr.either.isValid()) { hdr.seen.value = 0xdead; }
        if (hdr.either.small.isValid()) {
            hdr.seen.small = 1;
            hdr.seen.value = (bit<16>)hdr.either.small.value;
        }
        if (hdr.either.large.isValid()) {
            hdr.seen.large = 1;
            hdr.seen.value = hdr.either.large.value;
            hdr.either.large.value = hdr.either.large.value + 1;
        }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }

control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.seen);
        packet.emit(hdr.kind);
        packet.emit(hdr.either);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

// A stack of header unions: refused, by name.
#include <core.p4>
#include <v1model.p4>

header short_t { bit<8> value; }
header long_t { bit<16> value; }

header_union either_t {
    short_t short_form;
    long_t  long_form;
}

struct headers_t {
    short_t  first;
    either_t[2] either;
}

struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.first);
        transition select(hdr.first.value) {
            0: parse_short;
            default: parse_long;
        }
    }
    state parse_short {
        packet.extract(hdr.either.next.short_form);
        transition accept;
    }
    state parse_long {
        packet.extract(hdr.either.next.long_form);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply { sm.egress_spec = 1; }
}
control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.first);
        packet.emit(hdr.either);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

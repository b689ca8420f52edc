// Resubmit and recirculate, mixed, with field lists of metadata; the last call counts.
#include <core.p4>
#include <v1model.p4>

header do_t {
    bit<8> resubmits;
    bit<8> rounds;
    bit<8> tag;
}
header log_t {
    bit<8>  instance;
    bit<8>  passes;
    bit<8>  lost;
    bit<16> length;
}
struct headers_t {
    log_t log;
    do_t  todo;
}
struct metadata_t {
    @field_list(1, 2)
    bit<8> passes;
    @field_list(2)
    bit<8> extra;
    bit<8> lost;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        transition select(sm.instance_type) {
            4: recirculated;
            default: fresh;
        }
    }
    state recirculated {
        packet.extract(hdr.log);
        transition fresh;
    }
    state fresh {
        packet.extract(hdr.todo);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 3;
        meta.passes = meta.passes + 1;
        meta.lost = meta.lost + 1;
        if (hdr.todo.resubmits >= meta.passes && sm.instance_type != 4) {
            meta.extra = 5;
            hdr.todo.tag = 0xdd;
            resubmit_preserving_field_list(1);
            resubmit_preserving_field_list(2);
        }
        if (hdr.todo.tag == 0xff) { mark_to_drop(sm); }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.log.setValid();
        hdr.log.instance = (bit<8>)sm.instance_type;
        hdr.log.passes = meta.passes + meta.extra;
        hdr.log.lost = meta.lost;
        hdr.log.length = (bit<16>)sm.packet_length;
        hdr.todo.tag = hdr.todo.tag + 1;
        if (hdr.todo.rounds > 0) {
            hdr.todo.rounds = hdr.todo.rounds - 1;
            recirculate_preserving_field_list(2);
        }
    }
}

control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.log);
        packet.emit(hdr.todo);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

// truncate in both controls, below and above the packet's size, with multicast and recirculation; drop after it.
#include <core.p4>
#include <v1model.p4>

header do_t {
    bit<8> what;
    bit<8> size;
}
struct headers_t {
    do_t todo;
}
struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.todo);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 2;
        if (hdr.todo.what == 1) { truncate((bit<32>)hdr.todo.size); }
        if (hdr.todo.what == 2) { truncate((bit<32>)hdr.todo.size); sm.mcast_grp = 1; }
        if (hdr.todo.what == 5) { clone(CloneType.I2E, 1); truncate(4); }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.todo.what == 3) { truncate((bit<32>)hdr.todo.size); }
        if (hdr.todo.what == 4) {
            truncate((bit<32>)hdr.todo.size);
            hdr.todo.what = 0;
            recirculate_preserving_field_list(0);
        }
        if (hdr.todo.what == 6 && sm.instance_type == 0) { clone(CloneType.E2E, 1); truncate(3); }
        if (hdr.todo.what == 7) { truncate(9); mark_to_drop(sm); }
    }
}

control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.todo);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

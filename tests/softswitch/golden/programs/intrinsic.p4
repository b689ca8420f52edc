// Standard metadata in both controls, and what is left of it when a packet is dropped, multicast or grows.
#include <core.p4>
#include <v1model.p4>

header do_t {
    bit<8>  what;
    bit<8>  port;
}
header saw_t {
    bit<16> ingress_port;
    bit<16> egress_spec;
    bit<16> egress_port;
    bit<32> length;
    bit<32> egress_length;
    bit<32> instance;
    bit<16> rid;
    bit<16> group;
    bit<8>  priority;
    bit<8>  error_number;
    bit<16> late_spec;
    bit<16> late_group;
}
struct headers_t {
    saw_t saw;
    do_t  todo;
}
struct metadata_t {
    bit<32> kept;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.todo);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.saw.setValid();
        hdr.saw.ingress_port = (bit<16>)sm.ingress_port;
        hdr.saw.egress_spec = (bit<16>)sm.egress_spec;
        hdr.saw.length = sm.packet_length;
        hdr.saw.error_number = 0;
        if (sm.parser_error != error.NoError) { hdr.saw.error_number = 1; }
        sm.egress_spec = (bit<9>)hdr.todo.port;
        if (hdr.todo.what == 1) { mark_to_drop(sm); }
        if (hdr.todo.what == 2) { mark_to_drop(sm); sm.egress_spec = 6; }
        if (hdr.todo.what == 3) { sm.mcast_grp = 1; }
        if (hdr.todo.what == 4) { mark_to_drop(sm); sm.mcast_grp = 1; }
        if (hdr.todo.what == 5) { sm.mcast_grp = 1; mark_to_drop(sm); }
        if (hdr.todo.what == 6) { sm.mcast_grp = 77; }
        if (hdr.todo.what == 7) { sm.priority = 3; hdr.saw.priority = (bit<8>)sm.priority; }
        if (hdr.todo.what == 8) { hdr.todo.setInvalid(); }
        meta.kept = sm.packet_length;
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.saw.egress_port = (bit<16>)sm.egress_port;
        hdr.saw.egress_length = sm.packet_length;
        hdr.saw.instance = sm.instance_type;
        hdr.saw.rid = sm.egress_rid;
        hdr.saw.group = sm.mcast_grp;
        hdr.saw.late_spec = (bit<16>)sm.egress_spec;
        hdr.saw.late_group = (bit<16>)meta.kept;
        if (hdr.todo.what == 9) { mark_to_drop(sm); }
        if (hdr.todo.what == 10) { sm.egress_spec = 8; }
        if (hdr.todo.what == 11) { sm.egress_spec = 511; sm.egress_spec = 0; }
        if (hdr.todo.what == 12) { sm.mcast_grp = 1; }
    }
}

control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.saw);
        packet.emit(hdr.todo);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

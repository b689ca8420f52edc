// What becomes of a packet: unicast, multicast, clones both ways, resubmit, recirculate, digest, truncate, drop.
#include <core.p4>
#include <v1model.p4>

header todo_t {
    bit<8> ingress_todo;  // 1 clone, 2 resubmit, 3 multicast, 4 digest, 5 drop, 6 clone and drop, 7 clone keeping nothing
    bit<8> egress_todo;   // 1 clone, 2 recirculate, 3 truncate, 4 drop, 5 drop and clone
    bit<8> out_port;
    bit<8> tag;
}

header trace_t {
    bit<8>  instance;
    bit<16> rid;
    bit<8>  kept;
    bit<8>  lost;
    bit<32> length;
    bit<8>  port;
    bit<8>  in_port;
}

struct headers_t {
    trace_t trace;
    todo_t  todo;
}

struct metadata_t {
    @field_list(1)
    bit<8> kept;
    bit<8> lost;
    @field_list(1, 2)
    bit<8> passes;
}

struct report_t {
    bit<8> tag;
    bit<9> port;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.todo);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        meta.kept = hdr.todo.tag + meta.passes;
        meta.lost = 7;
        sm.egress_spec = (bit<9>)hdr.todo.out_port;
        sm.priority = hdr.todo.tag[2:0];
        hdr.todo.tag = hdr.todo.tag + 1;
        if (hdr.todo.ingress_todo == 1) {
            clone_preserving_field_list(CloneType.I2E, 5, 1);
        } else if (hdr.todo.ingress_todo == 2) {
            if (meta.passes < 2) {
                meta.passes = meta.passes + 1;
                resubmit_preserving_field_list(2);
            }
        } else if (hdr.todo.ingress_todo == 3) {
            sm.mcast_grp = 1;
        } else if (hdr.todo.ingress_todo == 4) {
            digest<report_t>(1, { hdr.todo.tag, sm.ingress_port });
        } else if (hdr.todo.ingress_todo == 5) {
            sm.mcast_grp = 1;
            mark_to_drop(sm);
        } else if (hdr.todo.ingress_todo == 6) {
            clone_preserving_field_list(CloneType.I2E, 5, 1);
            mark_to_drop(sm);
        } else if (hdr.todo.ingress_todo == 7) {
            clone(CloneType.I2E, 5);
        }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.trace.setValid();
        hdr.trace.instance = (bit<8>)sm.instance_type;
        hdr.trace.rid = sm.egress_rid;
        hdr.trace.kept = meta.kept;
        hdr.trace.lost = meta.lost;
        hdr.trace.length = sm.packet_length;
        hdr.trace.port = (bit<8>)sm.egress_port;
        hdr.trace.in_port = (bit<8>)sm.ingress_port;
        if (sm.instance_type != 2) {
            if (hdr.todo.egress_todo == 1) {
                clone_preserving_field_list(CloneType.E2E, 5, 1);
            } else if (hdr.todo.egress_todo == 2 && meta.passes < 2) {
                meta.passes = meta.passes + 1;
                hdr.trace.setInvalid();
                recirculate_preserving_field_list(1);
            } else if (hdr.todo.egress_todo == 3) {
                truncate(14);
            } else if (hdr.todo.egress_todo == 4) {
                mark_to_drop(sm);
            } else if (hdr.todo.egress_todo == 5) {
                mark_to_drop(sm);
                clone_preserving_field_list(CloneType.E2E, 5, 1);
            }
        }
    }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.trace);
        packet.emit(hdr.todo);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

// Clones of both kinds with several field lists, of clones too; multicast and clone together; exit after clone.
#include <core.p4>
#include <v1model.p4>

header do_t {
    bit<8> ingress;
    bit<8> egress;
    bit<8> tag;
    bit<8> port;
}
header saw_t {
    bit<8>  instance;
    bit<16> rid;
    bit<8>  inner;
    bit<16> outer;
    bit<8>  flag;
    bit<16> length;
}
struct inner_t {
    @field_list(1, 3)
    bit<8> value;
    bit<8> other;
}
struct headers_t {
    saw_t saw;
    do_t  todo;
}
struct metadata_t {
    inner_t inner;
    @field_list(2, 3)
    bit<16> outer;
    @field_list(3)
    bool    flag;
    @field_list(1)
    bit<8>  round;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.todo);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action copy(bit<32> session) {
        clone_preserving_field_list(CloneType.I2E, session, 2);
        exit;
    }
    apply {
        sm.egress_spec = (bit<9>)hdr.todo.port;
        meta.inner = { hdr.todo.tag, 0x77 };
        meta.outer = 0x1000 + (bit<16>)hdr.todo.tag;
        meta.flag = hdr.todo.tag > 10;
        if (hdr.todo.ingress == 1) { clone_preserving_field_list(CloneType.I2E, 1, 1); }
        else if (hdr.todo.ingress == 2) { copy(2); }
        else if (hdr.todo.ingress == 3) { clone_preserving_field_list(CloneType.I2E, 1, 3); sm.mcast_grp = 1; }
        else if (hdr.todo.ingress == 4) {
            clone_preserving_field_list(CloneType.I2E, 1, 1);
            clone_preserving_field_list(CloneType.I2E, 2, 3);
        }
        else if (hdr.todo.ingress == 5) { clone(CloneType.I2E, 99); }
        else if (hdr.todo.ingress == 6) { sm.mcast_grp = 9; }
        hdr.todo.tag = hdr.todo.tag + 1;
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.todo.egress == 1 && sm.instance_type == 0) {
            clone_preserving_field_list(CloneType.E2E, 1, 3);
            hdr.todo.tag = 0xc0;
        } else if (hdr.todo.egress == 2 && meta.round < 2) {
            meta.round = meta.round + 1;
            clone_preserving_field_list(CloneType.E2E, 2, 1);
        } else if (hdr.todo.egress == 3 && sm.egress_rid == 2) {
            mark_to_drop(sm);
        }
        hdr.saw.setValid();
        hdr.saw.instance = (bit<8>)sm.instance_type;
        hdr.saw.rid = sm.egress_rid;
        hdr.saw.inner = meta.inner.value;
        hdr.saw.outer = meta.outer;
        if (meta.flag) { hdr.saw.flag = 1; } else { hdr.saw.flag = 0; }
        hdr.saw.length = (bit<16>)sm.packet_length;
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

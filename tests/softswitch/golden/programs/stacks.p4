// Header stacks by computed index: read, written, pushed and popped by several, assigned as a whole.
#include <core.p4>
#include <v1model.p4>

header op_t {
    bit<8> what;
    bit<8> index;
    bit<8> count;
    bit<8> value;
}
header item_t {
    bit<8>  last;
    bit<8>  value;
    bit<16> pad;
}
struct headers_t {
    op_t      op;
    item_t[4] items;
    item_t[4] copies;
}
struct metadata_t {
    bit<8> seen;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.op);
        transition select(hdr.op.count) {
            0: accept;
            default: items;
        }
    }
    state items {
        packet.extract(hdr.items.next);
        meta.seen = (bit<8>)hdr.items.lastIndex;
        transition select(hdr.items.last.last) {
            0: items;
            default: accept;
        }
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 2;
        hdr.op.count = meta.seen;
        if (hdr.op.what == 1) {
            hdr.op.value = hdr.items[hdr.op.index].value;
        } else if (hdr.op.what == 2) {
            hdr.items[hdr.op.index].value = hdr.op.value;
        } else if (hdr.op.what == 3) {
            hdr.items.push_front(2);
            hdr.items[0].setValid();
            hdr.items[0].value = 0xaa;
            hdr.items[1].setValid();
            hdr.items[1] = { 1, 2, 3 };
        } else if (hdr.op.what == 4) {
            hdr.items.pop_front(3);
        } else if (hdr.op.what == 5) {
            hdr.copies = hdr.items;
            hdr.copies[1].value = hdr.copies[1].value + 1;
        } else if (hdr.op.what == 6) {
            hdr.items[1].setInvalid();
            hdr.items[3] = hdr.items[0];
        } else if (hdr.op.what == 7) {
            item_t kept = hdr.items[0];
            hdr.items[0] = hdr.items[1];
            hdr.items[1] = kept;
        } else if (hdr.op.what == 8) {
            if (hdr.items[2].isValid()) { hdr.op.value = 1; } else { hdr.op.value = 0; }
        } else if (hdr.op.what == 9) {
            hdr.items.pop_front(4);
            hdr.items[2].setValid();
        }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }

control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.op);
        packet.emit(hdr.items);
        packet.emit(hdr.copies);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

// Entries in the program, const or not: priorities, masks, ranges, prefixes and optionals.
#include <core.p4>
#include <v1model.p4>

header key_t {
    bit<8>  a;
    bit<16> b;
    bit<32> c;
    bit<8>  first;
    bit<8>  second;
    bit<8>  third;
    bit<8>  fourth;
}
struct headers_t {
    key_t key;
}
struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.key);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action one(bit<8> x) { hdr.key.first = x; }
    action two(bit<8> x) { hdr.key.second = x; }
    action three(bit<8> x) { hdr.key.third = x; }
    action four(bit<8> x) { hdr.key.fourth = x; }
    table masked {
        key = { hdr.key.a : ternary; hdr.key.b : range; }
        actions = { one; }
        default_action = one(0);
        const entries = {
            (0x10 &&& 0xf0, 0 .. 100) : one(1);
            (0x10 &&& 0x10, _) : one(2);
            (_, 50 .. 60) : one(3);
            (0xff, 0xffff) : one(4);
        }
    }
    @name("prefixed")
    table prefixed {
        key = { hdr.key.c : lpm; hdr.key.a : exact; }
        actions = { two; }
        default_action = two(0);
        const entries = {
            (0x0a000000 &&& 0xff000000, 1) : two(1);
            (0x0a010000 &&& 0xffff0000, 1) : two(2);
            (0x00000000 &&& 0x00000000, 1) : two(3);
            (0x0a010203, 1) : two(4);
        }
    }
    table ranked {
        key = { hdr.key.b : ternary; hdr.key.a : optional; }
        actions = { three; }
        default_action = three(0);
        entries = {
            priority = 10: (0x0100 &&& 0xff00, _) : three(1);
            priority = 5: (0x0101, _) : three(2);
            priority = 7: (_, 9) : three(3);
        }
    }
    table first_come {
        key = { hdr.key.a : exact; }
        actions = { four; NoAction; }
        default_action = NoAction();
        entries = {
            1 : four(0x11);
            2 : four(0x22);
        }
        size = 8;
    }
    apply {
        sm.egress_spec = 2;
        masked.apply();
        prefixed.apply();
        ranked.apply();
        first_come.apply();
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }

control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.key);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

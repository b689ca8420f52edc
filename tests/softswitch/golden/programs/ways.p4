// Control flow: nested controls applied twice, return and exit in each, switch on actions and values, hit and miss.
#include <core.p4>
#include <v1model.p4>

header way_t {
    bit<8>  a;
    bit<8>  b;
    bit<8>  c;
    bit<64> path;
}
struct headers_t {
    way_t way;
}
struct metadata_t {
    bit<8> depth;
}
control Step(inout way_t way, in bit<8> letter, out bool done) {
    apply {
        done = false;
        way.path = way.path << 8 | (bit<64>)letter;
        if (way.b == 0xff) { return; }
        way.b = way.b + 1;
        if (way.b == 0x80) { return; }
        done = way.b > 0x40;
    }
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.way);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    Step() step;
    action mark(bit<8> letter) { hdr.way.path = hdr.way.path << 8 | (bit<64>)letter; }
    action twice(bit<8> letter) {
        mark(letter);
        mark(letter + 1);
    }
    action stop() {
        mark(0x21);
        exit;
    }
    table one {
        key = { hdr.way.a : exact; }
        actions = { mark; twice; stop; NoAction; }
        default_action = NoAction();
    }
    table two {
        key = { hdr.way.a : ternary; hdr.way.c : exact; }
        actions = { mark; twice; @defaultonly stop; }
        default_action = mark(0x64);
    }
    table three {
        key = { hdr.way.a : lpm; }
        actions = { mark; stop; }
        default_action = mark(0x65);
    }
    apply {
        bool done;
        sm.egress_spec = 2;
        step.apply(hdr.way, 0x31, done);
        if (done) {
            mark(0x64);
            return;
        }
        switch (one.apply().action_run) {
            mark:
            twice: { mark(0x6d); }
            stop: { mark(0x73); }
            NoAction: {
                if (two.apply().hit) {
                    mark(0x68);
                    if (hdr.way.c == 3) { exit; }
                } else {
                    mark(0x2d);
                }
            }
        }
        switch (hdr.way.c) {
            1: { mark(0x41); }
            2:
            3: { mark(0x42); }
            0xf0: { three.apply(); }
            default: { mark(0x43); }
        }
        step.apply(hdr.way, 0x32, done);
        mark(0x7a);
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action fade() { hdr.way.path = hdr.way.path ^ 1; }
    table last {
        key = { hdr.way.b : range; }
        actions = { fade; NoAction; }
        default_action = NoAction();
    }
    apply {
        if (hdr.way.c == 9) { return; }
        last.apply();
        if (hdr.way.c == 8) { exit; }
        hdr.way.c = hdr.way.c + 1;
    }
}

control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.way);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

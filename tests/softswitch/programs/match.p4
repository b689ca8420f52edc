// Every match kind, const entries, hit and miss, action_run, exit and return; the path taken is spelled in `path`.
#include <core.p4>
#include <v1model.p4>

header key_t {
    bit<16> exact1;
    bit<8>  exact2;
    bit<32> lpm;
    bit<16> ternary;
    bit<16> range_;
    bit<8>  optional_;
    bit<8>  flags;
    bit<64> path;
}

header extra_t {
    bit<8> value;
}

struct headers_t {
    key_t   key;
    extra_t extra;
}

struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.key);
        transition select(hdr.key.flags[7:7]) {
            1: parse_extra;
            default: accept;
        }
    }
    state parse_extra {
        packet.extract(hdr.extra);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action mark(bit<8> letter) { hdr.key.path = hdr.key.path << 8 | (bit<64>)letter; }
    action leave(bit<8> letter) {
        mark(letter);
        exit;
    }
    action choose(bit<8> letter) {
        if (letter == 0x58) {
            hdr.key.path = 0;
            return;
        }
        mark(letter);
    }

    table exact_pair {
        key = { hdr.key.exact1 : exact; hdr.key.exact2 : exact; }
        actions = { mark; leave; NoAction; }
        default_action = NoAction();
        size = 4;
    }
    table longest {
        key = { hdr.key.lpm : lpm; }
        actions = { mark; choose; }
        default_action = mark(0x2d);
    }
    table masked {
        key = { hdr.key.ternary : ternary; hdr.key.exact2 : exact; }
        actions = { mark; }
        default_action = mark(0x2d);
    }
    table between {
        key = { hdr.key.range_ : range; }
        actions = { mark; }
        default_action = mark(0x2d);
    }
    table maybe {
        key = { hdr.key.optional_ : optional; }
        actions = { mark; }
        default_action = mark(0x2d);
    }
    table validity {
        key = { hdr.extra.isValid() : exact; hdr.extra.value : ternary; }
        actions = { mark; }
        const entries = {
            (true, 0x10 &&& 0xf0) : mark(0x56);
            (true, _) : mark(0x76);
            (false, 0) : mark(0x69);
        }
    }
    table fixed {
        key = { hdr.key.flags[3:0] : exact; }
        actions = { mark; NoAction; }
        const default_action = NoAction();
        const entries = {
            1 : mark(0x31);
            2 : mark(0x32);
        }
    }

    apply {
        sm.egress_spec = 1;
        if (exact_pair.apply().hit) { mark(0x68); } else { mark(0x6d); }
        switch (longest.apply().action_run) {
            mark: { mark(0x61); }
            choose: { if (hdr.key.flags[6:6] == 1) { return; } mark(0x62); }
        }
        masked.apply();
        between.apply();
        maybe.apply();
        validity.apply();
        fixed.apply();
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.key.flags[5:5] == 1) { mark_to_drop(sm); }
    }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.key);
        packet.emit(hdr.extra);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

// Action selectors over several fields and algorithms, groups and members, action_run and hit behind them.
#include <core.p4>
#include <v1model.p4>

header flow_t {
    bit<8>  group;
    bit<32> src;
    bit<32> dst;
    bit<8>  protocol;
    bit<9>  odd;
    bit<7>  pad;
    bit<16> chosen;
    bit<8>  path;
}
struct headers_t {
    flow_t flow;
}
struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.flow);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action_selector(HashAlgorithm.crc32, 32w64, 32w16) wide_spread;
    action_selector(HashAlgorithm.crc16, 32w64, 32w10) odd_spread;
    action_profile(32w16) shared_profile;

    action go(bit<16> chosen) { hdr.flow.chosen = chosen; }
    action stay() { hdr.flow.path = hdr.flow.path | 0x80; }
    action other(bit<16> chosen) { hdr.flow.chosen = ~chosen; }

    table first {
        key = {
            hdr.flow.group : exact;
            hdr.flow.src : selector;
            hdr.flow.dst : selector;
            hdr.flow.protocol : selector;
        }
        actions = { go; stay; other; NoAction; }
        implementation = wide_spread;
        size = 64;
    }
    table second {
        key = {
            hdr.flow.protocol : lpm;
            hdr.flow.odd : selector;
            hdr.flow.src : selector;
        }
        actions = { go; other; NoAction; }
        default_action = NoAction();
        implementation = odd_spread;
    }
    table third {
        key = { hdr.flow.dst : ternary; }
        actions = { go; stay; NoAction; }
        implementation = shared_profile;
    }
    apply {
        sm.egress_spec = 2;
        switch (first.apply().action_run) {
            go: { hdr.flow.path = hdr.flow.path | 1; }
            other: { hdr.flow.path = hdr.flow.path | 2; }
            default: { hdr.flow.path = hdr.flow.path | 4; }
        }
        if (hdr.flow.group > 8 && second.apply().hit) { hdr.flow.path = hdr.flow.path | 8; }
        if (third.apply().miss) { hdr.flow.path = hdr.flow.path | 16; }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }

control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.flow);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

// The parser: header stack in a loop, lookahead, masks, varbit, verify, advance, value set; and stack operations.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header label_t {
    bit<20> label;
    bit<3>  tc;
    bit<1>  bottom;
    bit<8>  ttl;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> length;
    bit<16> id;
    bit<3>  flags;
    bit<13> fragment;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
    varbit<320> options;
}

header report_t {
    bit<8>  error_number;
    bit<8>  labels;
    bit<16> seen;
}

header gap_t {
    bit<8> size;
}

struct headers_t {
    report_t   report;
    ethernet_t ethernet;
    label_t[3] labels;
    ipv4_t     ipv4;
    gap_t      gap;
}

struct metadata_t {
    bit<16> seen;
}

error { BadVersion }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    value_set<bit<16>>(4) special;

    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x8847: parse_label;
            0x0800: parse_ipv4;
            0x9000 &&& 0xff00: parse_gap;
            special: seen_special;
            default: accept;
        }
    }

    state seen_special {
        meta.seen = 0xbeef;
        transition accept;
    }

    state parse_label {
        packet.extract(hdr.labels.next);
        meta.seen = meta.seen + 1;
        transition select(hdr.labels.last.bottom, packet.lookahead<bit<4>>()) {
            (0, _): parse_label;
            (1, 4): parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        bit<8> first = packet.lookahead<bit<8>>();
        verify(first[7:4] == 4, error.BadVersion);
        packet.extract(hdr.ipv4, ((bit<32>)(first[3:0]) - 5) << 5);
        transition accept;
    }

    state parse_gap {
        packet.extract(hdr.gap);
        packet.advance((bit<32>)hdr.gap.size << 3);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }
control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.report.setValid();
        hdr.report.seen = meta.seen;
        if (sm.parser_error == error.NoError) { hdr.report.error_number = 0; }
        else if (sm.parser_error == error.PacketTooShort) { hdr.report.error_number = 1; }
        else if (sm.parser_error == error.StackOutOfBounds) { hdr.report.error_number = 3; }
        else if (sm.parser_error == error.HeaderTooShort) { hdr.report.error_number = 4; }
        else if (sm.parser_error == error.BadVersion) { hdr.report.error_number = 100; }
        else { hdr.report.error_number = 255; }
        if (hdr.labels[0].isValid()) { hdr.report.labels[0:0] = 1; }
        if (hdr.labels[1].isValid()) { hdr.report.labels[1:1] = 1; }
        if (hdr.labels[2].isValid()) { hdr.report.labels[2:2] = 1; }
        if (sm.ingress_port == 2) {
            hdr.labels.pop_front(1);
            hdr.labels[0].ttl = hdr.labels[0].ttl - 1;
        } else if (sm.ingress_port == 3) {
            hdr.labels.push_front(1);
            hdr.labels[0].setValid();
            hdr.labels[0].label = 0xabcde;
            hdr.labels[0].ttl = 64;
        }
        if (hdr.ipv4.isValid()) { hdr.ipv4.ttl = hdr.ipv4.ttl |-| 1; }
        sm.egress_spec = 5;
    }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.report);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.labels);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.gap);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

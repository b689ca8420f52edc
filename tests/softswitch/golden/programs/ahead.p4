// Parser: lookahead of headers and fields, ranges, masks and tuples in select, a sub-parser, skipped headers.
#include <core.p4>
#include <v1model.p4>

header tag_t {
    bit<8>  kind;
    bit<8>  size;
    bit<16> value;
}
header wide_t {
    bit<4>  version;
    bit<12> rest;
    bit<48> mac;
}
header note_t {
    bit<8>  path;
    bit<8>  kind;
    bit<16> value;
}
struct headers_t {
    note_t note;
    tag_t  first;
    tag_t  second;
    wide_t wide;
}
struct metadata_t {
    bit<8>  path;
    bit<8>  kind;
    bit<16> value;
}
parser Tags(packet_in packet, out tag_t tag, inout bit<8> path) {
    state start {
        packet.extract(tag);
        transition select(tag.kind, tag.size) {
            (1, _): one;
            (2 .. 9, 0 .. 3): few;
            (0x80 &&& 0xf0, 0x01 &&& 0x01): odd;
            default: other;
        }
    }
    state one {
        path = path | 1;
        transition accept;
    }
    state few {
        path = path | 2;
        transition accept;
    }
    state odd {
        path = path | 4;
        transition accept;
    }
    state other {
        path = path | 8;
        transition accept;
    }
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    Tags() tags;
    state start {
        tag_t coming = packet.lookahead<tag_t>();
        meta.kind = coming.kind;
        meta.value = packet.lookahead<bit<40>>()[15:0];
        transition select(coming.kind, coming.value[3:0]) {
            (0xff, _): skipped;
            (_, 0xf): wide;
            default: tagged;
        }
    }
    state skipped {
        packet.extract<tag_t>(_);
        packet.advance(16);
        meta.path = meta.path | 0x40;
        transition select(packet.lookahead<bit<1>>()) {
            1: wide;
            default: accept;
        }
    }
    state tagged {
        tags.apply(packet, hdr.first, meta.path);
        transition select(hdr.first.value) {
            0 .. 99: accept;
            100 .. 0x7fff: again;
            default: wide;
        }
    }
    state again {
        tags.apply(packet, hdr.second, meta.path);
        meta.path = meta.path << 1;
        transition accept;
    }
    state wide {
        packet.extract(hdr.wide);
        meta.path = meta.path | 0x80;
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 2;
        hdr.note = { meta.path, meta.kind, meta.value };
        if (sm.parser_error != error.NoError) { hdr.note.kind = 0xee; }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }

control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.note);
        packet.emit(hdr.first);
        packet.emit(hdr.second);
        packet.emit(hdr.wide);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

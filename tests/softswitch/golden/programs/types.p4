// Enumerations, new types, booleans, tuples and nested structs; copies and comparison of headers and structs.
#include <core.p4>
#include <v1model.p4>

enum Colour { Red, Green, Blue }
enum bit<8> Kind {
    Small = 1,
    Large = 2,
    Other = 0x80
}
typedef bit<16> plain_t;
type bit<16> own_t;
header from_t {
    Kind    kind;
    bit<8>  number;
    plain_t plain;
    bit<16> own;
}
header to_t {
    bit<8>  colour;
    Kind    kind;
    bit<8>  same;
    bit<8>  flags;
    plain_t plain;
    bit<32> pair;
}
struct deep_t {
    bit<8>  x;
    bool    yes;
    bit<16> y;
}
struct deeper_t {
    deep_t   left;
    deep_t   right;
    Colour   colour;
}
struct headers_t {
    to_t   to;
    from_t source;
    from_t copy;
}
struct metadata_t {
    deeper_t deep;
    own_t    own;
    tuple<bit<8>, bit<16>> pair;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.source);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action paint(own_t own) {
        meta.deep.colour = Colour.Green;
        meta.own = own;
    }
    action darken(own_t own) {
        meta.deep.colour = Colour.Blue;
        meta.own = own;
    }
    table painter {
        key = { hdr.source.kind : exact; }
        actions = { paint; darken; NoAction; }
        default_action = NoAction();
        const entries = {
            Kind.Small : paint((own_t)16w7);
            Kind.Other : darken((own_t)16w9);
        }
    }
    apply {
        sm.egress_spec = 2;
        painter.apply();
        hdr.to.setValid();
        hdr.to.kind = Kind.Large;
        if (hdr.source.kind == Kind.Large) { hdr.to.kind = Kind.Other; }
        meta.deep.left = { hdr.source.number, hdr.source.number > 9, hdr.source.plain };
        meta.deep.right = meta.deep.left;
        meta.deep.right.x = meta.deep.right.x |+| 250;
        hdr.to.flags = 0;
        if (meta.deep.left == meta.deep.right) { hdr.to.flags[0:0] = 1; }
        if (meta.deep.right.yes) { hdr.to.flags[1:1] = 1; }
        if (meta.deep.colour == Colour.Red) { hdr.to.colour = 1; }
        else if (meta.deep.colour == Colour.Green) { hdr.to.colour = 2; }
        else { hdr.to.colour = 3; }
        if (hdr.source.number == 1) { hdr.copy = hdr.source; }
        if (hdr.source.number == 2) {
            hdr.copy = { Kind.Small, 2, 3, 4 };
        }
        if (hdr.source.number == 3) {
            hdr.copy = hdr.source;
            hdr.copy.plain = hdr.copy.plain + 1;
        }
        hdr.to.same = hdr.copy == hdr.source ? 8w1 : 0;
        hdr.to.plain = (bit<16>)meta.own + hdr.source.own;
        meta.pair = { hdr.source.number, hdr.to.plain };
        hash(hdr.to.pair, HashAlgorithm.crc32, 32w0, meta.pair, 64w0x100000000);
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }

control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.to);
        packet.emit(hdr.copy);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

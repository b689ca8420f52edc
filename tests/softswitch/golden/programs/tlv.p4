// IPv4 options one by one: a stack of variable-sized headers, a counter in the parser, verify and its errors.
#include <core.p4>
#include <v1model.p4>

header base_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  protocol;
    bit<16> length;
}
header end_t {
    bit<8> kind;
}
header option_t {
    bit<8>      kind;
    bit<8>      size;
    varbit<240> value;
}
header verdict_t {
    bit<8> error_number;
    bit<8> options;
    bit<8> left;
    bit<8> last;
}
struct headers_t {
    verdict_t   verdict;
    base_t      base;
    option_t[3] options;
    end_t       end;
}
struct metadata_t {
    bit<8> left;
    bit<8> count;
}
error {
    OldVersion,
    ShortHeader,
    BadOption
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.base);
        verify(hdr.base.version == 4, error.OldVersion);
        verify(hdr.base.ihl >= 1, error.ShortHeader);
        meta.left = (bit<8>)(hdr.base.ihl - 1) << 2;
        transition next;
    }
    state next {
        transition select(meta.left) {
            0: accept;
            default: kind;
        }
    }
    state kind {
        transition select(packet.lookahead<bit<8>>()) {
            0: finish;
            default: option;
        }
    }
    state option {
        bit<16> ahead = packet.lookahead<bit<16>>();
        verify(ahead[7:0] >= 2 && ahead[7:0] <= meta.left, error.BadOption);
        packet.extract(hdr.options.next, (bit<32>)(ahead[7:0] - 2) << 3);
        meta.left = meta.left - hdr.options.last.size;
        meta.count = meta.count + 1;
        transition next;
    }
    state finish {
        packet.extract(hdr.end);
        meta.left = meta.left - 1;
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 2;
        hdr.verdict.setValid();
        hdr.verdict.options = meta.count;
        hdr.verdict.left = meta.left;
        if (sm.parser_error == error.NoError) { hdr.verdict.error_number = 0; }
        else if (sm.parser_error == error.PacketTooShort) { hdr.verdict.error_number = 1; }
        else if (sm.parser_error == error.StackOutOfBounds) { hdr.verdict.error_number = 2; }
        else if (sm.parser_error == error.HeaderTooShort) { hdr.verdict.error_number = 3; }
        else if (sm.parser_error == error.OldVersion) { hdr.verdict.error_number = 4; }
        else if (sm.parser_error == error.ShortHeader) { hdr.verdict.error_number = 5; }
        else if (sm.parser_error == error.BadOption) { hdr.verdict.error_number = 6; }
        else { hdr.verdict.error_number = 7; }
        if (hdr.options[0].isValid()) { hdr.verdict.last = hdr.options[0].kind; }
        if (hdr.base.isValid() && hdr.base.protocol == 1) { hdr.options.pop_front(1); }
        if (hdr.base.isValid() && hdr.base.protocol == 2) { hdr.options[2] = hdr.options[0]; }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }

control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.verdict);
        packet.emit(hdr.base);
        packet.emit(hdr.options);
        packet.emit(hdr.end);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

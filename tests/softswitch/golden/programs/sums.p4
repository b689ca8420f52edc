// Checksums verified and updated: with conditions, odd lengths, payload, two over one header, other algorithms.
#include <core.p4>
#include <v1model.p4>

header head_t {
    bit<8>  kind;
    bit<8>  odd;
    bit<16> sum;
    bit<24> body;
    bit<8>  more;
    bit<32> crc;
    bit<16> with_payload;
    bit<16> xor;
}
header opt_t {
    bit<16>     size;
    varbit<256> data;
    }
header wrong_t {
    bit<8> wrong;
}
struct headers_t {
    wrong_t wrong;
    head_t  head;
    opt_t   opt;
}
struct metadata_t {
    bit<16> salt;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.head);
        meta.salt = 0x5a5a;
        transition select(hdr.head.kind) {
            1: options;
            default: accept;
        }
    }
    state options {
        bit<16> size = packet.lookahead<bit<16>>();
        packet.extract(hdr.opt, (bit<32>)size << 3);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.head.kind != 3, { hdr.head.kind, hdr.head.odd, hdr.head.body }, hdr.head.sum,
                        HashAlgorithm.csum16);
        verify_checksum_with_payload(hdr.head.kind == 4, { hdr.head.body, meta.salt }, hdr.head.with_payload,
                                     HashAlgorithm.csum16);
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 2;
        hdr.wrong.setValid();
        hdr.wrong.wrong = (bit<8>)sm.checksum_error;
        hdr.head.more = hdr.head.more + 1;
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }

control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.head.kind != 5, { hdr.head.kind, hdr.head.odd, hdr.head.body, hdr.head.more },
                        hdr.head.sum, HashAlgorithm.csum16);
        update_checksum(true, { hdr.head.body, hdr.head.more, hdr.opt.size, meta.salt }, hdr.head.crc,
                        HashAlgorithm.crc32);
        update_checksum_with_payload(hdr.head.odd[0:0] == 1, { hdr.head.kind, hdr.head.body, hdr.opt.data },
                                     hdr.head.with_payload, HashAlgorithm.csum16);
        update_checksum(hdr.opt.isValid(), { hdr.opt.size, hdr.head.kind, hdr.head.odd }, hdr.head.xor,
                        HashAlgorithm.xor16);
    }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.wrong);
        packet.emit(hdr.head);
        packet.emit(hdr.opt);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

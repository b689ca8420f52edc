// What hides behind an IP packet at the control level, where a host may send only what cannot carry data. On v1model
// ingress sees how long the frame is, and demotes the packet. Here only egress does: ingress says how long it may be,
// egress ends what is longer.

control LimitFrame(inout ingress_headers_t hdr) {
    // Actions, each a step: what they compute the next needs.
    @hidden action limit_v4() {
        hdr.bridged.limit = hdr.ipv4.total_len + (bit<16>)ETHERNET_MAX_BYTES + FCS_BYTES + BRIDGED_BYTES;
    }

    @hidden action limit_v6() {
        hdr.bridged.limit = hdr.ipv6.payload_len + 40 + (bit<16>)ETHERNET_MAX_BYTES + FCS_BYTES + BRIDGED_BYTES;
    }

    // A short frame's padding is not data.
    @hidden action forgive() {
        hdr.bridged.limit = max(hdr.bridged.limit, (bit<16>)PADDED_MAX_BYTES + FCS_BYTES + BRIDGED_BYTES);
    }

    apply {
        if (hdr.ipv4.isValid()) {
            limit_v4();
        } else if (hdr.ipv6.isValid()) {
            limit_v6();
        }
        forgive();
    }
}

control HiddenData(in egress_metadata_t meta,
                   in egress_intrinsic_metadata_t eg_intr_md,
                   inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    bit<16> excess = 0;

    @hidden action measure() {
        excess = eg_intr_md.pkt_length |-| meta.bridged.limit;
    }

    apply {
        measure();
        if (meta.bridged.small == 1 && excess != 0) {
            eg_dprsr_md.drop_ctl = 1;
        }
    }
}

// The gate for packets whose DSCP says INT: well-formed probes pass, all else is dropped and counted.
// See v1model/int_edge.p4 for why. Most conditions are the parser's here; egress has the last two: the frame's length
// (hidden_data.p4), and whether the words that the instructions ask for are those announced (int_transit.p4).

control IntEdge(inout ingress_headers_t hdr,
                inout ingress_metadata_t meta,
                in ingress_intrinsic_metadata_t ig_intr_md) {
    Counter<bit<32>, PortId_t>(PORTS, CounterType_t.PACKETS) edge_drop;  // by ingress port

    bit<16> excess = 0;  // over what a host's probe may have

    @hidden action measure_v4() {
        excess = hdr.ipv4.total_len |-| INT_FRESH_MAX_BYTES;
    }

    @hidden action measure_v6() {
        excess = hdr.ipv6.payload_len |-| INT_FRESH_MAX_BYTES;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            measure_v4();
        } else if (hdr.ipv6.isValid()) {
            measure_v6();
        }
        if (meta.probe.marked == 1) {
            meta.refused = 1;
        }
        if (meta.fabric_port == 1 && meta.probe.well_formed == 1) {
            hdr.bridged.probe = 1;
        }
        if (meta.fabric_port == 0 && meta.probe.empty == 1 && meta.probe.well_formed == 1 && hdr.bridged.plain == 1
                && hdr.int_md.e == 0 && hdr.int_md.m == 0 && excess == 0) {
            hdr.bridged.probe = 1;
            hdr.bridged.from_host = 1;
        }
        // Behind a longer TCP header the parser has taken options for INT.
        if (hdr.tcp.isValid() && hdr.tcp.data_offset != 5 || meta.refused == 0) {
            hdr.bridged.probe = 0;
        }
        if (hdr.bridged.probe == 1) {
            meta.refused = 0;
        } else if (meta.refused == 1) {
            edge_drop.count(ig_intr_md.ingress_port);
        }
    }
}

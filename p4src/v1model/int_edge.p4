// The gate for packets whose DSCP says INT: well-formed probes pass, all else is dropped and counted.
//
// Only probes (D bit set) are INT traffic here, from whatever port. A host may send nothing but a fresh one:
// small (with nothing behind the IP packet either), with an empty stack, no flags, and instructions that this switch can carry out; its hops are limited
// to what the fabric allows. So a tenant can neither forge a path nor fill the control level with data.

control IntEdge(inout headers_t hdr, inout metadata_t meta, in standard_metadata_t standard_metadata) {
    counter(PORTS, CounterType.packets) edge_drop;  // by ingress port

    apply {
        if (hdr.int_md.isValid() && hdr.int_md.version == INT_VERSION && hdr.int_md.d == 1
                && hdr.int_shim.length >= INT_EMPTY_WORDS) {
            // Words that the instructions ask for. Reserved bits, the checksum complement (there is no valid
            // checksum to complement) and domain-specific instructions are not for this switch: INT 2.1, 5.8,
            // has it add nothing then.
            bit<5> words = (bit<5>)hdr.int_md.ask_node_id
                + (bit<5>)hdr.int_md.ask_level1_ports
                + (bit<5>)hdr.int_md.ask_hop_latency
                + (bit<5>)hdr.int_md.ask_queue
                + (bit<5>)(hdr.int_md.ask_ingress_time ++ 1w0)
                + (bit<5>)(hdr.int_md.ask_egress_time ++ 1w0)
                + (bit<5>)(hdr.int_md.ask_level2_ports ++ 1w0)
                + (bit<5>)hdr.int_md.ask_tx_utilization
                + (bit<5>)hdr.int_md.ask_buffer;
            if (hdr.int_md.hop_ml == words && hdr.int_md.ask_reserved == 0
                    && hdr.int_md.ask_checksum_complement == 0 && hdr.int_md.ds_instruction == 0) {
                meta.telemetry.understood = 1;
            }
            if (meta.fabric_port == 1) {
                meta.telemetry.probe = 1;
            } else if (meta.telemetry.understood == 1 && hdr.int_shim.length == INT_EMPTY_WORDS
                    && hdr.int_md.e == 0 && hdr.int_md.m == 0
                    && standard_metadata.packet_length <= INT_FRESH_MAX_FRAME
                    && (hdr.ipv4.isValid() && hdr.ipv4.more_fragments == 0
                            && hdr.ipv4.total_len <= INT_FRESH_MAX_BYTES
                        || hdr.ipv6.isValid() && hdr.ipv6.payload_len <= INT_FRESH_MAX_BYTES)) {
                meta.telemetry.probe = 1;
                if (hdr.int_md.remaining_hops > INT_MAX_HOPS) {
                    hdr.int_md.remaining_hops = INT_MAX_HOPS;
                }
            }
        }
        if (meta.telemetry.probe == 0) {
            meta.refused = 1;
            edge_drop.count((bit<32>)standard_metadata.ingress_port);
        }
        // A probe travels at the control level: the path of a starved flow must be known too.
        meta.level.is_control = 1;
        meta.level.keep_dscp = 1;
    }
}

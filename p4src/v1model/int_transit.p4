// INT-MD transit, in egress: push what the probe asks of each hop, in front of the older hops (INT 2.1, 5.8).
//
// Times are nanoseconds: v1model's clock is in microseconds. What this target cannot tell is all ones.

control IntTransit(inout headers_t hdr, inout metadata_t meta, in standard_metadata_t standard_metadata) {
    apply {
        bit<16> bytes = (bit<16>)hdr.int_md.hop_ml << 2;
        bit<16> length;
        if (hdr.ipv4.isValid()) {
            length = hdr.ipv4.total_len;
        } else {
            length = hdr.ipv6.payload_len + 40;
        }

        if (hdr.int_md.remaining_hops == 0) {
            hdr.int_md.e = 1;
        } else if (meta.telemetry.understood == 0) {
            // Nothing is added, and no hop used up.
        } else if (length > INT_MTU - bytes || hdr.int_shim.length > 255 - (bit<8>)hdr.int_md.hop_ml) {
            hdr.int_md.m = 1;
        } else {
            hdr.int_md.remaining_hops = hdr.int_md.remaining_hops - 1;
            hdr.int_shim.length = hdr.int_shim.length + (bit<8>)hdr.int_md.hop_ml;
            if (hdr.ipv4.isValid()) {
                hdr.ipv4.checksum = checksum_replace(
                    hdr.ipv4.checksum, hdr.ipv4.total_len, hdr.ipv4.total_len + bytes);
                hdr.ipv4.total_len = hdr.ipv4.total_len + bytes;
            } else {
                hdr.ipv6.payload_len = hdr.ipv6.payload_len + bytes;
            }
            if (hdr.udp.isValid()) {
                hdr.udp.length = hdr.udp.length + bytes;
            }

            if (hdr.int_md.ask_node_id == 1) {
                hdr.int_node_id.setValid();
                hdr.int_node_id.node_id = meta.telemetry.node_id;
            }
            if (hdr.int_md.ask_level1_ports == 1) {
                hdr.int_level1_ports.setValid();
                hdr.int_level1_ports.ingress_port = (bit<16>)standard_metadata.ingress_port;
                hdr.int_level1_ports.egress_port = (bit<16>)meta.telemetry.egress_port;
            }
            if (hdr.int_md.ask_hop_latency == 1) {
                hdr.int_hop_latency.setValid();
                hdr.int_hop_latency.nanoseconds = (bit<32>)(standard_metadata.egress_global_timestamp
                    - standard_metadata.ingress_global_timestamp) * 1000;
            }
            if (hdr.int_md.ask_queue == 1) {
                hdr.int_queue.setValid();
                if (meta.telemetry.sunk == 1) {
                    hdr.int_queue.queue = 0xFF;
                    hdr.int_queue.occupancy = 0xFFFFFF;
                } else {
                    hdr.int_queue.queue = (bit<8>)standard_metadata.priority;
                    hdr.int_queue.occupancy = (bit<24>)standard_metadata.deq_qdepth;
                }
            }
            if (hdr.int_md.ask_ingress_time == 1) {
                hdr.int_ingress_time.setValid();
                hdr.int_ingress_time.nanoseconds = (bit<64>)standard_metadata.ingress_global_timestamp * 1000;
            }
            if (hdr.int_md.ask_egress_time == 1) {
                hdr.int_egress_time.setValid();
                hdr.int_egress_time.nanoseconds = (bit<64>)standard_metadata.egress_global_timestamp * 1000;
            }
            if (hdr.int_md.ask_level2_ports == 1) {
                hdr.int_level2_ports.setValid();
                hdr.int_level2_ports.ingress_port = (bit<32>)standard_metadata.ingress_port;
                hdr.int_level2_ports.egress_port = (bit<32>)meta.telemetry.egress_port;
            }
            if (hdr.int_md.ask_tx_utilization == 1) {
                hdr.int_tx_utilization.setValid();
                hdr.int_tx_utilization.value = 0xFFFFFFFF;
            }
            if (hdr.int_md.ask_buffer == 1) {
                hdr.int_buffer.setValid();
                hdr.int_buffer.value = 0xFFFFFFFF;
            }
        }
    }
}

// Headers in the order of the wire; a hop's INT metadata lies between the INT-MD header and the older hops, which
// are payload.
//
// The IPv4 checksum is made anew: what arrives with a wrong one has been dropped.

control LevellerIngressDeparser(packet_out packet,
                                inout ingress_headers_t hdr,
                                in ingress_metadata_t meta,
                                in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    Checksum() ipv4_checksum;

    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.checksum = ipv4_checksum.update({
                hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_len,
                hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments,
                hdr.ipv4.frag_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr
            });
        }
        packet.emit(hdr.bridged);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan_outer);
        packet.emit(hdr.vlan_inner);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
        packet.emit(hdr.int_shim);
        packet.emit(hdr.int_md);
    }
}

control LevellerEgressDeparser(packet_out packet,
                               inout egress_headers_t hdr,
                               in egress_metadata_t meta,
                               in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    Checksum() ipv4_checksum;

    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.checksum = ipv4_checksum.update({
                hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_len,
                hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments,
                hdr.ipv4.frag_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr
            });
        }
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan_outer);
        packet.emit(hdr.vlan_inner);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
        packet.emit(hdr.int_shim);
        packet.emit(hdr.int_md);
        packet.emit(hdr.int_node_id);
        packet.emit(hdr.int_level1_ports);
        packet.emit(hdr.int_hop_latency);
        packet.emit(hdr.int_queue);
        packet.emit(hdr.int_ingress_time);
        packet.emit(hdr.int_egress_time);
        packet.emit(hdr.int_level2_ports);
        packet.emit(hdr.int_tx_utilization);
        packet.emit(hdr.int_buffer);
    }
}

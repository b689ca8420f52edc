// What counts as control traffic besides probes: what must get through for the rest to work at all.
//
// A host may claim the control level only with packets in which a tenant cannot hide data: a TCP segment
// without payload or IP options, where no entry knows its flow (level_control.p4), a CNP, a neighbour discovery
// message, each of its own size, which the IP header, the UDP header and the frame have to agree on. (TCP options
// remain: 40 bytes in a frame of 94. How many such frames a host sends is its port's policer's business.) Routing
// protocols count between switches only: from a fabric port, with the TTL of 255 that no host can give a packet behind
// a router (RFC 5082). Otherwise a tenant whose job talks on TCP port 179 would have the best queue of the
// fabric.
//
// Not here: RoCEv2 acknowledgements, which must not overtake read responses of their queue pair; TCP resets,
// which would overtake the data that they follow; ARP, which this program does not forward.

control ControlTraffic(in headers_t hdr, inout metadata_t meta, in standard_metadata_t standard_metadata) {
    apply {
        if (hdr.tcp.isValid()) {
            // Lengths in bytes; header lengths are in words.
            if (hdr.ipv4.isValid()) {
                if (hdr.ipv4.ihl == 5 && hdr.ipv4.total_len == ((5 + (bit<16>)hdr.tcp.data_offset) << 2)) {
                    meta.level.is_ack = ~hdr.tcp.rst;
                }
            } else if (hdr.ipv6.payload_len == ((bit<16>)hdr.tcp.data_offset << 2)) {
                meta.level.is_ack = ~hdr.tcp.rst;
            }
        } else if (hdr.bth.isValid()) {
            if (hdr.bth.opcode == BTH_OPCODE_CNP && hdr.udp.length == CNP_UDP_BYTES
                    && (hdr.ipv4.isValid() && hdr.ipv4.ihl == 5 && hdr.ipv4.total_len == CNP_UDP_BYTES + 20
                        || hdr.ipv6.isValid() && hdr.ipv6.payload_len == CNP_UDP_BYTES)) {
                meta.level.is_control = 1;
            }
        } else if (hdr.icmpv6.isValid()) {
            if (hdr.icmpv6.type >= ICMPV6_ND_FIRST && hdr.icmpv6.type <= ICMPV6_ND_LAST
                    && hdr.ipv6.hop_limit == HOP_LIMIT_MAX && hdr.ipv6.payload_len <= ND_MAX_BYTES) {
                meta.level.is_control = 1;
            }
        }

        if ((meta.level.is_control == 1 || meta.level.is_ack == 1)
                && standard_metadata.packet_length > PADDED_MAX_BYTES) {
            bit<32> bytes = (bit<32>)hdr.ipv4.total_len;
            if (hdr.ipv6.isValid()) {
                bytes = (bit<32>)hdr.ipv6.payload_len + IPV6_BYTES;
            }
            if (standard_metadata.packet_length > bytes + ETHERNET_MAX_BYTES) {
                meta.level.is_control = 0;
                meta.level.is_ack = 0;
            }
        }

        if (meta.fabric_port == 1) {
            if (hdr.ipv4.isValid() && hdr.ipv4.ttl == HOP_LIMIT_MAX
                    || hdr.ipv6.isValid() && hdr.ipv6.hop_limit == HOP_LIMIT_MAX) {
                if (hdr.tcp.isValid() && (meta.l4.sport == PORT_BGP || meta.l4.dport == PORT_BGP)
                        || hdr.udp.isValid() && meta.l4.dport == PORT_BFD
                        || hdr.ipv4.isValid() && hdr.ipv4.protocol == PROTOCOL_OSPF
                        || hdr.ipv6.isValid() && hdr.ipv6.next_header == PROTOCOL_OSPF) {
                    meta.level.is_control = 1;
                }
            }
        }
    }
}

// Reference L3 forwarding: longest prefix, then one next hop or one of several by the flow's hash.
//
// No route, no forwarding: packets that are not IP (ARP among them: hosts need static neighbours), whose TTL
// is used up, or that match nothing leave `routed` 0, and are dropped. No ICMP is sent.

control Forwarding(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bit<16> group = 0;
    bit<16> count = 0;
    bit<32> seed = 0;
    bit<16> member = 0;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    // The packet was sent to this router's MAC address: that one is the next hop's source.
    action set_nhop(port_t port, mac_t dmac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = dmac;
        meta.routed = 1;
    }

    action set_ecmp(@name("group") bit<16> ecmp_group, @name("count") bit<16> ecmp_count) {
        group = ecmp_group;
        count = ecmp_count;
    }

    table ipv4_lpm {
        key = {
            hdr.ipv4.dst_addr : lpm @name("dst");
        }
        actions = { set_nhop; set_ecmp; drop; }
        default_action = drop();
        size = ROUTES_V4;
    }

    table ipv6_lpm {
        key = {
            hdr.ipv6.dst_addr : lpm @name("dst");
        }
        actions = { set_nhop; set_ecmp; drop; }
        default_action = drop();
        size = ROUTES_V6;
    }

    action set_seed(@name("seed") bit<32> ecmp_seed_value) {
        seed = ecmp_seed_value;
    }

    table ecmp_seed {
        actions = { set_seed; }
        default_action = set_seed(0);
    }

    table ecmp {
        key = {
            group  : exact @name("group");
            member : exact @name("member");
        }
        actions = { set_nhop; drop; }
        default_action = drop();
        size = ECMP_MEMBERS;
    }

    apply {
        bit<32> h = 0;
        if (hdr.ipv4.isValid()) {
            if (hdr.ipv4.ttl > 1) {
                ipv4_lpm.apply();
                hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
                hdr.ipv4.checksum = checksum_decrement_ttl(hdr.ipv4.checksum);
            }
        } else if (hdr.ipv6.isValid()) {
            if (hdr.ipv6.hop_limit > 1) {
                ipv6_lpm.apply();
                hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
            }
        }
        if (count != 0) {
            if (hdr.ipv4.isValid()) {
                hash(h, HashAlgorithm.crc32, 32w0, {
                    hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, meta.l4.sport, meta.l4.dport
                }, 64w0x100000000);
            } else {
                hash(h, HashAlgorithm.crc32, 32w0, {
                    hdr.ipv6.src_addr, hdr.ipv6.dst_addr, hdr.ipv6.next_header, meta.l4.sport, meta.l4.dport
                }, 64w0x100000000);
            }
            // A CRC is linear: a seed among its inputs would only turn every choice by a constant, and all
            // flows that the first tier sends to one switch would agree at the second tier too. The
            // multiplications (Appleby's 32-bit finaliser, public domain) let the seed decide which bits of
            // the CRC count.
            ecmp_seed.apply();
            h = h ^ seed;
            h = (h ^ (h >> 16)) * 0x85EBCA6B;
            h = (h ^ (h >> 13)) * 0xC2B2AE35;
            h = h ^ (h >> 16);
            // The upper half picks: h / 2^32 x count, without a division.
            member = (bit<16>)(((bit<48>)h * (bit<48>)count) >> 32);
            ecmp.apply();
        }
    }
}

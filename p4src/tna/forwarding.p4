// Reference L3 forwarding: longest prefix, then one next hop or one of several by the flow's hash.
//
// No route, no forwarding, as on v1model. Two things are this target's own, since it cannot multiply. The seed
// decides which bits of the first CRC go into a second one together with all of them: that makes another linear
// function for every seed, so the tiers of a fabric choose independently if seeds differ in many bits: take
// random ones of 32 bits, not 1, 2, 3. And hash x count / 65536, for the member,
// is a sum of shifted parts: count is at most 127 here.

control Forwarding(inout ingress_headers_t hdr,
                   inout ingress_metadata_t meta,
                   inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) hash_v4;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) hash_v6;

    bit<32> seed = 0;

    action drop() {
        meta.routed = 0;
    }

    // The packet was sent to this router's MAC address: that one is the next hop's source.
    action set_nhop(port_t port, mac_t dmac) {
        ig_tm_md.ucast_egress_port = port;
        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = dmac;
        meta.routed = 1;
    }

    action set_ecmp(@name("group") bit<16> ecmp_group, @name("count") bit<16> ecmp_count) {
        meta.ecmp.group = ecmp_group;
        meta.ecmp.count = ecmp_count;
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
        size = 1;
    }

    apply {
        ecmp_seed.apply();
        if (hdr.ipv4.isValid()) {
            meta.ecmp.hash = hash_v4.get({
                hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, meta.l4.sport, meta.l4.dport
            });
        } else {
            meta.ecmp.hash = hash_v6.get({
                hdr.ipv6.src_addr, hdr.ipv6.dst_addr, hdr.ipv6.next_header, meta.l4.sport, meta.l4.dport
            });
        }
        if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1) {
            ipv4_lpm.apply();
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        } else if (hdr.ipv6.isValid() && hdr.ipv6.hop_limit > 1) {
            ipv6_lpm.apply();
            hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
        }
        meta.ecmp.chosen = meta.ecmp.hash & seed;
    }
}

// The choice among several, a control of its own: it takes many small steps, which fit beside the level's registers.
control Ecmp(inout ingress_headers_t hdr,
             inout ingress_metadata_t meta,
             inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Hash<bit<16>>(HashAlgorithm_t.CRC32) member_hash;

    bit<32> product = 0;
    bit<32> part0 = 0;
    bit<32> part1 = 0;
    bit<32> part2 = 0;
    bit<32> part3 = 0;
    bit<32> part4 = 0;
    bit<32> part5 = 0;
    bit<32> part6 = 0;

    action drop() {
        meta.routed = 0;
    }

    action set_nhop(port_t port, mac_t dmac) {
        ig_tm_md.ucast_egress_port = port;
        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = dmac;
        meta.routed = 1;
    }

    table ecmp {
        key = {
            meta.ecmp.group : exact @name("group");
            part0[31:16]    : exact @name("member");
        }
        actions = { set_nhop; drop; }
        default_action = drop();
        size = ECMP_MEMBERS;
    }

    @hidden action shift0() { part0 = product; }
    @hidden action shift1() { part1 = product << 1; }
    @hidden action shift2() { part2 = product << 2; }
    @hidden action shift3() { part3 = product << 3; }
    @hidden action shift4() { part4 = product << 4; }
    @hidden action shift5() { part5 = product << 5; }
    @hidden action shift6() { part6 = product << 6; }

    @hidden action add_pairs() {
        part0 = part0 + part1;
        part2 = part2 + part3;
        part4 = part4 + part5;
    }

    @hidden action add_fours() {
        part0 = part0 + part2;
        part4 = part4 + part6;
    }

    @hidden action add_all() {
        part0 = part0 + part4;
    }

    apply {
        product[15:0] = member_hash.get({ meta.ecmp.hash, meta.ecmp.chosen });
        if (meta.ecmp.count[0:0] == 1) { shift0(); }
        if (meta.ecmp.count[1:1] == 1) { shift1(); }
        if (meta.ecmp.count[2:2] == 1) { shift2(); }
        if (meta.ecmp.count[3:3] == 1) { shift3(); }
        if (meta.ecmp.count[4:4] == 1) { shift4(); }
        if (meta.ecmp.count[5:5] == 1) { shift5(); }
        if (meta.ecmp.count[6:6] == 1) { shift6(); }
        add_pairs();
        add_fours();
        add_all();
        if (meta.ecmp.count != 0) {
            ecmp.apply();
        }
    }
}

// The IPv4 header checksum is updated by what changed (RFC 1624), never computed afresh: that is cheaper,
// needs no look at the options, and a header that arrives broken leaves broken, for its receiver to see.
//
// L4 checksums are not touched. Nothing here changes what they cover, except in a probe, whose checksum
// means nothing once INT has been pushed; no host ever sees one.
#ifndef _LEVELLER_CHECKSUM_P4_
#define _LEVELLER_CHECKSUM_P4_

// HC' = ~(~HC + ~m + m'), RFC 1624 equation 3: the 16-bit word `before` became `after`.
bit<16> checksum_replace(in bit<16> checksum, in bit<16> before, in bit<16> after) {
    bit<32> sum = (bit<32>)(~checksum) + (bit<32>)(~before) + (bit<32>)after;
    // Two carries at most, each taken around: - 0x10000 + 1.
    if (sum > 0xFFFF) {
        sum = sum - 0xFFFF;
    }
    if (sum > 0xFFFF) {
        sum = sum - 0xFFFF;
    }
    return ~(bit<16>)sum;
}

// The same, for a TTL that became one less: every routed packet passes here.
bit<16> checksum_decrement_ttl(in bit<16> checksum) {
    bit<32> sum = (bit<32>)checksum + 0x0100;
    if (sum >= 0xFFFF) {
        sum = sum + 1;
    }
    return (bit<16>)sum;
}

#endif

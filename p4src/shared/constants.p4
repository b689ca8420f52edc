// Numbers that have a meaning. Those that the controller and the agents need too reach them through
// the build's manifest.json.
#ifndef _LEVELLER_CONSTANTS_P4_
#define _LEVELLER_CONSTANTS_P4_

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_IPV6 = 0x86DD;
const bit<16> ETHERTYPE_VLAN = 0x8100;  // IEEE 802.1Q
const bit<16> ETHERTYPE_QINQ = 0x88A8;  // IEEE 802.1ad

const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;
const bit<8> PROTOCOL_ICMPV6 = 58;
const bit<8> PROTOCOL_OSPF = 89;

const bit<16> PORT_BGP = 179;
const bit<16> PORT_BFD = 3784;      // RFC 5881, control packets
const bit<16> PORT_ROCE = 4791;     // RoCEv2

// The ports of the switch that are not front-panel ports.
const bit<9> CPU_PORT = 510;        // start the switch with --cpu-port 510

// INT 2.1 (p4lang/p4-applications). The DSCP is ONOS' choice; it must not mark a level as well.
const bit<6> INT_DSCP = 0x17;
const bit<4> INT_TYPE_MD = 1;
const bit<4> INT_VERSION = 2;
const bit<8> INT_EMPTY_WORDS = 3;   // shim length of an empty stack: the INT-MD header alone
const bit<8> INT_MAX_HOPS = 16;     // the edge allows a host's probe no more
const bit<16> INT_FRESH_MAX_BYTES = 128;  // a host's probe, IP packet (IPv6: its payload)
const bit<32> INT_FRESH_MAX_FRAME = 190;  // ... with Ethernet, two VLAN tags and, if need be, an IPv6 header
const bit<16> INT_MTU = 1500;       // a probe grows no further than this, IP header included

// Why a packet-in was sent.
const bit<6> REASON_INT_PROBE = 1;

// Control traffic is known by size as well as by kind, or a tenant could hide data in it.
const bit<16> CNP_UDP_BYTES = 40;   // UDP 8 + BTH 12 + 16 reserved + ICRC 4 (InfiniBand annex A17.9.3)
const bit<8> BTH_OPCODE_CNP = 0x81;
const bit<8> ICMPV6_ND_FIRST = 133; // RFC 4861: router solicitation 133 .. redirect 137
const bit<8> ICMPV6_ND_LAST = 137;
const bit<16> ND_MAX_BYTES = 40;    // a solicitation or advertisement with a link address and a nonce
// Behind the IP packet a frame has nothing but the padding of a short one. More is hidden data.
const bit<32> PADDED_MAX_BYTES = 68;  // the shortest frame, with two VLAN tags
const bit<32> ETHERNET_MAX_BYTES = 22;  // in front of the IP header, with two VLAN tags
const bit<32> IPV6_BYTES = 40;
const bit<8> HOP_LIMIT_MAX = 255;   // RFC 5082: 255 has not been forwarded by any router

// What holds until the controller writes something else.
const bit<8> LEVEL_DEFAULT = 0;     // flows that no entry knows
const bit<8> LEVEL_CONTROL = 7;     // control traffic
const bit<32> BURST_GAP_US = 10000;

#endif

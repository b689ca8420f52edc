// The headers on the wire. Both targets use them.
#ifndef _LEVELLER_HEADERS_P4_
#define _LEVELLER_HEADERS_P4_

typedef bit<9> port_t;
typedef bit<48> mac_t;
typedef bit<32> ipv4_t;
typedef bit<128> ipv6_t;

header ethernet_h {
    mac_t   dst_addr;
    mac_t   src_addr;
    bit<16> ether_type;
}

header vlan_h {
    bit<3>  pcp;
    bit<1>  dei;
    bit<12> vid;
    bit<16> ether_type;
}

header ipv4_h {
    bit<4>  version;
    bit<4>  ihl;
    bit<6>  dscp;
    bit<2>  ecn;
    bit<16> total_len;
    bit<16> identification;
    bit<1>  reserved;
    bit<1>  dont_fragment;
    bit<1>  more_fragments;
    bit<13> frag_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    ipv4_t  src_addr;
    ipv4_t  dst_addr;
}

header ipv4_options_h {
    varbit<320> options;
}

header ipv6_h {
    bit<4>  version;
    bit<6>  dscp;
    bit<2>  ecn;
    bit<20> flow_label;
    bit<16> payload_len;
    bit<8>  next_header;
    bit<8>  hop_limit;
    ipv6_t  src_addr;
    ipv6_t  dst_addr;
}

// The fixed 20 bytes; options stay in the payload.
header tcp_h {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> seq;
    bit<32> ack;
    bit<4>  data_offset;
    bit<4>  reserved;
    bit<5>  flags_high;  // CWR ECE URG ACK PSH
    bit<1>  rst;
    bit<2>  flags_low;   // SYN FIN
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

header udp_h {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

// First half of any ICMPv6 message.
header icmpv6_h {
    bit<8>  type;
    bit<8>  code;
    bit<16> checksum;
}

// RoCEv2 base transport header.
header bth_h {
    bit<8>  opcode;
    bit<1>  solicited;
    bit<1>  migration;
    bit<2>  pad;
    bit<4>  version;
    bit<16> pkey;
    bit<8>  reserved;
    bit<24> dest_qp;
    bit<1>  ack_request;
    bit<7>  reserved2;
    bit<24> psn;
}

// INT 2.1: the shim that follows the L4 header.
header int_shim_h {
    bit<4>  type;
    bit<2>  npt;
    bit<2>  reserved;
    bit<8>  length;  // words after the shim
    bit<16> npt_dependent;
}

// INT 2.1: the INT-MD header, the instruction bitmap bit by bit.
header int_md_h {
    bit<4>  version;
    bit<1>  d;
    bit<1>  e;
    bit<1>  m;
    bit<12> reserved;
    bit<5>  hop_ml;  // words each hop pushes
    bit<8>  remaining_hops;
    bit<1>  ask_node_id;
    bit<1>  ask_level1_ports;
    bit<1>  ask_hop_latency;
    bit<1>  ask_queue;
    bit<1>  ask_ingress_time;
    bit<1>  ask_egress_time;
    bit<1>  ask_level2_ports;
    bit<1>  ask_tx_utilization;
    bit<1>  ask_buffer;
    bit<6>  ask_reserved;
    bit<1>  ask_checksum_complement;
    bit<16> domain_id;
    bit<16> ds_instruction;
    bit<16> ds_flags;
}

// What one hop pushes, in the order of the instruction bits.
header int_node_id_h {
    bit<32> node_id;
}

header int_level1_ports_h {
    bit<16> ingress_port;
    bit<16> egress_port;
}

header int_hop_latency_h {
    bit<32> nanoseconds;
}

header int_queue_h {
    bit<8>  queue;
    bit<24> occupancy;  // packets
}

header int_time_h {
    bit<64> nanoseconds;
}

header int_level2_ports_h {
    bit<32> ingress_port;
    bit<32> egress_port;
}

header int_word_h {
    bit<32> value;
}

// From the controller to the switch, in front of the packet.
@controller_header("packet_out")
header packet_out_h {
    port_t egress_port;
    bit<7> pad;
}

// What the level control and the hash need to know of layer 4. Ports are 0 where a packet has none.
struct transport_t {
    bit<16> sport;
    bit<16> dport;
    bit<24> qp;    // RoCEv2 destination queue pair
    bit<1>  roce;  // qp is set
}

#endif

// Headers and metadata of the two pipelines. Ingress tells egress what it needs in a bridged header.
#ifndef _LEVELLER_TNA_METADATA_P4_
#define _LEVELLER_TNA_METADATA_P4_

header bridged_h {
    bit<1>  probe;         // a well-formed probe
    bit<1>  plain;         // it asks for nothing special
    bit<1>  sunk;          // on its way to the controller
    bit<1>  from_host;     // the fabric's limit of hops holds
    bit<1>  small;         // at the control level: nothing may follow its IP packet
    @padding bit<3> pad0;
    bit<8>  queue;
    bit<8>  words;         // that it asks for, in three parts
    bit<8>  pair_words;
    bit<8>  last_words;
    bit<16> ingress_port;
    bit<16> egress_port;   // where it leaves, or would leave if it were not sunk
    bit<16> limit;         // the longest that its frame may be if small
    bit<32> node_id;
    bit<48> ingress_time;  // ns
}

// The INT-MD header's halves: ingress looks into both, and has only the first as a header.
header int_md_first_h {
    bit<4>  version;
    bit<1>  d;
    bit<1>  e;
    bit<1>  m;
    bit<12> reserved;
    bit<5>  hop_ml;
    bit<8>  remaining_hops;
}

header int_instructions_h {
    bit<9>  ask;
    bit<6>  ask_reserved;
    bit<1>  ask_checksum_complement;
    bit<16> domain_id;
    bit<16> ds_instruction;
    bit<16> ds_flags;
}

struct ingress_headers_t {
    bridged_h    bridged;
    packet_out_h packet_out;
    ethernet_h   ethernet;
    vlan_h       vlan_outer;
    vlan_h       vlan_inner;
    ipv4_h       ipv4;
    ipv6_h       ipv6;
    tcp_h        tcp;
    udp_h        udp;
    int_shim_h   int_shim;
    int_md_first_h int_md;
}

struct probe_metadata_t {
    bit<1> marked;      // the DSCP says INT
    bit<1> well_formed; // a probe in the form of INT 2.1, with the D bit
    bit<1> empty;       // ... whose stack is empty
}

struct ecmp_metadata_t {
    bit<16> group;
    bit<16> count;  // 0: the route has one next hop
    bit<32> hash;
    bit<32> chosen; // what the seed lets pass of the hash
}

struct ingress_metadata_t {
    transport_t      l4;
    level_metadata_t level;
    probe_metadata_t probe;
    ecmp_metadata_t  ecmp;
    bit<8>           form;         // the BTH's opcode, or the ICMPv6 message's type
    bit<1>           icmpv6;
    bool             checksum_error;  // IPv4
    bit<1>           from_controller;
    bit<1>           fabric_port;  // arrived from another switch
    bit<1>           refused;      // claims to be INT and may not
    bit<1>           routed;       // has an egress port
}

// P4Runtime's packet_in of the shared headers, laid out so that this target can write it.
@controller_header("packet_in")
header tofino_packet_in_h {
    @padding bit<7> pad0;
    port_t ingress_port;
    @padding bit<7> pad1;
    port_t egress_port;
    @padding bit<2> pad2;
    bit<6> reason;
}

struct egress_headers_t {
    tofino_packet_in_h packet_in;
    ethernet_h         ethernet;
    vlan_h             vlan_outer;
    vlan_h             vlan_inner;
    ipv4_h             ipv4;
    ipv6_h             ipv6;
    tcp_h              tcp;
    udp_h              udp;
    int_shim_h         int_shim;
    int_md_h           int_md;
    int_node_id_h      int_node_id;
    int_level1_ports_h int_level1_ports;
    int_hop_latency_h  int_hop_latency;
    int_queue_h        int_queue;
    int_time_h         int_ingress_time;
    int_time_h         int_egress_time;
    int_level2_ports_h int_level2_ports;
    int_word_h         int_tx_utilization;
    int_word_h         int_buffer;
}

struct egress_metadata_t {
    bridged_h bridged;
    bit<8>    announced;  // the probe's hop_ml, behind 3 reserved bits
}

#endif

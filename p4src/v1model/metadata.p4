// The reference program's headers and metadata. bmv2 and the softswitch start a packet with all of it zero.
#ifndef _LEVELLER_METADATA_P4_
#define _LEVELLER_METADATA_P4_

// From the switch to the controller, in front of the packet.
@controller_header("packet_in")
header packet_in_h {
    port_t ingress_port;
    port_t egress_port;  // where the packet would have left
    bit<6> reason;
}

struct headers_t {
    packet_out_h       packet_out;
    packet_in_h        packet_in;
    ethernet_h         ethernet;
    vlan_h             vlan_outer;
    vlan_h             vlan_inner;
    ipv4_h             ipv4;
    ipv4_options_h     ipv4_options;
    ipv6_h             ipv6;
    tcp_h              tcp;
    udp_h              udp;
    icmpv6_h           icmpv6;
    bth_h              bth;
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

struct int_metadata_t {
    bit<1>  probe;       // a well-formed probe
    bit<1>  understood;  // this switch can give what the probe asks for
    bit<1>  sunk;        // on its way to the controller
    bit<1>  node_known;  // the controller has given this switch its node id
    bit<32> node_id;
    port_t  egress_port; // where the probe leaves, or would leave if it were not sunk
}

struct metadata_t {
    transport_t      l4;
    level_metadata_t level;
    int_metadata_t   telemetry;
    bit<6>           dscp;         // as it arrived
    bit<1>           fabric_port;  // arrived from another switch
    bit<1>           refused;      // claims to be INT and may not
    bit<1>           routed;       // has an egress port
}

#endif

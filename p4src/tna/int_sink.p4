// Where a probe ends: what is about to leave on a port that does not lead to another switch goes to the controller.
//
// The packet itself is turned to the processor's port, here in ingress, as on v1model. A mirror copy would need a
// session that the controller sets up first, and would leave an original to be dropped: two ways to fail open.
// Egress then adds this hop as everywhere, with the port that the probe would have left on, and packet_in.
//
// Fail closed: a port relays probes only where an entry says so, and until int_node is set the switch forwards
// none at all: a path with a hole in it is worse than none.

control IntSink(inout ingress_headers_t hdr,
                inout ingress_metadata_t meta,
                in ingress_intrinsic_metadata_t ig_intr_md,
                inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Counter<bit<32>, PortId_t>(PORTS, CounterType_t.PACKETS) int_sunk;  // by ingress port
    bit<1> node_known = 0;

    action int_off() { }

    action set_int_node(bit<32> node_id) {
        node_known = 1;
        hdr.bridged.node_id = node_id;
    }

    table int_node {
        actions = { int_off; set_int_node; }
        default_action = int_off();
        size = 1;
    }

    action relay() {
        hdr.bridged.egress_port = (bit<16>)ig_tm_md.ucast_egress_port;
    }

    action sink() {
        hdr.bridged.sunk = 1;
        hdr.bridged.egress_port = (bit<16>)ig_tm_md.ucast_egress_port;
        ig_tm_md.ucast_egress_port = TOFINO_CPU_PORT;
    }

    table int_sink {
        key = {
            ig_tm_md.ucast_egress_port : exact @name("egress_port");
        }
        actions = { sink; relay; }
        default_action = sink();
        size = PORTS;
    }

    apply {
        int_node.apply();
        if (hdr.bridged.probe == 1) {
            int_sink.apply();
        }
        if (hdr.bridged.probe == 1 && node_known == 0) {
            meta.refused = 1;
        }
        if (hdr.bridged.sunk == 1 && meta.refused == 0 && meta.routed == 1) {
            int_sunk.count(ig_intr_md.ingress_port);
        }
    }
}

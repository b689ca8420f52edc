// Where a probe ends: what is about to leave on a port that does not lead to another switch goes to the controller.
//
// The packet itself is turned to the CPU port, here in ingress. A clone would need a session that the
// controller sets up first, and would leave an original to be dropped: two ways to fail open. Egress then
// adds this hop as everywhere, with the port that the probe would have left on; only the queue, which it
// never passed, is unknown.
//
// Fail closed: a port relays probes only where an entry says so, and until int_node is set the switch forwards
// none at all: a path with a hole in it is worse than none.

control IntSink(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(PORTS, CounterType.packets) int_sunk;  // by ingress port

    action int_off() { }

    action set_int_node(bit<32> node_id) {
        meta.telemetry.node_known = 1;
        meta.telemetry.node_id = node_id;
    }

    table int_node {
        actions = { int_off; set_int_node; }
        default_action = int_off();
    }

    action relay() { }

    action sink() {
        meta.telemetry.sunk = 1;
    }

    table int_sink {
        key = {
            standard_metadata.egress_spec : exact @name("egress_port");
        }
        actions = { sink; relay; }
        default_action = sink();
        size = PORTS;
    }

    apply {
        meta.telemetry.egress_port = standard_metadata.egress_spec;
        int_node.apply();
        if (meta.telemetry.node_known == 0) {
            meta.routed = 0;
        } else {
            int_sink.apply();
            if (meta.telemetry.sunk == 1) {
                int_sunk.count((bit<32>)standard_metadata.ingress_port);
                hdr.packet_in.setValid();
                hdr.packet_in.ingress_port = standard_metadata.ingress_port;
                hdr.packet_in.egress_port = meta.telemetry.egress_port;
                hdr.packet_in.reason = REASON_INT_PROBE;
                standard_metadata.egress_spec = CPU_PORT;
            }
        }
    }
}

// An example of Leveller's level control in another pipeline: a plain L2 switch.
//
// What is this switch's own is L2Forwarding and the order of things in L2Ingress. The rest is included: the level
// control with its tables, and what finds the paths of flows (INT probes: gate, transit and sink). See
// docs/library.md.

#include <core.p4>
#include <v1model.p4>

#include "../v1model/level_control.p4"
#include "../v1model/metadata.p4"
#include "../v1model/parser.p4"
#include "../v1model/control_traffic.p4"
#include "../v1model/int_edge.p4"
#include "../v1model/int_sink.p4"
#include "../v1model/int_transit.p4"
#include "../v1model/deparser.p4"

// By destination address. An address that is not known goes where `flood` says, to all ports but its own.
control L2Forwarding(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action drop() { }

    action forward(port_t port) {
        standard_metadata.egress_spec = port;
        meta.routed = 1;
    }

    action flood(@name("group") bit<16> multicast_group) {
        standard_metadata.mcast_grp = multicast_group;
        meta.routed = 1;
    }

    table mac {
        key = {
            hdr.ethernet.dst_addr : exact @name("dst");
        }
        actions = { forward; flood; drop; }
        default_action = drop();
        size = 4096;
    }

    apply {
        mac.apply();
        if (meta.telemetry.probe == 1 && standard_metadata.mcast_grp != 0) {
            // A path forks here: there is nothing that a probe could find out.
            standard_metadata.mcast_grp = 0;
            meta.routed = 0;
        }
    }
}

control L2Ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    IntEdge() int_edge;
    ControlTraffic() control_traffic;
    L2Forwarding() forwarding;
    IntSink() int_sink;
    LevelControl() level_control;

    action host_facing() {
        meta.fabric_port = 0;
    }

    action fabric_facing() {
        meta.fabric_port = 1;
    }

    table edge_port {
        key = {
            standard_metadata.ingress_port : exact @name("ingress_port");
        }
        actions = { host_facing; fabric_facing; }
        default_action = host_facing();
        size = PORTS;
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
            meta.routed = 1;
            meta.level.is_control = 1;
            meta.level.keep_dscp = 1;
        } else {
            edge_port.apply();
            if (meta.dscp == INT_DSCP) {
                int_edge.apply(hdr, meta, standard_metadata);
            } else {
                control_traffic.apply(hdr, meta, standard_metadata);
            }
            if (meta.refused == 0 && standard_metadata.parser_error == error.NoError) {
                forwarding.apply(hdr, meta, standard_metadata);
                if (meta.telemetry.probe == 1 && meta.routed == 1) {
                    int_sink.apply(hdr, meta, standard_metadata);
                }
            }
        }

        if (meta.routed == 1) {
            level_control.apply(hdr.ipv4, hdr.ipv6, meta.l4, meta.level, standard_metadata);
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

control L2Egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    IntTransit() int_transit;

    apply {
        if (meta.telemetry.probe == 1) {
            int_transit.apply(hdr, meta, standard_metadata);
        }
        if (standard_metadata.egress_rid != 0 && standard_metadata.egress_port == standard_metadata.ingress_port) {
            mark_to_drop(standard_metadata);  // flooded, and came in here
        }
    }
}

control L2Checksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

V1Switch(LevellerParser(), L2Checksum(), L2Ingress(), L2Egress(), L2Checksum(), LevellerDeparser()) main;

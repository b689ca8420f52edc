// Leveller's reference switch on v1model (bmv2's simple_switch, the softswitch): an L3 leaf or spine that
// gives every flow the queue of its job's level.
//
// Ingress: gate for INT -> control traffic -> routing -> INT sink -> level. Egress: INT transit. Start
// the switch with --cpu-port 510 and --priority-queues 8.

#include <core.p4>
#include <v1model.p4>

#include "../shared/constants.p4"
#include "../shared/headers.p4"
#include "../shared/sizes.p4"
#include "checksum.p4"
#include "level_control.p4"
#include "metadata.p4"
#include "parser.p4"
#include "control_traffic.p4"
#include "forwarding.p4"
#include "int_edge.p4"
#include "int_sink.p4"
#include "int_transit.p4"
#include "deparser.p4"

control LevellerVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control LevellerIngress(inout headers_t hdr,
                        inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    IntEdge() int_edge;
    ControlTraffic() control_traffic;
    Forwarding() forwarding;
    IntSink() int_sink;
    LevelControl() level_control;

    counter(PORTS, CounterType.packets_and_bytes) ingress_port_counter;

    action host_facing() {
        meta.fabric_port = 0;
    }

    action fabric_facing() {
        meta.fabric_port = 1;
    }

    // A port that the controller has not named is not trusted.
    table edge_port {
        key = {
            standard_metadata.ingress_port : exact @name("ingress_port");
        }
        actions = { host_facing; fabric_facing; }
        default_action = host_facing();
        size = PORTS;
    }

    apply {
        ingress_port_counter.count((bit<32>)standard_metadata.ingress_port);

        if (hdr.packet_out.isValid()) {
            // The controller's word: straight out, at the control level.
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

control LevellerEgress(inout headers_t hdr,
                       inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    IntTransit() int_transit;

    counter(PORTS, CounterType.packets_and_bytes) egress_port_counter;

    apply {
        egress_port_counter.count((bit<32>)standard_metadata.egress_port);
        if (meta.telemetry.probe == 1) {
            int_transit.apply(hdr, meta, standard_metadata);
        }
    }
}

control LevellerComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

V1Switch(LevellerParser(),
         LevellerVerifyChecksum(),
         LevellerIngress(),
         LevellerEgress(),
         LevellerComputeChecksum(),
         LevellerDeparser()) main;

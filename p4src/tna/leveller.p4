// Leveller's reference switch on Tofino 1 and 2: the contract of v1model/leveller.p4 in TNA.
//
// Ingress: gate for INT -> control traffic -> routing -> INT sink -> level. Egress: INT transit. A queue is strict only
// once the traffic manager is told: `leveller qos`.

#include "target.p4"
#include "../shared/constants.p4"
#include "../shared/headers.p4"
#include "../shared/sizes.p4"
#include "level_control.p4"
#include "metadata.p4"
#include "parser.p4"
#include "egress_parser.p4"
#include "control_traffic.p4"
#include "forwarding.p4"
#include "int_edge.p4"
#include "int_sink.p4"
#include "int_transit.p4"
#include "hidden_data.p4"
#include "deparser.p4"

control LevellerIngress(inout ingress_headers_t hdr,
                        inout ingress_metadata_t meta,
                        in ingress_intrinsic_metadata_t ig_intr_md,
                        in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                        inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                        inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    IntEdge() int_edge;
    LimitFrame() limit_frame;
    EmptyTraffic() empty_traffic;
    RoutingTraffic() routing_traffic;
    Forwarding() forwarding;
    Ecmp() ecmp;
    IntSink() int_sink;
    LevelControl() level_control;

    Counter<bit<64>, PortId_t>(PORTS, CounterType_t.PACKETS_AND_BYTES) ingress_port_counter;

    action host_facing() {
        meta.fabric_port = 0;
    }

    action fabric_facing() {
        meta.fabric_port = 1;
    }

    // A port that the controller has not named is not trusted.
    table edge_port {
        key = {
            ig_intr_md.ingress_port : exact @name("ingress_port");
        }
        actions = { host_facing; fabric_facing; }
        default_action = host_facing();
        size = PORTS;
    }

    apply {
        ingress_port_counter.count(ig_intr_md.ingress_port);
        hdr.bridged.ingress_port = (bit<16>)ig_intr_md.ingress_port;
        hdr.bridged.ingress_time = ig_intr_md.ingress_mac_tstamp;

        // The order is one of stages, not of ideas: what follows a branch waits for its end on Tofino 1.
        if (meta.from_controller == 1) {
            // The controller's word: straight out, at the control level.
            ig_tm_md.ucast_egress_port = hdr.packet_out.egress_port;
            meta.routed = 1;
        }
        hdr.packet_out.setInvalid();
        edge_port.apply();
        empty_traffic.apply(hdr, meta);
        forwarding.apply(hdr, meta, ig_tm_md);
        level_control.apply(hdr.ipv4, hdr.ipv6, meta.l4, meta.level, ig_prsr_md, ig_tm_md);
        routing_traffic.apply(hdr, meta);
        int_edge.apply(hdr, meta, ig_intr_md);
        limit_frame.apply(hdr);
        ecmp.apply(hdr, meta, ig_tm_md);
        int_sink.apply(hdr, meta, ig_intr_md, ig_tm_md);

        hdr.bridged.queue = (bit<8>)ig_tm_md.qid;
        if (meta.routed == 0 || meta.refused == 1 || meta.checksum_error) {
            ig_dprsr_md.drop_ctl = 1;
        }
    }
}

control LevellerEgress(inout egress_headers_t hdr,
                       inout egress_metadata_t meta,
                       in egress_intrinsic_metadata_t eg_intr_md,
                       in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
                       inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
                       inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    HiddenData() hidden_data;
    IntTransit() int_transit;

    Counter<bit<64>, PortId_t>(PORTS, CounterType_t.PACKETS_AND_BYTES) egress_port_counter;

    apply {
        egress_port_counter.count(eg_intr_md.egress_port);

        hidden_data.apply(meta, eg_intr_md, eg_dprsr_md);
        if (meta.bridged.probe == 1) {
            int_transit.apply(hdr, meta, eg_intr_md, eg_prsr_md, eg_dprsr_md);
            if (meta.bridged.sunk == 1) {
                hdr.packet_in.setValid();
                hdr.packet_in.ingress_port = (port_t)meta.bridged.ingress_port;
                hdr.packet_in.egress_port = (port_t)meta.bridged.egress_port;
                hdr.packet_in.reason = REASON_INT_PROBE;
            }
        }
    }
}

Pipeline(LevellerIngressParser(),
         LevellerIngress(),
         LevellerIngressDeparser(),
         LevellerEgressParser(),
         LevellerEgress(),
         LevellerEgressDeparser()) pipe;

Switch(pipe) main;

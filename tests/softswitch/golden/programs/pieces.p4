// Packet-in and packet-out headers, the CPU port in multicast, metadata fields of many widths side by side.
#include <core.p4>
#include <v1model.p4>

@controller_header("packet_in")
header packet_in_t {
    bit<9> port;
    bit<1> odd;
    bit<6> reason;
}
@controller_header("packet_out")
header packet_out_t {
    bit<9> port;
    bit<7> pad;
}
header frame_t {
    bit<8> what;
    bit<8> to;
}
struct headers_t {
    packet_in_t  pin;
    packet_out_t pout;
    frame_t      frame;
}
struct metadata_t {
    bit<1>  one;
    bit<3>  three;
    bit<11> eleven;
    bit<65> many;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        transition select(sm.ingress_port) {
            510: out_of_cpu;
            default: frame;
        }
    }
    state out_of_cpu {
        packet.extract(hdr.pout);
        transition frame;
    }
    state frame {
        packet.extract(hdr.frame);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    counter(512, CounterType.packets_and_bytes) by_port;
    apply {
        by_port.count((bit<32>)sm.ingress_port);
        meta.one = hdr.frame.what[0:0];
        meta.three = hdr.frame.what[3:1];
        meta.eleven = hdr.frame.what ++ meta.three;
        meta.many = (bit<65>)hdr.frame.what << 57;
        if (hdr.pout.isValid()) {
            sm.egress_spec = hdr.pout.port;
            hdr.pout.setInvalid();
        } else if (hdr.frame.what == 1) {
            sm.egress_spec = 510;
        } else if (hdr.frame.what == 2) {
            sm.mcast_grp = 1;
        } else {
            sm.egress_spec = (bit<9>)hdr.frame.to;
        }
        hdr.frame.to = (bit<8>)meta.eleven ^ (bit<8>)(meta.many >> 57);
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.egress_port == 510) {
            hdr.pin.setValid();
            hdr.pin.port = sm.ingress_port;
            hdr.pin.odd = meta.one;
            hdr.pin.reason = 6w33;
        }
    }
}

control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.pin);
        packet.emit(hdr.frame);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

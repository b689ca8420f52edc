// One of everything that P4Runtime can read and write, and a switch that forwards by the first table that hits.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> length;
    bit<16> id;
    bit<16> fragment;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<3> reason;
    bit<4> pad;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> pad;
}

struct learn_t {
    bit<48> mac;
    bit<9>  port;
}

struct metadata_t {
    bit<8> color;
}

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   ethernet;
    ipv4_t       ipv4;
}

parser p(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    value_set<bit<16>>(4) extra_types;

    state start {
        transition select(std.ingress_port) {
            510: from_controller;
            default: ethernet;
        }
    }
    state from_controller {
        packet.extract(hdr.packet_out);
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            extra_types: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control check(inout headers_t hdr, inout metadata_t meta) { apply {} }

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets_and_bytes) mac_counter;
    direct_meter<bit<8>>(MeterType.packets) acl_meter;
    counter(16, CounterType.packets_and_bytes) port_counter;
    meter(16, MeterType.bytes) port_meter;
    register<bit<12>>(16) port_register;
    action_selector(HashAlgorithm.crc16, 16, 10) spreader;
    action_profile(8) nexts;

    action drop() { mark_to_drop(std); }
    action limit() { acl_meter.read(meta.color); }
    action forward(bit<9> port) { std.egress_spec = port; }
    action prioritise(bit<9> port, bit<3> queue) {
        std.egress_spec = port;
        std.priority = queue;
    }
    action flood(bit<16> group) { std.mcast_grp = group; }
    action punt(bit<3> reason) {
        hdr.packet_in.setValid();
        hdr.packet_in = { std.ingress_port, reason, 0 };
        std.egress_spec = 510;
    }
    action learn() { digest<learn_t>(1, { hdr.ethernet.src, std.ingress_port }); }
    action mirror(bit<32> session) { clone(CloneType.I2E, session); }

    table mac {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; prioritise; flood; punt; @defaultonly drop; }
        default_action = drop();
        counters = mac_counter;
        support_timeout = true;
        size = 64;
    }
    table source {
        key = { hdr.ethernet.src: exact; }
        actions = { learn; NoAction; }
        default_action = NoAction();
        size = 64;
    }
    table route {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; drop; NoAction; }
        const default_action = NoAction();
        size = 64;
    }
    table acl {
        key = {
            hdr.ipv4.src: ternary;
            hdr.ipv4.protocol: optional;
            hdr.ipv4.ttl: range;
            std.ingress_port: exact;
        }
        actions = { drop; mirror; @tableonly forward; limit; NoAction; }
        default_action = NoAction();
        meters = acl_meter;
        size = 4;
    }
    table fixed {
        key = { hdr.ethernet.type: exact; }
        actions = { drop; NoAction; }
        const entries = {
            0x88cc: drop();
            0x88cd: NoAction();
        }
    }
    table spread {
        key = {
            hdr.ipv4.dst: exact;
            hdr.ipv4.src: selector;
            hdr.ipv4.id: selector;
        }
        actions = { forward; drop; }
        implementation = spreader;
        size = 16;
    }
    table shared_next {
        key = { hdr.ipv4.dst: exact; }
        actions = { forward; drop; }
        implementation = nexts;
        size = 16;
    }
    apply {
        port_counter.count((bit<32>) std.ingress_port & 15);
        port_meter.execute_meter((bit<32>) std.ingress_port & 15, meta.color);
        if (hdr.packet_out.isValid()) {
            std.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            source.apply();
            fixed.apply();
            mac.apply();
            if (hdr.ipv4.isValid()) {
                acl.apply();
                route.apply();
                spread.apply();
                shared_next.apply();
            }
            bit<12> seen;
            port_register.read(seen, (bit<32>) std.ingress_port & 15);
            port_register.write((bit<32>) std.ingress_port & 15, seen + 1);
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply {} }

control compute(inout headers_t hdr, inout metadata_t meta) { apply {} }

control deparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(p(), check(), ingress(), egress(), compute(), deparser()) main;

// Counters, meters and registers, direct and indirect; action profile and selector; random, log_msg, assert.
#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8>  flow;
    bit<8>  group;
    bit<16> entropy;
    bit<32> value;
    bit<8>  color;
    bit<8>  direct_color;
    bit<16> chosen;
    bit<32> old;
    bit<16> number;
}

struct headers_t {
    data_t data;
}

struct metadata_t {
    bit<2> color;
    bit<2> direct_color;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    counter(8, CounterType.packets_and_bytes) arrivals;
    meter(4, MeterType.packets) policer;
    register<bit<32>>(16) cells;
    direct_counter(CounterType.packets_and_bytes) flow_counter;
    direct_meter<bit<2>>(MeterType.bytes) flow_meter;
    action_selector(HashAlgorithm.crc16, 32w16, 32w16) spread;
    action_profile(8) shared_actions;

    action choose(bit<16> chosen) { hdr.data.chosen = chosen; }
    action also(bit<16> chosen) { hdr.data.chosen = chosen + 1000; }
    action seen(bit<8> group) {
        flow_counter.count();
        flow_meter.read(meta.direct_color);
        hdr.data.group = group;
    }

    table flows {
        key = { hdr.data.flow : exact; }
        actions = { seen; NoAction; }
        default_action = NoAction();
        counters = flow_counter;
        meters = flow_meter;
        support_timeout = true;
    }
    table selected {
        key = { hdr.data.group : exact; hdr.data.entropy : selector; }
        actions = { choose; also; NoAction; }
        implementation = spread;
    }
    table profiled {
        key = { hdr.data.flow : exact; }
        actions = { choose; also; NoAction; }
        implementation = shared_actions;
    }

    apply {
        arrivals.count((bit<32>)hdr.data.flow);
        flows.apply();
        hdr.data.direct_color = (bit<8>)meta.direct_color;
        policer.execute_meter((bit<32>)hdr.data.flow, meta.color);
        hdr.data.color = (bit<8>)meta.color;
        if (!selected.apply().hit) { profiled.apply(); }
        cells.read(hdr.data.old, (bit<32>)hdr.data.flow);
        cells.write((bit<32>)hdr.data.flow, hdr.data.old + hdr.data.value);
        random(hdr.data.number, 16w100, 16w103);
        log_msg("flow {} has {}", {hdr.data.flow, hdr.data.old});
        assert(hdr.data.flow != 255);
        sm.egress_spec = 1;
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.data); }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

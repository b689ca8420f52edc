// Registers, counters and meters at computed indexes, out of bounds too; signed, wide and one-bit cells.
#include <core.p4>
#include <v1model.p4>

header cell_t {
    bit<8>   index;
    bit<8>   what;
    bit<32>  value;
    int<16>  small;
    bit<128> wide;
    bit<8>   color;
}
struct headers_t {
    cell_t cell;
}
struct metadata_t {
    bit<2> color;
    bit<1> bit_;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.cell);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    register<bit<32>>(8) words;
    register<int<16>>(8) signs;
    register<bit<128>>(4) wides;
    register<bit<1>>(16) bits;
    counter(8, CounterType.bytes) octets;
    counter(8, CounterType.packets) packets;
    meter(8, MeterType.bytes) pace;
    direct_counter(CounterType.packets_and_bytes) seen;

    action note(bit<8> add) {
        seen.count();
        hdr.cell.value = hdr.cell.value + (bit<32>)add;
    }
    table kinds {
        key = { hdr.cell.what : ternary; }
        actions = { note; NoAction; }
        default_action = NoAction();
        counters = seen;
        size = 16;
    }
    apply {
        bit<32> index = (bit<32>)hdr.cell.index;
        sm.egress_spec = 2;
        octets.count(index);
        packets.count((bit<32>)(hdr.cell.index & 7));
        kinds.apply();
        bit<32> old;
        words.read(old, index);
        words.write(index, old + hdr.cell.value);
        hdr.cell.value = old;
        int<16> before;
        signs.read(before, index);
        signs.write(index, before - hdr.cell.small);
        hdr.cell.small = before;
        bit<128> great;
        wides.read(great, index & 3);
        wides.write(index & 3, great ^ hdr.cell.wide);
        hdr.cell.wide = great;
        bits.read(meta.bit_, index);
        bits.write(index, ~meta.bit_);
        pace.execute_meter(index, meta.color);
        hdr.cell.color = meta.bit_ ++ 5w0 ++ meta.color;
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }

control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.cell);
    }
}

V1Switch(P(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;

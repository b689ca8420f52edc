// Every size of the data plane, in one file. Both targets use it: flows and groups are the most that fit into
// the 12 stages of a Tofino 1 (build/tna/resources.md).
#ifndef _LEVELLER_SIZES_P4_
#define _LEVELLER_SIZES_P4_

const bit<32> FLOWS_V4 = 65536;      // entries of flow_group_v4
const bit<32> FLOWS_V6 = 16384;      // entries of flow_group_v6
const bit<32> FLOWS_QP_V4 = 65536;   // entries of flow_group_qp_v4
const bit<32> FLOWS_QP_V6 = 12288;   // entries of flow_group_qp_v6
const bit<32> FLOW_SLOTS = 81920;    // FLOWS_V4 + FLOWS_V6: indices into the per-flow registers
const bit<32> GROUPS = 32768;        // groups that the controller can rank; each has an entry in two banks
const bit<32> LEVELS = 256;          // a level is 8 bits wide
const bit<32> ROUTES_V4 = 1024;
const bit<32> ROUTES_V6 = 1024;
const bit<32> ECMP_MEMBERS = 4096;   // over all ECMP groups
const bit<32> PORTS = 512;           // a v1model port is 9 bits wide

#endif

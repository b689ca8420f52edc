// Which Tofino. `make p4` compiles both; the architecture's own files come with the compiler.
#ifndef _LEVELLER_TARGET_P4_
#define _LEVELLER_TARGET_P4_

#include <core.p4>
#if __TARGET_TOFINO__ == 2
#include <t2na.p4>
#else
#include <tna.p4>
#endif

// The port of the switch's own processor over PCIe, where packets to and from the controller pass. Tofino with
// two pipes (BFN-T10-032D): 192, with four: 320. Tofino 2: 0.
#ifndef LEVELLER_CPU_PORT
#if __TARGET_TOFINO__ == 2
#define LEVELLER_CPU_PORT 0
#else
#define LEVELLER_CPU_PORT 192
#endif
#endif
const PortId_t TOFINO_CPU_PORT = LEVELLER_CPU_PORT;

// What the traffic manager counts into a packet's length besides the frame: the FCS, and what ingress bridges.
const bit<16> FCS_BYTES = 4;
const bit<16> BRIDGED_BYTES = 21;

#endif

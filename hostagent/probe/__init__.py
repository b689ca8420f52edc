"""Path probes: INT-MD packets with a flow's own 5-tuple, sent from the flow's own port.

`hostagent.probe.packet` builds the bytes, `hostagent.probe.nexthop` finds the link-layer destination,
`hostagent.probe.sender` sends.
"""

"""The OpenFlow 1.3 southbound, for fabrics that mix in Open vSwitch (extra ``openflow``)."""

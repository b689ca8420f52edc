"""The lab: fabrics, Mininet nodes, emulated training jobs, scenarios and the demonstration."""

"""The controller: reports in, levels out.

Data flows one way: report -> progress -> ranking -> difference -> write. The modules in the middle
(``progress``, ``profiling``, ``groups``, ``probing``, ``policies``, ``ranking``) do no I/O and are told the
time; those at the edge (``agents``, ``southbound``, ``store``, ``status``) decide nothing.
"""

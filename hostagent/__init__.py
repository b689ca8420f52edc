"""The host agent: finds a tenant host's training jobs, their progress and their flows, and reports them.

It changes nothing on the host: it reads ``/proc``, the jobs' own logs and the kernel's socket tables, and
sends the path probes that a controller asks for. Log formats are modules of `hostagent.logs`, ways to find
jobs of `hostagent.jobs`, ways to find flows of `hostagent.flows`, what NCCL tells of `hostagent.nccl`, and
probes of `hostagent.probe`; `hostagent.timing` says what an iteration is made of.
"""

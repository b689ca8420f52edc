"""What jobs that load our NCCL profiler plugin tell of themselves.

``plugin.c`` is that plugin: a small shared library that NCCL loads into the training processes where
``NCCL_PROFILER_PLUGIN`` names it. `hostagent.nccl.messages` reads its datagrams, `hostagent.nccl.receiver`
takes them in and believes only what the kernel confirms, `hostagent.nccl.communicators` keeps what they say.
"""

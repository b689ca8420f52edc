"""Finding the network flows of this host's jobs.

`hostagent.flows.namespaces` has the TCP connections of every network namespace that jobs live in (listed by
`hostagent.flows.inet_diag`), `hostagent.flows.tracker` keeps those that leave the host and belong to a job,
and `hostagent.flows.kind` tells collectives from control connections. `hostagent.flows.rdma` has the queue
pairs.
"""

"""Finding the network flows of this host's jobs.

`hostagent.flows.inet_diag` lists the TCP connections, `hostagent.flows.tracker` keeps those that leave the
host and belong to a job. Another kind of flow is another module that yields
`hostagent.flows.connection.Connection`.
"""

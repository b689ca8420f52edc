"""Finding the training jobs of this host, and how they are.

`hostagent.jobs.identity` says from a process's environment and command line which job it belongs to (with
`hostagent.jobs.kubernetes`, from its pod's labels), `hostagent.jobs.processes` finds the processes,
`hostagent.jobs.sources` their logs, and `hostagent.jobs.tracker` makes a `hostagent.jobs.job` of them. How
one ended or that it hangs is told by `hostagent.jobs.health` with `hostagent.jobs.exits`; what training code
says of itself comes in by `hostagent.jobs.reports` and `hostagent.jobs.told`. Another way to find jobs is
another module that yields the same `hostagent.jobs.identity.Rank`.
"""

"""Finding the training jobs of this host.

`hostagent.jobs.identity` says from an environment which job a process belongs to, `hostagent.jobs.processes`
finds the processes, `hostagent.jobs.tracker` makes jobs of them and follows their logs. Another way to find
jobs is another module that yields the same `hostagent.jobs.identity.Rank`.
"""

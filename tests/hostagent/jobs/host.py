"""A finder on /proc and a tracker of jobs, as the agent has them."""

import time

from hostagent.jobs.processes import ProcessFinder, own_network_namespace
from hostagent.jobs.tracker import JobTracker
from hostagent.logs import FORMATS

LINE = " iteration %8d/    1000 | elapsed time per iteration (ms): 20.0 |\n"


class Host:
    """The real thing: a finder on /proc and a tracker."""

    def __init__(self, memory=(), formats=FORMATS, patterns=()):
        self.finder = ProcessFinder("/proc", "h1", own_network_namespace("/proc"))
        self.jobs = JobTracker("/proc", formats=formats, patterns=patterns, memory=memory)
        self.durations = {}

    def look(self):
        now = time.monotonic_ns()
        self.finder.scan(now)
        ended = self.jobs.update(self.finder.processes.values())
        for progress in self.jobs.read(now):
            self.durations.setdefault(progress.job.id, []).extend(progress.durations_ns)
        return ended

    def job(self, id_):
        self.look()
        return self.jobs.jobs.get(id_)

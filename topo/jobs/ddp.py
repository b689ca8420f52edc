"""One rank of a real PyTorch data-parallel job: DistributedDataParallel over gloo, on the CPU.

Nothing is emulated but the computation's time, which is slept: model, gradients, buckets, the rendezvous
store and the all-reduce's connections are PyTorch's own. It takes the arguments of the emulated rank
(`topo.jobs.worker`) and logs in the same formats. Needs the extra ``ddp``.
"""

from __future__ import annotations

import argparse
import datetime
import math
import os
import sys
import time

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from topo.jobs.worker import LOGS, main, sleep_until

TIMEOUT = datetime.timedelta(minutes=10)
"""Before a collective gives up on a rank: a job may starve that long under a policy that lets it."""

FLOAT = 4
"""Bytes of a gradient's element."""


def parameters(volume: int, world: int) -> int:
    """Return how many parameters make a rank of ``world`` send ``volume`` bytes a ring all-reduce.

    Each of n ranks sends 2(n-1)/n of the gradient's bytes (Patarasuk and Yuan, 2009, section 3).
    """
    return max(1, round(volume * world / (2 * (world - 1)) / FLOAT))


class Bias(torch.nn.Module):  # type: ignore[misc]  # untyped where PyTorch is not installed
    """A model of ``size`` parameters whose own computation is next to nothing."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(size))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Return a loss to which every parameter contributes."""
        return (self.weight.sum() - batch).square()


def train(options: argparse.Namespace) -> None:
    """Train until a signal. Raises RuntimeError, as gloo does, where a peer has gone."""
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    make_line, logging_rank = LOGS[options.log]
    logs = rank == logging_rank % world
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", timeout=TIMEOUT)
    size = parameters(options.volume, world)
    # One bucket, as the emulated rank has one burst: nothing here overlaps with computing.
    model = DistributedDataParallel(Bias(size), bucket_cap_mb=math.ceil(size * FLOAT / 1e6) + 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    batch = torch.tensor(float(rank))
    sleep_until(options.start)
    distributed.barrier()
    begun, iteration = time.time(), 0
    while True:
        iteration += 1
        optimizer.zero_grad(set_to_none=False)
        loss = model(batch)
        sleep_until(begun + options.compute)
        loss.backward()  # the all-reduce
        optimizer.step()
        ended = time.time()
        if logs:
            sys.stdout.write(make_line(iteration, ended, ended - begun) + "\n")
            sys.stdout.flush()
        begun = ended


if __name__ == "__main__":
    sys.exit(main(train, (RuntimeError,)))

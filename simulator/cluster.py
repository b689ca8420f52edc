"""A sweep's runs on a Ray cluster that runs already (``pip install 'leveller[ray]'``)."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Sequence

from leveller.errors import UserError
from simulator.fabric import Fabric
from simulator.grid import Point, name
from simulator.scenario import Scenario
from simulator.store import Row, sources_digest
from simulator.sweep import Runner, Variants, run_point

AGAIN = "run it again: with --out it goes on where it was"

REACH_S = 5.0
"""How long the head may take to accept a connection. Ray itself would try for minutes."""


def on_ray(address: str) -> Runner:
    """Return what runs points on the Ray cluster whose head is at ``address`` (HOST:PORT).

    The cluster is left as it was; nothing is reported to Ray's makers. Raises UserError where Ray is not
    installed, and, while it runs, where there is no such cluster, it fails, or its nodes have another version
    of leveller, which could give other results.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
        from ray.exceptions import RayError, RayTaskError
    except ImportError:
        raise UserError("--ray needs Ray", "pip install 'leveller[ray]', here and on the cluster") from None

    def run(points: Sequence[Point], variants: Variants) -> Iterator[Row]:
        try:
            socket.create_connection(_split(address), REACH_S).close()
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, RuntimeError) as error:
            why = str(error).splitlines()[0]
            raise UserError(f"--ray {address} cannot be reached ({why})", "see 'ray status' there") from None
        try:
            task = ray.remote(_run_same)
            version = sources_digest()
            kept = {key: ray.put(variant) for key, variant in variants.items()}
            running: list[ray.ObjectRef[Row]] = []
            waiting = iter(points)
            while True:
                room = 2 * int(ray.cluster_resources().get("CPU", 1))  # type: ignore[no-untyped-call]
                for point in waiting:
                    running.append(task.remote(point, kept[name(point.settings)], version))
                    if len(running) >= room:
                        break
                if not running:
                    return
                ended, running = ray.wait(running)
                yield from ray.get(ended)
        except RayError as error:
            if isinstance(error, RayTaskError):
                raise error.cause from None  # what the run itself raised
            raise UserError(f"the Ray cluster failed ({str(error).splitlines()[0]})", AGAIN) from None
        finally:
            ray.shutdown()

    return run


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise UserError(f"--ray {address}", "give HOST:PORT of a Ray cluster's head, as in 10.0.0.1:6379")
    return host.strip("[]"), int(port)


def _run_same(point: Point, variant: tuple[Scenario, Fabric], version: str) -> Row:
    """Run a point on a node of the cluster. Raises UserError where that has another version of leveller."""
    if sources_digest() != version:
        raise UserError(
            "the Ray cluster has another version of leveller",
            "install on its nodes what is installed here, and start them again",
        )
    return run_point(point, *variant)

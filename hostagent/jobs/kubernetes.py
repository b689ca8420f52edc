"""What Kubernetes tells a pod of the job that it belongs to, and where the kubelet keeps a container's log.

A pod that mounts the downward API's volume at ``/etc/podinfo`` has its labels there in ``labels``, a
``NAME="VALUE"`` each, and in ``namespace`` its namespace, which is also beside its service account's token. A
pod may have the same in its environment, by names of its own choosing; those read here are in ENVIRON.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

PODINFO = ("etc/podinfo/labels", "etc/podinfo/namespace")
"""Where the downward API's volume is looked for, within the container's root."""

SERVICE_ACCOUNT = "var/run/secrets/kubernetes.io/serviceaccount/namespace"

NAMESPACE = "namespace"
"""Key of the pod's namespace among its labels (no label of Kubernetes' own can have this name here)."""

LABELS = (
    "jobset.sigs.k8s.io/jobset-name",  # JobSet, and the TrainJob of Kubeflow Trainer that it is made of
    "training.kubeflow.org/job-name",  # Kubeflow's training operator: PyTorchJob, MPIJob, ..
    "leaderworkerset.sigs.k8s.io/name",
    "volcano.sh/job-name",
    "batch.kubernetes.io/job-name",
    "job-name",
)
"""Labels that name a pod's job, the widest first."""

ENVIRON = ("JOBSET_NAME", "TRAINJOB_NAME", "PYTORCHJOB_NAME")

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL = re.compile(r'([-A-Za-z0-9_./]{1,317})="([-A-Za-z0-9_.]{0,63})"')
_CONTAINER = re.compile(r"(?:^|[/:-])([0-9a-f]{64})(?:\.scope)?$")


def is_pod(environ: Mapping[str, str]) -> bool:
    """Say whether a process with ``environ`` runs in a pod."""
    return "KUBERNETES_SERVICE_HOST" in environ


def parse_labels(text: str) -> dict[str, str]:
    """Read the downward API's ``labels``. What is no label is skipped."""
    return {found[1]: found[2] for line in text.splitlines() if (found := _LABEL.fullmatch(line))}


def job(environ: Mapping[str, str], labels: Mapping[str, str]) -> str | None:
    """Return ``NAMESPACE/NAME`` of the pod's job; None where nothing names it."""
    names = [labels.get(label) for label in LABELS]
    names += [environ.get(variable) for variable in ENVIRON] if is_pod(environ) else []
    name = next((name for name in names if name and _NAME.fullmatch(name)), None)
    namespace = environ.get("POD_NAMESPACE") or labels.get(NAMESPACE) or "default"
    return f"{namespace}/{name}" if name and _NAME.fullmatch(namespace) else None


def container(cgroup: str) -> str | None:
    """Return the id of the container that a process with this ``/proc/PID/cgroup`` is in."""
    return next((found[1] for line in cgroup.splitlines() if (found := _CONTAINER.search(line))), None)


def container_logs(identifier: str) -> tuple[str, ...]:
    """Return glob patterns of where runtimes keep the log of a container, within the host's root."""
    return (
        f"var/log/containers/*-{identifier}.log",
        f"var/lib/docker/containers/{identifier}/{identifier}-json.log",
    )

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostagent.jobs import kubernetes

LABELS = """app="train"
jobset.sigs.k8s.io/jobset-name="llama-70b"
jobset.sigs.k8s.io/replicatedjob-name="node"
batch.kubernetes.io/job-name="llama-70b-node-0"
bad line
evil="a\\"b"
"""
ID = "0123456789abcdef" * 4
POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}


def test_labels_of_the_downward_api():
    labels = kubernetes.parse_labels(LABELS)
    assert labels["jobset.sigs.k8s.io/jobset-name"] == "llama-70b"
    assert set(labels) == {
        "app", "jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/replicatedjob-name",
        "batch.kubernetes.io/job-name",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("environ", "labels", "job"),
    [
        ({}, {"jobset.sigs.k8s.io/jobset-name": "a", "job-name": "a-node-0", "namespace": "ml"}, "ml/a"),
        ({}, {"training.kubeflow.org/job-name": "a"}, "default/a"),
        ({"POD_NAMESPACE": "team"}, {"batch.kubernetes.io/job-name": "a"}, "team/a"),
        ({**POD, "TRAINJOB_NAME": "a"}, {"namespace": "ml"}, "ml/a"),
        ({"TRAINJOB_NAME": "a"}, {}, None),  # no pod: anybody's variable
        ({}, {"app": "a"}, None),
        ({}, {"job-name": "a/../b"}, None),
        ({"POD_NAMESPACE": "x y"}, {"job-name": "a"}, None),
    ],
)
def test_job(environ, labels, job):
    assert kubernetes.job(environ, labels) == job


@pytest.mark.parametrize(
    ("cgroup", "container"),
    [
        (f"0::/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-{ID}.scope\n", ID),
        (f"0::/../cri-containerd-{ID}.scope\n", ID),
        (f"12:pids:/docker/{ID}\n0::/init.scope\n", ID),
        (f"0::/system.slice/docker-{ID}.scope", ID),
        (f"0::/system.slice/kubelet.slice:cri-containerd:{ID}", ID),
        ("0::/user.slice/user-1000.slice/session-3.scope\n", None),
        ("", None),
    ],
)
def test_container(cgroup, container):
    assert kubernetes.container(cgroup) == container


@given(st.text())
def test_any_text(text):
    kubernetes.parse_labels(text)
    kubernetes.container(text)

import pytest

from simulator.profiles import COMPLETE, PROFILES, fill
from simulator.scenario import JobSection


@pytest.mark.parametrize("name", COMPLETE)
def test_each_complete_one_is_a_job(name):
    job = JobSection(id="a", profile=name, gpus=16)
    parts = job.phases or [job]
    assert sum(part.compute_s or 0 for part in parts) > 0
    assert sum(part.bytes or 0 for part in parts) > 0


def test_vgg16_is_what_cassini_measured():
    # 138.4 million numbers of 4 bytes; 2 x (n - 1) / n of them at 50 Gbit/s fill 255 - 141 ms for n = 4 to 5.
    job = JobSection(id="a", profile="vgg16", gpus=16)
    assert job.bytes == pytest.approx(138.4e6 * 4, rel=0.001)
    assert job.compute_s == 0.141


def test_experts_exchange_before_they_reduce():
    job = JobSection(id="a", profile="gpt-oss-20b", gpus=16)
    assert len(job.phases) == 49
    assert [phase.collective for phase in job.phases[1:3]] == ["all-to-all", "all-reduce"]
    assert sum(phase.compute_s or 0 for phase in job.phases) == pytest.approx(24 * 0.133)
    assert job.phases[-1].bytes == 8.8e9


def test_the_jobs_own_keys_go_first():
    job = JobSection(id="a", profile="bert", compute_s=0.2, comm_s=0.5)
    assert (job.bytes, job.comm_s, job.compute_s) == (None, 0.5, 0.2)
    assert fill({"profile": "vgg16", "bytes": 7})["bytes"] == 7


def test_what_is_not_public_has_to_be_said():
    with pytest.raises(ValueError, match="job a needs compute_s"):
        JobSection(id="a", profile="resnet50", gpus=8)
    with pytest.raises(ValueError, match="there is no profile 'gpt-9': choose one of vgg16, "):
        JobSection(id="a", profile="gpt-9")


def test_each_has_a_source():
    assert all("(" in profile.source or "artifact" in profile.source for profile in PROFILES.values())

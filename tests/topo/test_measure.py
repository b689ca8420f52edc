import pytest

from topo import measure
from topo.jobs.worker import megatron_line, nanogpt_line

ENDS = [100.5, 101.5, 103.25]


def test_both_formats_give_back_when_iterations_ended(tmp_path):
    start = 99.5
    for kind, make in (("megatron", megatron_line), ("nanogpt", nanogpt_line)):
        log = tmp_path / kind
        begun, lines = start, ["a line of something else"]
        for number, end in enumerate(ENDS, start=1):
            lines.append(make(number, end, end - begun))
            begun = end
        log.write_text("\n".join(lines) + "\n")
        assert measure.iteration_ends(log, kind, start) == pytest.approx(ENDS, abs=1e-4)


def test_rate_is_measured_between_iteration_ends():
    # Ends at 1, 3, 5, 7; the window takes in 3, 5, 7: two iterations of ideally 1.5 in 4 seconds.
    assert measure.progress([1, 3, 5, 7], 1.5, 2, 8) == measure.Progress(0.75, 2)


def test_a_starved_job_is_not_measured_as_zero_over_nothing():
    assert measure.progress([], 1.5, 0, 30) == measure.Progress(0, 0)
    assert measure.progress([4], 1.5, 0, 30) == measure.Progress(0.05, 1)

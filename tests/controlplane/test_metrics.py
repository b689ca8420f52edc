"""Metrics are registered once each, and those of what is gone go."""

from controlplane.metrics import Metrics


def test_series_of_a_job_and_a_host_go_with_it():
    metrics = Metrics()
    for job in "ab":
        metrics.rate.labels(job).set(0.5)
        metrics.level_changes.labels(job).inc()
    metrics.reports.labels("h1").inc()
    metrics.drop_job("a")
    metrics.drop_job("never seen")
    metrics.drop_host("h1")
    metrics.drop_host("h2")
    value = metrics.registry.get_sample_value
    assert value("leveller_job_progress_rate", {"job": "a"}) is None
    assert value("leveller_job_progress_rate", {"job": "b"}) == 0.5
    assert value("leveller_level_changes_total", {"job": "b"}) == 1.0
    assert value("leveller_reports_total", {"host": "h1"}) is None


def test_two_controllers_in_one_process_do_not_share():
    one, other = Metrics(), Metrics()
    one.probes_sent.inc()
    assert other.registry.get_sample_value("leveller_probes_requested_total") == 0.0

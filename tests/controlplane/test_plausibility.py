"""What the switches counted against what jobs told, with iterations of 10 MB that take 1 s alone."""

from ipaddress import ip_address

import pytest

from controlplane.model import FiveTuple
from controlplane.plausibility import ROLLBACK_EVERY_NS, Plausibility, Sample, Tally, Verdict

SECOND = 10**9
VOLUME = 10_000_000
H1, H2 = ip_address("10.0.1.1"), ip_address("10.0.2.1")


def flow(port, source=H1):
    return FiveTuple(source, H2, 6, port, 5000)


class Life:
    """A job: what it does, tells and sends."""

    def __init__(self, tolerance=0.25, min_iterations=20):
        self.check = Plausibility(tolerance, min_iterations)
        self.now_s, self.told, self.sent = 0.0, 0.0, {H1: 0.0, H2: 0.0}

    def sample(self):
        sent = {source: round(number) for source, number in self.sent.items()}
        return Sample(round(self.now_s * SECOND), int(self.told), sent)

    def pass_(self, seconds, told, sent):
        """Let time pass in which so many iterations are told, and as many sent, by each host."""
        self.now_s, self.told = self.now_s + seconds, self.told + told
        for source in self.sent:
            self.sent[source] += sent * VOLUME

    def profile(self, *, seconds=1.0, told=1, sent=1.0, t_ideal_s=1.0, stable=True, steps=4):
        self.check.alone("a", self.sample())
        for _ in range(steps):
            self.pass_(seconds, told, sent)
            self.check.alone("a", self.sample())
        self.check.profiled("a", round(t_ideal_s * SECOND), stable=stable, window=3)

    def run(self, readings, told, sent=5.0, seconds=5.0):
        """So many readings, ``seconds`` apart, with ``told`` iterations and the bytes of ``sent`` each."""
        for _ in range(readings):
            self.pass_(seconds, told, sent)
            self.check.check("a", self.sample())
        return self.verdict

    @property
    def verdict(self):
        return self.check.verdict("a")


@pytest.fixture
def life():
    life = Life()
    life.profile()
    return life


def test_who_was_not_profiled_is_not_checked():
    life = Life()
    assert life.run(50, told=0) == Verdict()


def test_an_honest_job_is_not_flagged_whatever_time_it_takes(life):
    assert life.run(100, told=5) == Verdict(True, "", 0, SECOND)
    assert life.run(100, told=2, sent=2.0) == Verdict(True, "", 0, SECOND)
    assert life.run(100, told=5, sent=6.0) == Verdict(True, "", 0, SECOND)  # repeats, evaluation: 20 % more


def test_who_tells_of_every_second_iteration_is_flagged_and_gets_what_it_sent(life):
    life.run(4, told=5)
    verdict = life.run(3, told=2.5)
    assert verdict.flagged == ""
    verdict = life.run(1, told=2.5)
    assert verdict == Verdict(True, "it told of 10 iterations while it sent the bytes of 20", 10, SECOND)
    verdict = life.run(4, told=2.5)
    assert verdict.untold == 20
    before = verdict.untold
    assert life.run(20, told=2.5).untold - before == 50


def test_a_third_may_be_left_untold(life):
    assert life.run(100, told=3.4) == Verdict(True, "", 0, SECOND)


def test_who_tells_nothing_any_more_is_flagged(life):
    verdict = life.run(7, told=0)
    assert verdict.flagged.startswith("it told of 0 iterations while it sent the bytes of 2")
    assert verdict.untold >= 25


def test_what_was_untold_stays_when_it_tells_the_truth_again_and_grows_no_more(life):
    kept = life.run(10, told=2.5).untold
    verdict = life.run(12, told=5)
    assert verdict.flagged == ""
    assert verdict.untold >= kept > 10
    assert life.run(40, told=5) == verdict


def test_who_makes_up_for_it_later_gets_nothing_twice(life):
    kept = life.run(10, told=2.5)
    assert kept.flagged
    life.pass_(1, told=kept.untold, sent=0)
    assert life.run(1, told=5).untold <= 1


def test_one_strange_reading_flags_nobody(life):
    life.run(10, told=5)
    life.run(1, told=0, sent=20.0)  # evaluation, say
    assert not life.verdict.flagged
    life.run(1, told=20)
    assert life.run(20, told=5) == Verdict(True, "", 0, SECOND)


@pytest.mark.parametrize("lie", [1.6, 2, 10])
def test_the_lie_begins_before_it_is_profiled(lie):
    """Each line tells of one iteration, and that it took 1 s, but it stands for several."""
    life = Life()
    life.profile(seconds=lie, told=1, sent=lie, steps=6)
    verdict = life.run(30, told=5 / lie)
    assert (verdict.checked, bool(verdict.flagged)) == (True, True)
    assert verdict.iteration_ns == SECOND


def test_times_that_are_too_short_are_a_lie_too():
    """It tells of every iteration, and that each took 0.4 s, so that R is low."""
    life = Life()
    life.profile(t_ideal_s=0.4)
    verdict = life.run(30, told=5)
    assert verdict.flagged
    # R is of iterations of 0.4 s, so each that it did is worth 2.5.
    more = life.run(10, told=5).untold - verdict.untold
    assert more == pytest.approx(10 * 5 * 1.5, abs=1)


def test_lies_that_agree_change_nothing():
    """Half of its iterations, of twice the time, always: R is the same."""
    life = Life()
    life.profile(seconds=2.0, told=1, sent=2.0, t_ideal_s=2.0)
    assert life.run(100, told=2.5) == Verdict(True, "", 0, 2 * SECOND)


def test_warm_up_and_a_checkpoint_while_it_is_profiled_do_not_count():
    life = Life()
    life.check.alone("a", life.sample())
    for seconds in (30.0, 1.0, 1.0, 1.0, 20.0, 1.0):
        life.pass_(seconds, 1, 1.0)
        life.check.alone("a", life.sample())
    life.check.profiled("a", SECOND, stable=True, window=3)
    assert life.run(100, told=5) == Verdict(True, "", 0, SECOND)


def test_where_iterations_were_not_stable_the_clock_says_what_they_take():
    life = Life()
    life.profile(t_ideal_s=0.3, stable=False)
    assert life.run(100, told=5) == Verdict(True, "", 0, SECOND)


def test_a_log_that_tells_every_100_iterations_is_judged_over_four_times_as_many():
    life = Life()
    life.profile(seconds=100.0, told=100, sent=100.0)
    for _ in range(30):
        life.run(19, told=0)  # 95 s without a word, and then a hundred
        assert life.run(1, told=100) == Verdict(True, "", 0, SECOND)
    for _ in range(10):
        life.run(39, told=0)
        life.run(1, told=100)
    assert life.verdict.flagged


def test_too_little_was_read_while_it_was_profiled():
    life = Life()
    life.profile(steps=1)
    assert not life.verdict.checked
    life.profile(seconds=0.01, told=1)  # three iterations in 0.03 s
    assert not life.verdict.checked
    life.profile(sent=0.003)  # 60 kB: keep-alives, while its gradients are only gathered
    assert not life.verdict.checked
    life.profile()
    assert life.verdict.checked
    life.profile(steps=1, t_ideal_s=0.1)  # the earlier reference stays
    assert life.verdict.iteration_ns == SECOND


def test_profiled_anew_a_job_that_has_grown_is_measured_by_that(life):
    assert life.run(20, told=2.5).flagged  # its batch is twice as large, as are its iterations
    kept = life.verdict.untold
    life.profile(seconds=2.0, told=1, sent=2.0, t_ideal_s=2.0)
    verdict = life.run(20, told=2.5)
    assert (verdict.flagged, verdict.iteration_ns) == ("", 2 * SECOND)
    assert verdict.untold - kept <= 2


def test_a_rollback_begins_the_test_anew_but_not_each_time(life):
    life.run(10, told=5)
    life.pass_(1, told=-15, sent=0)
    assert life.run(20, told=5) == Verdict(True, "", 0, SECOND)
    life.pass_(1, told=-15, sent=0)
    assert life.run(20, told=5).untold >= 10
    later = Life()
    later.profile()
    for _ in range(3):
        later.pass_(1, told=-15, sent=0)
        assert later.run(1 + ROLLBACK_EVERY_NS // (5 * SECOND), told=5) == Verdict(True, "", 0, SECOND)


def test_bytes_of_a_host_that_came_later_are_not_the_jobs(life):
    life.sent[ip_address("10.0.9.9")] = 0.0
    for _ in range(40):
        life.sent[ip_address("10.0.9.9")] += 50 * VOLUME
        life.run(1, told=5)
    assert life.verdict == Verdict(True, "", 0, SECOND)


def test_a_job_that_starts_anew_or_is_gone_is_forgotten(life):
    life.check.keep(["a", "b"])
    assert life.verdict.checked
    life.check.keep(["b"])
    assert not life.verdict.checked
    life.profile()
    life.check.restart("a")
    assert not life.verdict.checked


def test_a_profiling_that_was_put_off_leaves_no_reading():
    life = Life()
    life.check.alone("a", life.sample())
    life.pass_(9, 9, 1.0)
    life.check.alone("a", life.sample())
    life.check.put_off("a")
    life.profile()
    assert life.run(40, told=5) == Verdict(True, "", 0, SECOND)


class TestTally:
    def test_adds_up_by_job_and_source(self):
        tally = Tally()
        owners = {flow(1): "a", flow(2): "a", flow(1, H2): "a", flow(3): "b"}
        tally.observe("S1", {flow(1): 10, flow(2): 5, flow(1, H2): 7, flow(3): 1, flow(9): 99}, owners)
        tally.observe("S1", {flow(1): 30, flow(2): 5, flow(1, H2): 8, flow(3): 4}, owners)
        assert (tally.of("a"), tally.of("b"), tally.of("c")) == ({H1: 35, H2: 8}, {H1: 4}, {})

    def test_an_entry_that_is_made_anew_counts_from_zero(self):
        tally = Tally()
        for count in (10, 4, 6):
            tally.observe("S1", {flow(1): count}, {flow(1): "a"})
        assert tally.of("a") == {H1: 16}

    def test_flows_that_are_gone_leave_what_they_sent(self):
        tally = Tally()
        tally.observe("S1", {flow(1): 10}, {flow(1): "a"})
        tally.keep([], ["a"])
        tally.observe("S1", {flow(1): 3}, {flow(1): "a"})
        assert tally.of("a") == {H1: 13}
        tally.keep([("S1", flow(1))], ["b"])
        assert tally.of("a") == {}

    def test_a_flow_without_an_entry_is_not_counted(self):
        tally = Tally()
        tally.observe("S1", {}, {flow(1): "a"})
        assert tally.of("a") == {}

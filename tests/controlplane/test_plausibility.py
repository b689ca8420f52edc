"""What the switches counted against what jobs told, with iterations of 10 MB that take 1 s alone."""

from ipaddress import ip_address

import pytest

from controlplane.model import FiveTuple
from controlplane.plausibility import Plausibility, Sample, Verdict

SECOND = 10**9
VOLUME = 10_000_000
H1, H2, H3 = (ip_address(f"10.0.{n}.1") for n in (1, 2, 3))


def flow(port, source=H1):
    return FiveTuple(source, H2, 6, port, 5000)


FIRST, SECOND_FLOW, FOREIGN = flow(1), flow(1, H2), flow(9, H3)


def honest(untold=0):
    """The verdict on a job that nothing speaks against, with iterations of 1 s."""
    return Verdict(True, "", untold, SECOND, SECOND)


class Life:
    """A job: what it does, tells and sends, by a flow of each host."""

    def __init__(self, tolerance=0.25, min_iterations=20):
        self.check = Plausibility(tolerance, min_iterations)
        self.now_s, self.told, self.sent = 0.0, 0.0, {FIRST: 0.0, SECOND_FLOW: 0.0}

    def sample(self):
        sent = {flow: round(number) for flow, number in self.sent.items()}
        return Sample(round(self.now_s * SECOND), int(self.told), sent)

    def pass_(self, seconds, told, sent):
        """Let time pass in which so many iterations are told, and as many sent, by each host."""
        self.now_s, self.told = self.now_s + seconds, self.told + told
        for flow in (FIRST, SECOND_FLOW):
            self.sent[flow] += sent * VOLUME

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
    assert life.run(100, told=5) == honest()
    assert life.run(100, told=2, sent=2.0) == honest()
    assert life.run(100, told=5, sent=6.0) == honest()  # repeats, evaluation: 20 % more


def test_who_tells_of_every_second_iteration_is_flagged_and_gets_what_it_sent(life):
    life.run(4, told=5)
    verdict = life.run(3, told=2.5)
    assert verdict.flagged == ""
    verdict = life.run(1, told=2.5)
    assert verdict == Verdict(
        True, "it told of 10 iterations while it sent the bytes of 20", 10, SECOND, SECOND
    )
    verdict = life.run(4, told=2.5)
    assert verdict.untold == 20
    before = verdict.untold
    assert life.run(20, told=2.5).untold - before == 50


def test_a_third_may_be_left_untold(life):
    assert life.run(100, told=3.4) == honest()


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
    assert life.run(20, told=5) == honest()


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
    assert life.run(100, told=2.5) == Verdict(True, "", 0, 2 * SECOND, 2 * SECOND)


def test_warm_up_and_a_checkpoint_while_it_is_profiled_do_not_count():
    life = Life()
    life.check.alone("a", life.sample())
    for seconds in (30.0, 1.0, 1.0, 1.0, 20.0, 1.0):
        life.pass_(seconds, 1, 1.0)
        life.check.alone("a", life.sample())
    life.check.profiled("a", SECOND, stable=True, window=3)
    assert life.run(100, told=5) == honest()


def test_where_iterations_were_not_stable_the_clock_says_what_they_take():
    life = Life()
    life.profile(t_ideal_s=0.3, stable=False)
    assert life.run(100, told=5) == Verdict(True, "", 0, SECOND, round(0.3 * SECOND))


def test_a_log_that_tells_every_100_iterations_is_judged_over_four_times_as_many():
    life = Life()
    life.profile(seconds=100.0, told=100, sent=100.0)
    for _ in range(30):
        life.run(19, told=0)  # 95 s without a word, and then a hundred
        assert life.run(1, told=100) == honest()
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
    life.profile(steps=1, t_ideal_s=0.1)  # the earlier reference is void: it was of another T_ideal
    assert life.verdict == Verdict()


def test_profiled_anew_a_job_that_has_grown_is_measured_by_that_and_nothing_is_held_against_it(life):
    assert life.run(20, told=2.5).flagged  # its batch is twice as large, as are its iterations
    assert life.verdict.untold == 45
    life.profile(seconds=2.0, told=1, sent=2.0, t_ideal_s=2.0)
    assert life.verdict == Verdict(True, "", 0, 2 * SECOND, 2 * SECOND)
    assert life.run(40, told=2.5) == life.verdict


@pytest.mark.parametrize("growth", [1.6, 3.0])
def test_bytes_that_were_hidden_behind_computation_may_grow_too(life, growth):
    """As many iterations, of the same time, with more bytes each."""
    assert life.run(40, told=5, sent=5 * growth).flagged
    life.profile(sent=growth)
    assert life.verdict == honest()
    assert life.run(40, told=5, sent=5 * growth) == honest()


@pytest.mark.parametrize("lie", [1.6, 2, 10])
def test_a_liar_that_is_profiled_again_stays_flagged_and_is_forgiven_nothing(life, lie):
    life.run(40, told=5 / lie)
    kept = life.verdict.untold
    life.profile(seconds=lie, told=1, sent=lie, steps=6)
    assert (bool(life.verdict.flagged), life.verdict.untold) == (True, kept)
    assert life.run(20, told=5 / lie).untold == pytest.approx(kept + 95 * (1 - 1 / lie), abs=1)
    assert life.verdict.flagged


def test_who_tells_of_times_that_agree_with_its_lie_only_from_the_appeal_on_has_no_lower_r_by_it(life):
    life.run(40, told=2.5)
    done = life.told + life.verdict.untold
    life.profile(seconds=2.0, told=1, sent=2.0, t_ideal_s=2.0)
    assert (life.verdict.flagged, life.verdict.untold) == ("", 0)
    assert life.told * 2.0 >= done * 1.0  # N times T_ideal


def test_what_was_untold_of_an_earlier_flag_is_halved_as_the_flag_is_gone(life):
    life.run(10, told=2.5)
    kept = life.run(30, told=5).untold
    assert kept > 10
    life.profile()
    assert life.verdict == honest(kept // 2)
    life.run(40, told=5, sent=8.0)
    life.profile(sent=1.6)
    assert life.verdict == honest(kept // 4)


def test_a_fall_is_nothing_untold_however_deep_and_however_often(life):
    """Job a crashes every 10 minutes, and does 300 iterations again."""
    for _ in range(5):
        life.run(120, told=5)
        life.pass_(5, told=-300, sent=5.0)
        life.check.check("a", life.sample())
        assert life.verdict == honest()


def test_what_somebody_else_told_and_withdrew_is_nothing_untold(life):
    """Another host tells of 400,000 iterations of job a for 50 s, and then of none; twice."""
    life.run(4, told=5)
    for _ in range(2):
        for readings, told in ((1, 400_000), (10, 0), (1, -400_000), (100, 5)):
            life.run(readings, told=told)
        assert life.verdict == honest()


def test_no_more_is_untold_than_the_bytes_are_worth(life):
    assert life.run(8, told=0).untold == 30
    assert life.run(1, told=-10).untold == 20
    assert life.run(2, told=0).untold == 30
    assert life.run(1, told=-400_000).untold == 0


def test_a_jump_as_the_profiling_ends_does_not_switch_the_check_off():
    life = Life()
    life.check.alone("a", life.sample())
    for told in (1, 1, 1, 50_000):
        life.pass_(1.0, told, 1.0)
        life.check.alone("a", life.sample())
    life.check.profiled("a", SECOND, stable=True, window=3)
    assert life.run(12, told=2.5).flagged == "it told of 10 iterations while it sent the bytes of 20"


def test_a_log_that_tells_only_every_100_iterations_from_now_on_is_believed_from_its_first_line_on(life):
    life.run(4, told=5)
    assert life.run(19, told=0).flagged
    assert life.run(1, told=100) == honest()
    for _ in range(20):
        life.run(19, told=0)
        assert life.run(1, told=100) == honest()


def test_a_jump_that_its_bytes_are_not_worth_makes_the_test_no_longer(life):
    life.run(4, told=5)
    life.run(1, told=0)
    life.run(1, told=50_000)
    life.run(20, told=5)  # 20 iterations later it plays no part any more
    assert life.run(24, told=2.5).flagged


def test_flows_that_came_after_the_profiling_do_not_count(life):
    late = flow(2)
    life.sent[late] = 0.0
    for _ in range(40):
        life.sent[late] += 5 * VOLUME
        life.run(1, told=5)
    assert life.verdict == honest()


def test_who_sends_little_while_the_job_is_profiled_and_much_later_changes_nothing():
    life = Life()
    life.sent[FOREIGN] = 0.0
    life.check.alone("a", life.sample())
    for _ in range(4):
        life.sent[FOREIGN] += 1500
        life.pass_(1.0, 1, 1.0)
        life.check.alone("a", life.sample())
    life.check.profiled("a", SECOND, stable=True, window=3)
    for _ in range(40):
        life.sent[FOREIGN] += 50 * VOLUME
        life.run(1, told=5)
    assert life.verdict == honest()
    assert life.run(12, told=2.5).flagged == "it told of 10 iterations while it sent the bytes of 20"


def test_who_sends_as_much_while_the_job_warms_up_does_not_make_its_own_bytes_fewer():
    life = Life()
    life.sent[FOREIGN] = 0.0
    life.check.alone("a", life.sample())
    for seconds, foreign in ((10.0, 10), (1.0, 0), (1.0, 0), (1.0, 0)):
        life.sent[FOREIGN] += foreign * VOLUME
        life.pass_(seconds, 1, 1.0)
        life.check.alone("a", life.sample())
    life.check.profiled("a", SECOND, stable=True, window=3)
    assert life.run(40, told=5) == honest()


def test_who_tells_how_long_iterations_take_and_counts_none_while_it_is_profiled_is_checked_too():
    life = Life()
    life.profile(told=0)
    assert life.run(8, told=2).flagged == "it told of 8 iterations while it sent the bytes of 20"


def test_a_jump_within_a_burst_does_not_make_that_bursts_rate_the_jobs():
    life = Life()
    life.check.alone("a", life.sample())
    for seconds, told, sent in ((0.75, 0, 0.0), (0.25, 3, 1.0), *[(1.0, 1, 1.0)] * 4):
        life.pass_(seconds, told, sent)
        life.check.alone("a", life.sample())
    life.check.profiled("a", SECOND, stable=True, window=3)
    assert life.run(15, told=1.2).flagged


def test_a_flow_that_is_gone_and_back_counts_from_there_on(life):
    life.run(10, told=5)
    gone = life.sent.pop(FIRST)
    for _ in range(5):
        life.now_s, life.told = life.now_s + 5, life.told + 5
        life.sent[SECOND_FLOW] += 5 * VOLUME
        assert life.check.check("a", life.sample())
    life.sent[FIRST] = gone + 1000 * VOLUME
    assert life.run(20, told=5) == honest()


def test_a_reference_whose_flows_are_gone_is_void(life):
    life.sent = {flow(5): 0.0, flow(5, H2): 0.0}
    assert not life.check.check("a", life.sample())
    assert life.verdict == Verdict()
    assert life.check.check("a", life.sample())


def test_void_it_is_not_checked_but_what_was_untold_stays(life):
    kept = life.run(10, told=2.5).untold
    assert kept > 10
    life.check.void("a")
    assert life.verdict == Verdict(False, "", kept, 0, None)
    assert life.run(40, told=0).untold == kept


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
    assert life.run(40, told=5) == honest()

from hostagent.logs import FORMATS
from hostagent.logs.custom import custom
from hostagent.logs.format import USERS
from hostagent.logs.recogniser import SET_BACK, Recogniser

TIMER = "epoch=0/micro_step=8/global_step=%d, RunningAvgSamplesPerSec=58.7"
ENGINE = "[Rank 0] step=%d, skipped=0, lr=[0.1], mom=[0.9]"
NANOGPT = "iter %d: loss 3.1416, time 500.00ms, mfu 25.00%%"


def see(*lines):
    recogniser = Recogniser(FORMATS)
    return recogniser, [mark.completed for line in lines if (mark := recogniser.see(line))]


def test_the_first_format_stays():
    recogniser, counts = see("hello", NANOGPT % 0, ENGINE % 70, NANOGPT % 1)
    assert (recogniser.format, counts) == ("nanogpt", [1, 2])


def test_a_format_that_says_more_takes_over_and_stays():
    recogniser, counts = see(TIMER % 10, ENGINE % 5010, TIMER % 20, ENGINE % 5020)
    assert (recogniser.format, counts) == ("deepspeed", [10, 5010, 5020])


BARE = " 50%%|█ | %d/500 [00:01<00:01, 2.00it/s]"


def test_a_bar_that_anybody_may_draw_gives_way_to_a_training_and_the_count_begins_anew():
    recogniser = Recogniser(FORMATS)
    marks = [recogniser.see(line) for line in (BARE % 499, BARE % 500, NANOGPT % 0, BARE % 3, NANOGPT % 1)]
    assert [mark and (mark.completed, mark.anew) for mark in marks] == [
        (499, False), (500, False), (1, True), None, (2, False),
    ]  # fmt: skip
    assert recogniser.format == "nanogpt"


def test_a_users_own_format_takes_the_place_of_any():
    recogniser = Recogniser((custom("mine", r"done (?P<iteration>\d+)"), *FORMATS))
    marks = [recogniser.see(line) for line in (NANOGPT % 7, "done 3", NANOGPT % 8, "done 4")]
    assert [mark and (mark.completed, mark.anew) for mark in marks] == [
        (8, False),
        (3, True),
        None,
        (4, False),
    ]
    assert (recogniser.format, recogniser.rank) == ("mine", USERS)


def test_nothing_known():
    recogniser, counts = see("hello", "world")
    assert (recogniser.format, counts, recogniser.rejected) == ("", [], {})


def test_an_absurd_line_is_counted_and_settles_nothing():
    recogniser, counts = see("iter nan: loss 3.1416, time 500.00ms, mfu 25.00%", ENGINE % 7)
    assert (recogniser.format, counts) == ("deepspeed", [7])
    assert recogniser.rejected == {"iteration is not a number": 1}


def test_logs_do_not_share_what_they_remember():
    bar = " 50%%|█ | %d/%d [00:01<00:01, 2.00it/s]"
    assert see(bar % (1, 10))[1] == [1]
    assert see(bar % (1, 20))[1] == [1]


def stamped(number, stamp):
    return f" [{stamp}] iteration {number}/ 900 | elapsed time per iteration (ms): 20.0 |"


def test_a_line_of_the_past_is_rejected():
    recogniser, counts = see(
        stamped(1, "2026-01-31 12:00:00"),
        stamped(2, "2026-01-31 12:00:01"),
        stamped(3, "2026-01-31 09:59:00"),
        stamped(4, "2026-01-31 11:00:02"),  # summer has ended
        stamped(5, "2026-01-31T12:00:00"),
    )
    assert (counts, recogniser.rejected) == ([1, 2, 4, 5], {"time in the past": 1})


def test_a_clock_that_is_set_back_ends_no_progress():
    lines = [stamped(n, f"2026-01-31 12:00:{n:02d}") for n in range(1, 4)]
    lines += [stamped(n, f"2026-01-31 02:00:{n:02d}") for n in range(4, 20)]
    recogniser, counts = see(*lines)
    assert counts == [1, 2, 3, *range(4 + SET_BACK, 20)]
    assert recogniser.rejected == {"time in the past": SET_BACK}


def test_lines_of_the_past_between_others_stay_rejected():
    recogniser, counts = see(
        stamped(1, "2026-01-31 12:00:00"),
        *(
            line
            for n in range(2, 31)
            for line in (stamped(n, "2026-01-31 12:00:00"), stamped(900 - n, "2026-01-31 02:00:00"))
        ),
    )
    assert (counts, recogniser.rejected) == ([*range(1, 31)], {"time in the past": 29})


def test_one_line_of_the_future_does_not_make_the_rest_one_of_the_past():
    assert see(
        stamped(1, "2026-01-31 12:00:00"),
        stamped(2, "9999-12-31 23:59:59"),
        stamped(3, "2026-01-31 12:00:01"),
        stamped(4, "2026-01-31 12:00:02"),
    )[1] == [1, 2, 3, 4]


def test_a_line_from_before_the_run_is_rejected():
    recogniser = Recogniser(FORMATS, since_s=1_769_860_800.0)  # 2026-01-31 12:00 UTC
    for _ in range(2 * SET_BACK):
        assert recogniser.see(stamped(1, "2026-01-30 12:00:00")) is None
    assert recogniser.see(stamped(1, "2026-01-31 12:00:00")).completed == 1
    assert recogniser.see("iteration 2/ 900 | x |").completed == 2
    assert recogniser.see(stamped(3, "2026-13-31 12:00:00")).completed == 3  # no date

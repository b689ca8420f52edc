from hostagent.pacing import Pacer


def burn(ns):
    import time

    end = time.thread_time_ns() + ns
    while time.thread_time_ns() < end:
        pass


def test_cheap_work_runs_at_its_interval():
    pacer = Pacer(1_000_000_000, share=0.01)
    assert pacer.due(0)
    with pacer.run(5):
        pass
    assert pacer.due_ns == 1_000_000_005
    assert not pacer.due(1_000_000_004)
    assert pacer.due(1_000_000_005)


def test_dear_work_runs_less_often_so_that_its_share_holds():
    pacer = Pacer(1_000_000, share=0.01)
    with pacer.run(0):
        burn(5_000_000)
    assert pacer.due_ns >= 500_000_000


def test_a_burst_after_a_pause_is_worked_off_and_then_paced():
    pacer = Pacer(100, share=1, burst_ns=1_000)
    runs = 0
    now = 1_000_000
    while pacer.due(now):
        with pacer.run(now):
            burn(0)
        runs += 1
    assert 1 <= runs <= 11
    assert pacer.due_ns > now


def test_work_that_fails_is_paced_too():
    pacer = Pacer(1_000, share=1)
    try:
        with pacer.run(7):
            raise OSError
    except OSError:
        pass
    assert pacer.due_ns >= 1_007

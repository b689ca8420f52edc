from controlplane.pace import Pace


def test_a_burst_and_then_a_second_s_worth_each_second():
    now_s = 5.0
    pace = Pace(2.0, lambda: now_s)
    assert pace.wait_s == 0
    pace.spend(2.0)
    assert pace.wait_s == 0
    pace.spend(3.0)
    assert pace.wait_s == 3.0
    now_s = 7.0
    assert pace.wait_s == 1.0
    now_s = 1000.0
    pace.spend(2.5)  # no more than the burst has been saved
    assert pace.wait_s == 0.5

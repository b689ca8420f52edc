from softswitch.lookup import Rule, TupleSpace


def rule(value, mask, precedence, entry, ranges=()):
    return Rule((value,), (mask,), ranges, precedence, entry)


def test_the_highest_precedence_wins_then_the_first_added():
    space = TupleSpace()
    space.add(rule(0x10, 0xF0, 1, "low"))
    space.add(rule(0x01, 0x0F, 2, "first"))
    space.add(rule(0, 0, 2, "second"))
    assert space.find((0x11,)) == "first"
    assert space.find((0x12,)) == "second"


def test_removal_brings_back_what_was_hidden():
    space = TupleSpace()
    low, high = rule(0, 0, 1, "low"), rule(0x10, 0xF0, 2, "high")
    space.add(low)
    space.add(high)
    assert space.find((0x11,)) == "high"
    space.remove(high)
    assert space.find((0x11,)) == "low"
    space.remove(low)
    assert space.find((0x11,)) is None


def test_ranges_are_compared_within_a_bucket():
    space = TupleSpace()
    space.add(rule(0, 0, 1, "wide", ((0, 0, 100),)))
    space.add(rule(0, 0, 2, "narrow", ((0, 10, 20),)))
    assert [space.find((n,)) for n in (9, 10, 20, 21, 101)] == ["wide", "narrow", "narrow", "wide", None]

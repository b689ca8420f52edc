from softswitch.pipeline import Pipeline


def test_callbacks_reach_the_generated_code_when_set_later():
    pipeline = Pipeline(8)
    calls = []
    pipeline.transmit = lambda *a: calls.append(a)
    pipeline.on_digest = lambda *a: calls.append(a)
    pipeline.queue_depth = lambda port, queue: port + queue
    pipeline.namespace["transmit"](1, 2, b"x")
    pipeline.namespace["on_digest"]("d", (3,))
    assert pipeline.namespace["queue_depth"](4, 5) == 9
    assert calls == [(1, 2, b"x"), ("d", (3,))]


def test_passes_wait_in_order():
    pipeline = Pipeline(8)
    seen = []

    def work(n):
        seen.append(n)
        if n < 3:
            pipeline.later(work, (n + 2,))

    pipeline.later(work, (1,))
    pipeline.later(work, (2,))
    pipeline.drain()
    assert seen == [1, 2, 3, 4]


def test_without_a_program_packets_are_dropped():
    pipeline = Pipeline(8)
    pipeline.transmit = lambda *a: (_ for _ in ()).throw(AssertionError(a))
    pipeline.process(b"packet", 1, 0)

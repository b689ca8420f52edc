"""The loops of pruning, one by one."""

from hypothesis import given
from hypothesis import strategies as st

from controlplane.policies.steps import lead, outdated

SIZE = 8
on_links = st.lists(st.sets(st.integers(0, SIZE - 1)).map(sorted), min_size=1, max_size=6)
orders = st.permutations(range(SIZE))


def relation(rows):
    starts = [sum(map(len, rows[:row])) for row in range(len(rows) + 1)]
    return starts, [column for row in rows for column in row]


def first_jobs(jobs, order, width):
    chosen = sorted(jobs, key=order.index)[:width]
    return chosen + [-1] * (width - len(chosen))


def leaders_of(jobs_on, order, width):
    table = [-1] * (len(jobs_on) * width)
    position = [order.index(job) for job in range(SIZE)]
    lead(list(range(len(jobs_on))), len(jobs_on), width, *relation(jobs_on), position, table)
    return table


@given(on_links, orders, st.integers(1, 5))
def test_leaders_are_the_first_jobs(jobs_on, order, width):
    expected = [job for jobs in jobs_on for job in first_jobs(jobs, order, width)]
    assert leaders_of(jobs_on, order, width) == expected


@given(on_links, orders, st.integers(0, SIZE - 1), st.integers(0, SIZE - 1), st.integers(1, 5))
def test_links_that_are_not_outdated_have_the_leaders_they_had(jobs_on, order, source, target, width):
    before = leaders_of(jobs_on, order, width)
    later = list(order)
    job = later.pop(source)
    later.insert(target, job)
    position = [later.index(each) for each in range(SIZE)]
    links_of = [[link for link, jobs in enumerate(jobs_on) if each in jobs] for each in range(SIZE)]
    todo = [0] * len(jobs_on)
    count = outdated([job], position, *relation(links_of), width, before, [0] * len(jobs_on), todo)
    after = leaders_of(jobs_on, later, width)
    listed = set(todo[:count])
    assert len(listed) == count
    for link in set(range(len(jobs_on))) - listed:
        assert after[link * width : (link + 1) * width] == before[link * width : (link + 1) * width]


def test_a_link_is_outdated_only_where_a_moved_job_leads_or_comes_to_lead():
    order, later = [0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3, 5, 6, 7, 4]
    jobs_on = [[0, 1, 4], [4, 5, 6], [0, 4, 5]]
    links_of = [[0, 2], [0], [], [], [0, 1, 2], [1, 2], [1], []]
    todo = [0] * 3
    position = [later.index(job) for job in range(SIZE)]
    count = outdated([4], position, *relation(links_of), 2, leaders_of(jobs_on, order, 2), [0] * 3, todo)
    assert sorted(todo[:count]) == [1, 2]

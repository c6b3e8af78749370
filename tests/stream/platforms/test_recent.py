"""The memory of what was heard of last: bounded, taken, and gone through."""

from stream.platforms.recent import Recent


def test_the_one_put_longest_ago_is_forgotten() -> None:
    recent: Recent[int] = Recent(2)
    for number, name in enumerate("aba"):
        recent.put(("t", name), number)
    recent.put(("t", "c"), 3)
    assert [recent.get(("t", name)) for name in "abc"] == [2, None, 3]


def test_what_is_taken_is_there_no_more() -> None:
    recent: Recent[int] = Recent()
    recent.put(("t", "a"), 1)
    assert (list(recent), recent.take(("t", "a")), recent.take(("t", "a")), list(recent)) == (
        [1],
        1,
        None,
        [],
    )

"""A share is never overdrawn, whoever comes and goes, in whatever thread."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data.memory import Grant, Share


class Owner:
    """Somebody who takes bytes."""

    self: Owner


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 100), st.lists(st.tuples(st.integers(0, 60), st.sampled_from(["keep", "return", "go"]))))
def test_what_is_taken_is_the_sum_of_grants_and_never_more_than_there_is(
    size: int, asked: list[tuple[int, str]]
) -> None:
    share, held, owners = Share(size), 0, list[Owner]()
    for wanted, then in asked:
        owner = Owner()
        grant: Grant | None = share.take(wanted, owner)
        assert (grant is not None) == (held + wanted <= size)
        if grant is not None and then == "keep":
            owners.append(owner)
            held += wanted
        elif grant is not None and then == "return":
            grant()
            grant()
        del owner, grant
        assert share.taken == held
    owners.clear()
    assert share.taken == 0


def test_threads_share_it() -> None:
    share = Share(1000)

    def work(seed: int) -> int:
        rng, most = np.random.default_rng(seed), 0
        for _ in range(300):
            owner = Owner()
            owner.self = owner  # it goes when the garbage collector finds it, in the middle of anything
            share.take(int(rng.integers(0, 500)), owner)
            most = max(most, share.taken)
        return most

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(work, range(4))) <= 1000
    gc.collect()
    assert share.taken == 0

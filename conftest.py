"""Tests run two processes side by side: one thread each, unless a test asks for more; with a cache of their own."""

from collections.abc import Iterator

import numba
import pytest

numba.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def own_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests read is not cached in the home of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield

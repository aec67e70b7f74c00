"""Random words as a function of a key and a counter (SplitMix64): what is drawn depends on no thread and no order."""

from __future__ import annotations

import numpy as np

from fliprank.kernels import kernel

__all__ = ["random_word"]


@kernel
def random_word(key: np.uint64, counter: int) -> np.uint64:
    """64 random bits: output `counter` of the SplitMix64 generator whose state starts at `key`."""
    word = key + (np.uint64(counter) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))

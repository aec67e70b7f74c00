"""Numbers as engines keep them: float32, written so that they are read back to the last bit.

Rows go to the same side of a split in any engine if its threshold is a float32 that separates the same float32 values:
of `x <= number` the largest float32 up to it, of `x < threshold` the next one above.

>>> number(at_most(0.1)), number(below(0.1)), number(at_most(0.5)), number(below(0.5))
('0.099999994', '0.1', '0.5', '0.50000006')
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["at_most", "below", "number", "plain", "single"]

LARGEST = np.finfo(np.float32).max


def single(value: Any) -> np.float32:
    """The nearest float32; what is beyond all of them is the largest."""
    return np.float32(np.clip(value, -LARGEST, LARGEST))


def at_most(value: float) -> np.float32:
    """The threshold t for which x <= t is x <= value, for all x that are float32."""
    near = single(value)
    return near if float(near) <= value else np.nextafter(near, np.float32(-np.inf))


def below(value: float) -> np.float32:
    """The threshold t for which x < t is x <= value, for all x that are float32 and not the largest."""
    with np.errstate(over="ignore"):
        return single(np.nextafter(at_most(value), np.float32(np.inf)))


def plain(value: Any) -> float:
    """A number for JSON that is read as the nearest float32, without digits that it does not have."""
    return float(number(single(value)))


def number(value: np.float32) -> str:
    """The shortest decimal that is read as this float32."""
    return str(np.float32(value))

"""Arrays that travel through kernels: one dtype, contiguous, read-only.

Frozen dataclasses of arrays are the data of fliprank. `frozen` makes an array fit to be one of their fields; since
every kernel then sees one type of array, each is compiled once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

__all__ = ["Bytes", "Floats", "Int32s", "Ints", "Matrix", "frozen"]

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Int32s = NDArray[np.int32]
Floats = NDArray[np.float64]
Matrix = NDArray[np.float32]


def frozen(values: ArrayLike, dtype: DTypeLike) -> NDArray[Any]:
    """A contiguous, read-only array of `dtype`: a view of `values` where that is possible.

    >>> frozen([1, 2], np.int64).flags.writeable
    False
    """
    view = np.ascontiguousarray(values, dtype=dtype).view()
    view.flags.writeable = False
    return view

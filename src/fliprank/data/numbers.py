"""Reading numbers from bytes in kernels, rounded exactly as Python's `float` does.

Up to 19 digits with a small exponent are one exact multiplication or division (Clinger's fast path); the rare rest goes
to the C library.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from fliprank.arrays import Bytes
from fliprank.kernels import kernel

__all__ = ["parse_float", "parse_integer"]

_strtod: Any = types.ExternalFunction("strtod", types.float64(types.uintp, types.uintp))
_POWERS = 10.0 ** np.arange(23)


@kernel
def parse_integer(buffer: Bytes, start: int, stop: int) -> tuple[int, bool]:
    """(value, whether `buffer[start:stop]` is a whole number of at most 18 digits without a sign)."""
    value = 0
    for i in range(start, stop):
        digit = int(buffer[i]) - 48
        if digit < 0 or digit > 9:
            return 0, False
        value = value * 10 + digit
    return value, 0 < stop - start <= 18


@kernel
def parse_float(buffer: Bytes, start: int, stop: int) -> tuple[float, bool]:
    """(value, whether `buffer[start:stop]` is a decimal number); `buffer[stop]` must exist and not continue it.

    Words (nan, inf, NULL) and hexadecimal are not numbers here.
    """
    i, negative = start, False
    if i < stop and (buffer[i] == 45 or buffer[i] == 43):
        negative = buffer[i] == 45
        i += 1
    mantissa, digits, exponent, seen, point = np.int64(0), 0, 0, False, False
    while i < stop:
        byte = buffer[i]
        if byte == 46:
            if point:
                return 0.0, False
            point = True
        elif 48 <= byte <= 57:
            seen = True
            if digits < 18:
                mantissa = mantissa * 10 + (np.int64(byte) - 48)
                if mantissa > 0:
                    digits += 1
                if point:
                    exponent -= 1
            else:
                digits += 1
                if not point:
                    exponent += 1
        else:
            break
        i += 1
    if not seen:
        return 0.0, False
    if i < stop:
        if buffer[i] != 101 and buffer[i] != 69:
            return 0.0, False
        sign, first = 1, i + 1
        if first < stop and (buffer[first] == 45 or buffer[first] == 43):
            sign = -1 if buffer[first] == 45 else 1
            first += 1
        power, valid = parse_integer(buffer, first, min(stop, first + 6))
        if not valid or stop - first > 6:
            return 0.0, False
        exponent += sign * power
    if digits <= 18 and mantissa <= 9007199254740992 and -22 <= exponent <= 22:
        value = mantissa / _POWERS[-exponent] if exponent < 0 else mantissa * _POWERS[exponent]
        return (-value if negative else value), True
    return _strtod(buffer.ctypes.data + start, 0), True

"""Reading numbers from bytes in kernels, rounded exactly as Python's `float` does.

A number of few digits is one exact multiplication or division (Clinger 1990); one of up to 19 digits a multiplication
by a 128-bit power of five (Lemire 2021); the rare rest goes to the C library.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from fliprank.arrays import Bytes
from fliprank.kernels import kernel

__all__ = ["parse_float", "parse_integer"]

_strtod: Any = types.ExternalFunction("strtod", types.float64(types.uintp, types.uintp))
_TENS = 10.0 ** np.arange(23)
_LOWEST, _HIGHEST = -90, 60
_TWOS = 2.0 ** np.arange(-1000, 1000)


def _power_of_five(exponent: int) -> tuple[int, int]:
    """The leading 128 bits of 5^exponent as two words; a negative power is rounded up."""
    power: int = 5 ** abs(exponent)
    if exponent < 0:
        bits = (power - 1).bit_length()
        power = 2 ** (bits + 127 if exponent >= -27 else 2 * bits + 128) // power + 1
    shift = power.bit_length() - 128
    power = power >> shift if shift > 0 else power << -shift
    return power >> 64, power & (2**64 - 1)


_FIVES = np.array([_power_of_five(exponent) for exponent in range(_LOWEST, _HIGHEST + 1)], np.uint64)


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
    mantissa, digits, exponent, seen, point = np.uint64(0), 0, 0, False, False
    while i < stop:
        byte = buffer[i]
        if byte == 46:
            if point:
                return 0.0, False
            point = True
        elif 48 <= byte <= 57:
            seen = True
            if digits < 19:
                mantissa = mantissa * np.uint64(10) + np.uint64(byte - 48)
                if mantissa > 0:
                    digits += 1
                if point:
                    exponent -= 1
            else:
                digits += 1
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
    if digits <= 19:
        value = -1.0
        if mantissa <= np.uint64(9007199254740992) and -22 <= exponent <= 22:
            value = float(mantissa)
            value = value / _TENS[-exponent] if exponent < 0 else value * _TENS[exponent]
        elif _LOWEST <= exponent <= _HIGHEST:
            value = _scale(mantissa, exponent)
        if value >= 0:
            return (-value if negative else value), True
    return _strtod(buffer.ctypes.data + start, 0), True


@kernel
def _multiply(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The product of two words as (high, low)."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_high, a_low, b_high, b_low = a >> half, a & mask, b >> half, b & mask
    low, middle, cross = a_low * b_low, a_high * b_low, a_low * b_high
    carry = (low >> half) + (middle & mask) + (cross & mask)
    return a_high * b_high + (middle >> half) + (cross >> half) + (carry >> half), a * b


@kernel
def _scale(mantissa: np.uint64, exponent: int) -> float:
    """mantissa x 10^exponent, correctly rounded, for a mantissa above 0; -1 in the rare case that this can't tell."""
    one = np.uint64(1)
    leading = 0
    while mantissa >> np.uint64(63) == 0:
        mantissa <<= one
        leading += 1
    row = exponent - _LOWEST
    high, low = _multiply(mantissa, _FIVES[row, 0])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        more, _ = _multiply(mantissa, _FIVES[row, 1])
        low += more
        if more > low:
            high += one
    if low == np.uint64(0xFFFFFFFFFFFFFFFF):
        return -1.0
    upper = high >> np.uint64(63)
    shift = upper + np.uint64(9)
    result = high >> shift
    if low <= one and -4 <= exponent <= 23 and result & np.uint64(3) == one and result << shift == high:
        result &= ~one  # halfway between two numbers: to the even one
    result = (result + (result & one)) >> one
    # 10^e = 5^e 2^e, and 217706 / 2^16 is log2(10): the power of two that the leading bit stands for.
    binary = ((217706 * exponent) >> 16) + 63 + int(upper) - leading
    scaled: float = float(result) * _TWOS[binary - 52 + 1000]
    return scaled

"""Decimal text as numbers, thousands at a time: eight digits are one 64-bit word, and numpy multiplies whole columns.

A million steps hold fourteen million numbers of seventeen digits; read one by one they take four seconds.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Whole = NDArray[np.int64]
Floats = NDArray[np.float64]

_DOT, _MINUS, _PLUS, _EXPONENT, _ZERO = b".-+e0"
_MOST_DIGITS: Final = 16
_ZEROS: Final = np.uint64(0x3030303030303030)
_KEPT: Final = np.array([(1 << 8 * num) - 1 for num in range(9)], dtype=np.uint64)
"""The first so many bytes of a word, for a processor that keeps them at its low end."""
_TENS: Final = np.array([10**power for power in range(9)])
_POWERS: Final = np.array([10.0**power for power in range(100)])


def read_whole(data: Bytes, start: Whole, end: Whole) -> Whole | None:
    """Return digits as numbers, or None where there is anything else."""
    num = end - start
    first, second = np.minimum(num, 8), np.clip(num - 8, 0, 8)
    if len(data) < 8 or int(num.max(initial=0)) > _MOST_DIGITS:
        return None
    high = _eight_digits(data, start, first, is_whole=True)
    low = _eight_digits(data, start + 8, second, is_whole=True)
    if high is None or low is None:
        return None
    return np.asarray(high * _TENS[second] + low, dtype=np.int64)


def read_decimals(data: Bytes, start: Whole, end: Whole) -> Floats | None:
    """Return decimal numbers, right to the last place or two of a double, or None where there is anything else.

    Of a fraction sixteen digits count, which is all that a number written without an exponent has to tell.
    """
    is_negative = data[start] == _MINUS
    start = start + is_negative
    has_exponent = (end - start > 4) & (data[end - 4] == _EXPONENT)
    stop = end - 4 * has_exponent
    dot = _find_dot(data, start, stop)
    whole = None if dot is None or (dot == start).any() else read_whole(data, start, dot)
    if dot is None or whole is None:
        return None
    fraction = np.zeros(len(start))
    for place in (1, 9):
        digits = _eight_digits(data, dot + place, np.clip(stop - dot - place, 0, 8), is_whole=False)
        if digits is None:
            return None
        fraction = fraction * 1e8 + digits
    value = whole + fraction / 1e16
    if has_exponent.any():
        power = read_whole(data, np.where(has_exponent, end - 2, end), end)
        sign = data[end - 3]
        if power is None or (has_exponent & (sign != _MINUS) & (sign != _PLUS)).any():
            return None
        value = np.where(has_exponent & (sign == _MINUS), value / _POWERS[power], value * _POWERS[power])
    return np.where(is_negative, -value, value)


def _find_dot(data: Bytes, start: Whole, stop: Whole) -> Whole | None:
    """Return where the dot of each is, or its end where it has none."""
    dot = stop.copy()
    is_open = np.ones(len(start), dtype=np.bool_)
    for at in range(_MOST_DIGITS + 2):  # one more to see that nothing is left
        is_open &= start + at < stop
        if not is_open.any():
            return dot
        found = is_open & (data[np.minimum(start + at, len(data) - 1)] == _DOT)
        dot[found] = (start + at)[found]
        is_open &= ~found
    return None


def _eight_digits(data: Bytes, start: Whole, num: Whole, *, is_whole: bool) -> Whole | None:
    """Return `num` digits each as a number; filled up to eight with zeros behind them, unless the number is whole."""
    if not num.any():
        return num
    words = np.ndarray((len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))  # one begins at every byte
    beyond = np.maximum(start - len(words) + 1, 0)
    word = words[start - beyond] >> (8 * beyond).astype(np.uint64)
    word = (word ^ _ZEROS) & _KEPT[num]
    if (((word + np.uint64(0x7676767676767676)) | word) & np.uint64(0x8080808080808080)).any():
        return None
    if is_whole:
        word <<= (64 - 8 * num).astype(np.uint64)
    # Neighbours to pairs, pairs to fours, fours to eight: each multiplication does it for all of the word.
    word = word * np.uint64(10) + (word >> np.uint64(8))
    low = (word & np.uint64(0x000000FF000000FF)) * np.uint64(0x000F424000000064)
    high = (word >> np.uint64(16) & np.uint64(0x000000FF000000FF)) * np.uint64(0x0000271000000001)
    return ((low + high) >> np.uint64(32)).astype(np.int64)

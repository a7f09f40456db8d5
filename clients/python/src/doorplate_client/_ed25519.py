"""Ed25519 signatures, verified alone (RFC 8032, 5.1): Python has none, and this package brings no others with it.

All values are public, so that the time it takes tells nothing.
"""

from __future__ import annotations

import hashlib
from typing import Tuple

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_ROOT_OF_MINUS_ONE = pow(2, (_P - 1) // 4, _P)

# x, y, z and t, with the point at (x / z, y / z) and t = x * y / z.
_Point = Tuple[int, int, int, int]


def is_signed(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether the key of 32 bytes made the signature of 64 bytes."""
    if len(public_key) != 32 or len(signature) != 64:
        return False
    key, commitment = _point(public_key), _point(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if key is None or commitment is None or scalar >= _ORDER:
        return False
    digest = hashlib.sha512(signature[:32] + public_key + message).digest()
    challenge = int.from_bytes(digest, "little") % _ORDER
    return _equal(_times(scalar, _BASE), _plus(commitment, _times(challenge, key)))


def _x_of(y: int, is_odd: int) -> int | None:
    """Return the x of a point on the curve with this y; None if there is none."""
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P != 0:
        x = x * _ROOT_OF_MINUS_ONE % _P
    if (x * x - square) % _P != 0 or (x == 0 and is_odd):
        return None
    return _P - x if x % 2 != is_odd else x


def _point(encoded: bytes) -> _Point | None:
    number = int.from_bytes(encoded, "little")
    y, is_odd = number % 2**255, number >> 255
    x = _x_of(y, is_odd) if y < _P else None
    return None if x is None else (x, y, 1, x * y % _P)


def _plus(one: _Point, other: _Point) -> _Point:
    a = (one[1] - one[0]) * (other[1] - other[0]) % _P
    b = (one[1] + one[0]) * (other[1] + other[0]) % _P
    c = 2 * one[3] * other[3] * _D % _P
    d = 2 * one[2] * other[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % _P, g * h % _P, f * g % _P, e * h % _P)


def _times(scalar: int, point: _Point) -> _Point:
    result: _Point = (0, 1, 1, 0)
    while scalar > 0:
        if scalar % 2 == 1:
            result = _plus(result, point)
        point = _plus(point, point)
        scalar //= 2
    return result


def _equal(one: _Point, other: _Point) -> bool:
    return (one[0] * other[2] - other[0] * one[2]) % _P == 0 and (one[1] * other[2] - other[1] * one[2]) % _P == 0


_BASE = _point((4 * pow(5, -1, _P) % _P).to_bytes(32, "little")) or (0, 1, 1, 0)

"""The states of generators: noted before numbers are drawn, and put back where these are drawn again.

Reading ``bit_generator.state`` takes 5 to 300 microseconds, as it is made of Python numbers. Of those bit
generators whose memory is known (``numpy/random/src``) it is copied, if that was seen to be all there is.
"""

from __future__ import annotations

import ctypes
import functools
import random
from typing import Any

import numpy as np

from ...scalar_loops.code.draws import place_of_gauss

# bytes of the state, and of what its first word points to, if that belongs to it
_SIZES: dict[type, tuple[int, int]] = {
    np.random.MT19937: (2500, 0),
    np.random.PCG64: (16, 32),
    np.random.PCG64DXSM: (16, 32),
    np.random.SFC64: (40, 0),
}
_OTHERS = (np.random.Philox,)
_GAUSS = 16  # bytes: whether a normal number is left over, and that number
_DRAWS = 5

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)
_word_at = ctypes.c_uint64.from_address
_bytes_at = ctypes.string_at
_put = ctypes.memmove

Copies = list[tuple[int, bytes]]  # places in memory and what was there


def keep_state(kept: list[Any], generator: Any) -> None:
    """Note a generator's state, as a function and what it is given to put that back. Raises ``TypeError``
    for bit generators of the program's own."""
    if isinstance(generator, random.Random):
        kept.append((generator.setstate, generator.getstate()))
        return
    is_legacy = type(generator) is np.random.RandomState
    bits = generator._bit_generator if is_legacy else generator.bit_generator
    if type(bits) not in _SIZES and type(bits) not in _OTHERS:
        raise TypeError("a bit generator of the program's own")
    cls: type = type(bits)
    if not _can_be_copied(cls, is_legacy):
        _keep_slowly(kept, generator, bits, is_legacy)
        return
    copies = _copies(bits)
    if is_legacy:
        place = id(generator) + place_of_gauss()
        copies.append((place, _bytes_at(place, _GAUSS)))
    kept.append((functools.partial(_put_back, bits, generator), copies))


def _copies(bits: Any) -> Copies:
    size, behind = _SIZES[type(bits)]
    place = _word_at(_pointer_of(bits.capsule, b"BitGenerator")).value
    copies = [(place, _bytes_at(place, size))]
    if behind:
        place = _word_at(place).value
        copies.append((place, _bytes_at(place, behind)))
    return copies


def _put_back(bits: Any, generator: object, copies: Copies) -> None:
    with bits.lock:
        for place, contents in copies:
            _put(place, contents, len(contents))


def _keep_slowly(kept: list[Any], generator: Any, bits: Any, is_legacy: bool) -> None:
    if is_legacy:
        kept.append((generator.set_state, generator.get_state(legacy=False)))
    else:
        kept.append((functools.partial(setattr, bits, "state"), bits.state))


@functools.cache
def _can_be_copied(cls: type, is_legacy: bool) -> bool:
    """Whether copies of the memory bring the numbers back, of a bit generator of ours."""
    if cls not in _SIZES:
        return False
    try:
        place_of_gauss()
    except Exception:
        return False
    bits = cls(3)
    make = np.random.RandomState if is_legacy else np.random.Generator
    generator = make(bits)
    for _ in range(_DRAWS):
        before = str(bits.state)
        copies = _copies(bits)
        first = _some(generator)
        _put_back(bits, generator, copies)
        if str(bits.state) != before or not np.array_equal(first, _some(generator)):
            return False
        generator.random()
    return True


def _some(generator: Any) -> Any:
    """Numbers by which halves of words are left over."""
    bits = np.random.Generator(getattr(generator, "_bit_generator", None) or generator.bit_generator)
    return np.concatenate([bits.integers(0, 9, 3, dtype=np.uint32), bits.random(700)])


def put_back(kept: list[Any]) -> None:
    """What was drawn is to be drawn again."""
    for restore, state in reversed(kept):
        restore(state)

"""Constants that guards compare by value, as plain data, and what tells code objects apart."""

from __future__ import annotations

import hashlib
import struct
import types
from typing import Any

import numpy as np

CONSTANT_TYPES = (int, float, complex, str, bytes, bool, type(None), type(...), type(NotImplemented))
_SINGLETONS: dict[str, object] = {"None": None, "...": ..., "NotImplemented": NotImplemented}


def is_constant(value: Any) -> bool:
    """Whether ``value`` can be guarded by value: the scalar constants, NumPy number scalars, dtypes, and
    tuples, slices, ranges and one-type sets of such (exact types only)."""
    kind = type(value)
    if kind in CONSTANT_TYPES or issubclass(kind, np.dtype):
        return True
    if kind is tuple:
        return all(map(is_constant, value))
    if kind is slice:
        return is_constant((value.start, value.stop, value.step))
    if kind in (frozenset, set):
        kinds = set(map(type, value))
        return len(kinds) <= 1 and kinds <= {int, str, bytes, type(None)}
    return kind is range or is_numpy_number(value)


def is_numpy_number(value: object) -> bool:
    """Exact NumPy scalars of numbers and bool, without ``longdouble`` (its padding is undefined)."""
    kind = type(value)  # never ``isinstance``: it asks the object for its class
    if not issubclass(kind, np.generic) or issubclass(kind, (np.longdouble, np.clongdouble)):
        return False
    return kind is np.dtype(kind).type and np.dtype(kind).kind in "biufc"


def pack_constant(value: Any) -> tuple[Any, ...]:
    """``value`` as plain data; floats keep their bits. Raises ``ValueError`` for other objects."""
    kind = type(value)
    if kind in (bool, int, str, bytes):
        return (kind.__name__, value)
    if kind is float:
        return ("float", struct.pack("<d", value))
    if kind is complex:
        return ("complex", struct.pack("<dd", value.real, value.imag))
    for name, singleton in _SINGLETONS.items():
        if value is singleton:
            return ("singleton", name)
    if kind in (tuple, frozenset, set):
        items = sorted(value, key=repr) if kind is not tuple else value
        return (kind.__name__, *map(pack_constant, items))
    if kind in (slice, range):
        return (kind.__name__, *map(pack_constant, (value.start, value.stop, value.step)))
    if (
        isinstance(value, np.dtype)
        and value.isbuiltin == 1
        or kind in (np.dtypes.StrDType, np.dtypes.BytesDType)
    ):
        return ("dtype", value.str)
    if isinstance(value, np.dtype) and value.kind in "biufcmM" and not value.metadata:
        return ("dtype", value.str)
    if is_numpy_number(value):
        return ("numpy", value.dtype.str, value.tobytes())
    raise ValueError(f"not a constant that can be stored: {value!r}")


def code_hash(code: types.CodeType) -> str:
    """Hex SHA-256 of what the code does: bytecode, constants, names, signature, flags; not of file or
    line numbers. Stable between processes of one Python version."""
    digest = hashlib.sha256()
    _feed_code(digest, code)
    return digest.hexdigest()


def _feed_code(digest: Any, code: types.CodeType) -> None:
    head = (
        code.co_name,
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_flags,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
    )
    for part in (repr(head).encode(), code.co_code, code.co_exceptiontable):
        digest.update(str(len(part)).encode())
        digest.update(part)
    for constant in code.co_consts:
        _feed_constant(digest, constant)


def _feed_constant(digest: Any, constant: Any) -> None:
    if isinstance(constant, types.CodeType):
        digest.update(b"code")
        _feed_code(digest, constant)
        return
    if isinstance(constant, (tuple, frozenset)):
        items = sorted(constant, key=repr) if isinstance(constant, frozenset) else constant
        digest.update(f"{type(constant).__name__}{len(items)}".encode())
        for item in items:
            _feed_constant(digest, item)
        return
    # by identity for objects that generated code may carry: not stable, and rightly so
    text = repr(pack_constant(constant)) if is_constant(constant) else f"id{id(constant)}"
    digest.update(text.encode())

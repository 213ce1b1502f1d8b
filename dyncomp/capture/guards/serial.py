"""Constants, types, functions and modules as plain data (strings, ints, tuples), and back.

Used by stored guards. Nothing is unpickled: constants are rebuilt from a closed set of types, objects
are found again by module and qualified name, functions checked by a hash of their code.
"""

from __future__ import annotations

import hashlib
import importlib
import struct
import sys
import types
from collections.abc import Sequence
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


def unpack_constant(data: Sequence[Any]) -> Any:
    """Inverse of :func:`pack_constant`; ``ValueError`` for malformed data."""
    tag, *rest = data
    if tag in ("bool", "int", "str", "bytes"):
        if type(rest[0]).__name__ != tag:
            raise ValueError(f"malformed constant {data!r}")
        return rest[0]
    if tag == "float":
        return struct.unpack("<d", rest[0])[0]
    if tag == "complex":
        return complex(*struct.unpack("<dd", rest[0]))
    if tag == "singleton":
        return _SINGLETONS[rest[0]]
    if tag in ("tuple", "frozenset", "set", "slice", "range"):
        items = [unpack_constant(item) for item in rest]
        if tag in ("slice", "range"):
            return slice(*items) if tag == "slice" else range(*items)
        return {"tuple": tuple, "frozenset": frozenset, "set": set}[tag](items)
    if tag == "dtype":
        return np.dtype(rest[0])
    if tag == "numpy":
        return np.frombuffer(rest[1], dtype=np.dtype(rest[0]), count=1)[0]
    raise ValueError(f"malformed constant {data!r}")


def pack_object(value: object) -> tuple[Any, ...]:
    """A module, type, builtin or function found again by name; functions with their code's hash. Raises
    ``ValueError`` where the name does not lead back to the same object."""
    if isinstance(value, types.ModuleType):
        if sys.modules.get(value.__name__) is not value:
            raise ValueError(f"module {value.__name__} is not in sys.modules")
        return ("module", value.__name__)
    if is_constant(value):
        return ("constant", pack_constant(value))
    module = getattr(value, "__module__", None)
    qualname = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if not isinstance(module, str) or not isinstance(qualname, str):
        raise ValueError(f"cannot be found again by name: {type(value).__name__} object")
    if _resolve(module, qualname) is not value:
        raise ValueError(f"{module}.{qualname} is not the same object")
    code = getattr(value, "__code__", None)
    return ("object", module, qualname, code_hash(code) if isinstance(code, types.CodeType) else "")


def unpack_object(data: Sequence[Any]) -> Any:
    """Inverse of :func:`pack_object`; ``ValueError`` when the object is gone or its code has changed."""
    if data[0] == "constant":
        return unpack_constant(data[1])
    try:
        module = importlib.import_module(data[1])
    except ImportError as error:
        raise ValueError(f"module {data[1]} cannot be imported: {error}") from error
    if data[0] == "module":
        return module
    if data[0] != "object":
        raise ValueError(f"malformed object reference {data!r}")
    value = _resolve(data[1], data[2])
    code = getattr(value, "__code__", None)
    found = code_hash(code) if isinstance(code, types.CodeType) else ""
    if value is None or found != data[3]:
        raise ValueError(f"{data[1]}.{data[2]} is missing or its code has changed")
    return value


def _resolve(module: str, qualname: str) -> Any:
    value: Any = sys.modules.get(module)
    for part in qualname.split("."):
        value = getattr(value, part, None)
    return value


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

"""What guards expect of arrays, functions and sizes: small frozen records.

Each prints in words (``str``), is read from an example by ``of`` where that makes sense, and is plain
data apart from the types and callables that it names.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from dyncomp.capture.guards.serial import code_hash
from dyncomp.capture.guards.source import Source
from dyncomp.dataclass import dataclass
from dyncomp.symbolic.assumptions import in_words
from dyncomp.symbolic.integers import SymGuard


@dataclass(frozen=True)
class ArrayFacts:
    """Facts of a NumPy array. ``None`` leaves a fact free.

    shape: sizes per dimension; strides: bytes per dimension, or ``None`` for all free. The ``layout`` flag
    "C" or "F" asks for contiguity without fixing strides. ``dtype`` must match exactly, byte order included.
    ``type`` is compared by identity, so subclasses of ``ndarray`` miss.
    """

    dtype: np.dtype[Any]
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...] | None = None
    layout: str | None = None
    aligned: bool | None = True
    writeable: bool | None = None
    type: type = np.ndarray

    @classmethod
    def of(cls, array: np.ndarray[Any, Any], *, writeable: bool | None = None) -> ArrayFacts:
        """All static: sizes, strides (free along dimensions of size 0 or 1, where they mean nothing)."""
        strides = tuple(s if n > 1 else None for n, s in zip(array.shape, array.strides))
        return cls(
            dtype=array.dtype,
            shape=array.shape,
            strides=strides if array.size else None,
            aligned=array.flags.aligned,
            writeable=writeable,
            type=type(array),
        )

    def __str__(self) -> str:
        name = self.type.__name__
        shape = "(" + ", ".join("?" if n is None else str(n) for n in self.shape)
        shape += ",)" if len(self.shape) == 1 else ")"
        words = [name, str(self.dtype), shape]
        if self.layout:
            words.append(f"{self.layout}-contiguous")
        elif self.strides is not None and any(s is not None for s in self.strides):
            words.append(self._stride_words())
        if self.aligned is False:
            words.append("unaligned")
        if self.writeable is not None:
            words.append("writeable" if self.writeable else "read-only")
        return " ".join(words)

    def _stride_words(self) -> str:
        assert self.strides is not None
        for layout, order in (("C", -1), ("F", 1)):
            if self._is_packed(order):
                return f"{layout}-contiguous"
        inner = ", ".join("?" if s is None else str(s) for s in self.strides)
        return f"strides ({inner}{',' if len(self.strides) == 1 else ''})"

    def _is_packed(self, order: int) -> bool:
        expected = self.dtype.itemsize
        assert self.strides is not None
        for size, stride in list(zip(self.shape, self.strides))[::order]:
            if size is None or (stride is None and size > 1):
                return False
            if stride is not None and stride != expected:
                return False
            expected *= size
        return True


@dataclass(frozen=True)
class TensorFacts:
    """Facts of a tensor read through DLPack's C exchange table (``type.__dlpack_c_exchange_api__``).

    dtype is DLPack's (code, bits, lanes), device its (type, id); strides are in elements; ``None`` is free.
    ``type`` is compared by identity; tensors that the table refuses miss. The table does not tell whether
    a tensor requires grad, is conjugated or negated: guard those apart.
    """

    type: type
    dtype: tuple[int, int, int]
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...] | None
    device: tuple[int, int] = (1, 0)

    def __str__(self) -> str:
        code, bits, _ = self.dtype
        letter = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}.get(
            code, f"code{code}_"
        )
        shape = ", ".join("?" if n is None else str(n) for n in self.shape)
        place = "" if self.device == (1, 0) else f" on device {self.device}"
        return f"{self.type.__name__} {letter}{bits} ({shape}) strides {self.strides}{place}"


@dataclass(frozen=True)
class Elements:
    """What a small array holds: NumPy's name of the dtype, and all elements in C order."""

    dtype: str
    data: bytes

    @classmethod
    def of(cls, array: np.ndarray[Any, Any]) -> Elements:
        return cls(array.dtype.name, array.tobytes())

    def __str__(self) -> str:
        return f"elements {np.frombuffer(self.data, self.dtype).tolist()}"


@dataclass(frozen=True)
class CodeFacts:
    """A Python function by its code: the code object itself within this process, and qualified name plus
    hash for stored guards (``code`` is then ``None`` until the first function with that hash is seen)."""

    module: str
    qualname: str
    hash: str
    code: types.CodeType | None = None

    @classmethod
    def of(
        cls, function: types.FunctionType, hashes: dict[int, tuple[types.CodeType, str]] | None = None
    ) -> CodeFacts:
        """``hashes``: those of code objects that were seen before, by id."""
        code = function.__code__
        known = None if hashes is None else hashes.get(id(code))
        text = code_hash(code) if known is None else known[1]
        if hashes is not None:
            hashes[id(code)] = (code, text)
        return cls(str(function.__module__), function.__qualname__, text, code)

    def __str__(self) -> str:
        return f"function {self.module}.{self.qualname} (code {self.hash[:8]})"


@dataclass(frozen=True)
class SymBinding:
    """The integer named ``symbol`` in conditions: ``what`` is ``"int"`` (an exact ``int`` that fits int64),
    ``"dim"`` or ``"stride"`` (of NumPy array axis ``axis``; strides in bytes), ``"size"`` (number of
    elements of a NumPy array) or ``"len"`` (of a list, tuple, str, bytes, dict or set), ``"tdim"`` or
    ``"tstride"`` (of a tensor with an exchange table)."""

    symbol: str
    source: Source
    what: str = "int"
    axis: int = 0

    def expr(self) -> str:
        base = self.source.expr()
        if self.what == "int":
            return base
        if self.what in ("size", "len"):
            return f"{base}.size" if self.what == "size" else f"len({base})"
        return f"{base}.{'shape' if self.what.endswith('dim') else 'strides'}[{self.axis}]"


@dataclass(frozen=True)
class SymCondition:
    """``program relation 0`` over named int64 symbols; arithmetic that overflows int64 misses.

    program is postfix: ints, symbol names, and ``add sub mul neg floordiv mod min max eq ne lt le gt ge
    and or not`` (comparisons give 0 or 1); relation is one of ``== != < <=``.
    """

    program: tuple[int | str, ...]
    relation: str
    bindings: tuple[SymBinding, ...]
    text: str = ""

    @classmethod
    def of(cls, guard: SymGuard, bindings: dict[str, SymBinding]) -> SymCondition:
        """From a recorded :class:`SymGuard`; ``bindings`` says where each symbol is read."""
        used = tuple(bindings[name] for name in sorted(guard.expr.symbols()))
        words = in_words(guard, {b.symbol: b.expr() for b in used})
        return cls(tuple(guard.expr.postfix()), guard.relation, used, words)

    def __str__(self) -> str:
        if self.text:
            return self.text
        text = f"{' '.join(map(str, self.program))} {self.relation} 0"
        where = ", ".join(f"{b.symbol} = {b.expr()}" for b in self.bindings)
        return f"{text} where {where}" if where else text


@dataclass(frozen=True)
class NoOverlap:
    """The memory extents of ``arrays[i]``, for each i in ``mutated``, meet those of no other array."""

    arrays: tuple[Source, ...]
    mutated: tuple[int, ...]

    def __str__(self) -> str:
        written = ", ".join(self.arrays[i].expr() for i in self.mutated)
        return f"memory of {written} disjoint from {', '.join(s.expr() for s in self.arrays)}"


@dataclass(frozen=True)
class Distinct:
    """No two of ``objects`` are the same object."""

    objects: tuple[Source, ...]

    def __str__(self) -> str:
        return f"{len(self.objects)} objects, all distinct: {', '.join(s.expr() for s in self.objects)}"


@dataclass(frozen=True)
class CustomCheck:
    """A Python check ``check(obj, expected) -> bool`` for arrays that C does not know; prints as ``text``."""

    check: Callable[[Any, Any], bool]
    expected: Any
    text: str = ""

    def __str__(self) -> str:
        return self.text or f"{getattr(self.check, '__qualname__', 'check')}({self.expected!r})"

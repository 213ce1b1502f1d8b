"""The executable definition of the loop IR: kernels run with NumPy, a statement at a time.

Every value is an array with one dimension per kernel axis (of size 1 where it does not vary). Reductions
and scans use plain left-to-right order of NumPy's own, so floating-point results agree with generated code
up to rounding.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...dtypes import DType
from ...errors import VerifyError
from ...prims.scalar import COMBINERS, REDUCERS, SCALARS, evaluate
from ...symbolic.integers import Dim, SymInt
from .loop_ir import Index, Kernel, Stmt

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Memory:
    """A buffer for the reference: a one-dimensional array and the position in it of element 0."""

    data: Array
    origin: int = 0


class OutOfBounds(IndexError):
    """A gather or scatter position is out of bounds."""


def run_kernel(
    kernel: Kernel, memory: Mapping[str, Memory], symbols: Mapping[str, int] | None = None
) -> None:
    """Run ``kernel`` on ``memory`` (by buffer name). Raises :class:`OutOfBounds` where the error flag would
    be set."""
    _Run(kernel, memory, symbols or {}).run()


class _Run:
    def __init__(self, kernel: Kernel, memory: Mapping[str, Memory], symbols: Mapping[str, int]) -> None:
        self.kernel = kernel
        self.memory = memory
        self.symbols = symbols
        self.order = [a.name for a in kernel.axes]
        self.sizes = [self.dim(a.size) for a in kernel.axes]
        self.values: dict[str, Array] = {}

    def dim(self, value: Dim) -> int:
        return value.evaluate(self.symbols) if isinstance(value, SymInt) else value

    def run(self) -> None:
        for stmt in self.kernel.body:
            handler = getattr(self, f"_op_{stmt.op}", None)
            args = [self.values[a] for a in stmt.args]
            result = handler(stmt, *args) if handler is not None else self._scalar(stmt, args)
            if stmt.out:
                self._check_shape(stmt, result)
                self.values[stmt.out] = result

    def _check_shape(self, stmt: Stmt, value: Array) -> None:
        allowed = tuple(n if a in stmt.axes else 1 for a, n in zip(self.order, self.sizes))
        if value.shape != allowed or value.dtype != stmt.dtype.numpy:
            raise VerifyError(
                f"{stmt.out} ({stmt.op}) is {value.dtype}{value.shape}, not {stmt.dtype}{allowed}"
            )

    def _shape(self, axes: Sequence[str]) -> tuple[int, ...]:
        return tuple(n if a in axes else 1 for a, n in zip(self.order, self.sizes))

    def _position(self, axis: str) -> Array:
        k = self.order.index(axis)
        shape = [1] * len(self.order)
        shape[k] = self.sizes[k]
        return np.arange(self.sizes[k], dtype=np.int64).reshape(shape)

    def _scalar(self, stmt: Stmt, args: list[Array]) -> Array:
        result: Array = evaluate(stmt.op, args, stmt.dtype, stmt.arg)
        return result

    def _full(self, value: object, dtype: DType) -> Array:
        return np.full((1,) * len(self.order), value, np.int64).astype(dtype.numpy)

    def _op_const(self, stmt: Stmt) -> Array:
        with np.errstate(all="ignore"):
            value = np.asarray(stmt.arg).astype(stmt.dtype.numpy)
        return value.reshape((1,) * len(self.order))

    def _op_symbol(self, stmt: Stmt) -> Array:
        return self._full(self.dim(stmt.arg), stmt.dtype)

    def _op_axis(self, stmt: Stmt) -> Array:
        return self._position(stmt.arg)

    def _op_cast(self, stmt: Stmt, value: Array) -> Array:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            # complex to real drops the imaginary part, as astype does
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
            converted = value.astype(stmt.dtype.numpy)
        return np.broadcast_to(converted, self._shape(stmt.axes))

    # -- memory -------------------------------------------------------------------------------
    def _addresses(self, index: Index, axes: Sequence[str]) -> Array:
        total = np.full(self._shape(axes), self.dim(index.offset), np.int64)
        for axis, coefficient in index.terms:
            total = total + self._position(axis) * self.dim(coefficient)
        return total

    def _op_load(self, stmt: Stmt) -> Array:
        name, index = stmt.arg
        return self._fetch(name, self._addresses(index, stmt.axes))

    def _fetch(self, name: str, addresses: Array) -> Array:
        memory = self.memory[name]
        at = addresses + memory.origin
        if at.size and (at.min() < 0 or at.max() >= memory.data.size):
            raise VerifyError(f"{self.kernel.name}: {name} is read out of its memory")
        return memory.data[at]

    def _bounded(self, positions: Sequence[Array], sizes: Sequence[Dim], wrap: Sequence[bool]) -> list[Array]:
        """Positions made non-negative; raises where one is out of bounds at a point that is computed."""
        found: list[Array] = []
        empty = 0 in self.sizes
        for position, size, wraps in zip(positions, map(self.dim, sizes), wrap):
            if wraps:
                position = np.where(position < 0, position + size, position)
            if not empty and ((position < 0) | (position >= size)).any():
                raise OutOfBounds(f"index out of bounds for axis with size {size}")
            found.append(position)
        return found

    def _op_check(self, stmt: Stmt, *positions: Array) -> None:
        sizes, wrap = stmt.arg
        self._bounded(positions, sizes, wrap)

    def _op_gather(self, stmt: Stmt, *positions: Array) -> Array:
        name, index, strides, sizes, wrap = stmt.arg
        addresses = self._addresses(index, stmt.axes)
        if 0 in self.sizes:
            return np.zeros(addresses.shape, stmt.dtype.numpy)
        for position, stride in zip(self._bounded(positions, sizes, wrap), strides):
            addresses = addresses + position * self.dim(stride)
        return self._fetch(name, addresses)

    def _op_store(self, stmt: Stmt, value: Array) -> None:
        name, index = stmt.arg
        memory = self.memory[name]
        addresses = self._addresses(index, stmt.axes) + memory.origin
        if addresses.size and (addresses.min() < 0 or addresses.max() >= memory.data.size):
            raise VerifyError(f"{self.kernel.name}: {name} is written out of its memory")
        if len(np.unique(addresses)) != addresses.size:
            raise VerifyError(f"{self.kernel.name}: {name} is written twice at one position")
        memory.data[addresses] = value

    def _op_scatter(self, stmt: Stmt, value: Array, *positions: Array) -> None:
        name, index, strides, sizes, wrap, combiner = stmt.arg
        memory = self.memory[name]
        addresses = self._addresses(index, self.order) + memory.origin
        if addresses.size == 0:
            return
        for position, stride in zip(self._bounded(positions, sizes, wrap), strides):
            addresses = addresses + position * self.dim(stride)
        flat = addresses.reshape(-1)
        values = np.broadcast_to(value, addresses.shape).reshape(-1)
        for at, item in zip(flat, values):
            memory.data[at] = _combine(combiner, memory.data[at : at + 1], item, stmt.dtype)

    # -- reductions ---------------------------------------------------------------------------
    def _op_reduce(self, stmt: Stmt, value: Array) -> Array:
        combiner, axes = stmt.arg
        dims = tuple(self.order.index(a) for a in axes)
        reducer = REDUCERS[combiner]
        source = self.values[stmt.args[0]].dtype
        if reducer.position:
            find: Any = np.argmax if combiner == "argmax" else np.argmin
            return np.expand_dims(find(value, axis=dims[0]), dims[0]).astype(np.int64)
        if 0 in (value.shape[d] for d in dims):
            identity = np.asarray(reducer.identity(stmt.dtype)).astype(stmt.dtype.numpy)
            return np.full(self._shape(stmt.axes), identity)
        with np.errstate(all="ignore"):
            wide = _wide(value)
            reduced = _ufunc(combiner).reduce(wide, axis=dims, keepdims=True, dtype=wide.dtype)
        return np.asarray(reduced).astype(source)

    def _op_scan(self, stmt: Stmt, value: Array) -> Array:
        combiner, axis = stmt.arg
        k = self.order.index(axis)
        with np.errstate(all="ignore"):
            return np.asarray(_ufunc(combiner).accumulate(value, axis=k, dtype=value.dtype))


def _wide(value: Array) -> Array:
    """Half precision sums in single precision, as NumPy and generated code do."""
    return value.astype(np.float32) if value.dtype.name in ("float16", "bfloat16") else value


def _ufunc(combiner: str) -> Any:
    """NumPy's ufunc of a reduction's combining function."""
    return SCALARS[REDUCERS[combiner].combine].numpy


def _combine(combiner: str, old: Array, item: object, dtype: DType) -> Any:
    if combiner == "set":
        return item
    row = SCALARS[COMBINERS[combiner]]
    with np.errstate(all="ignore"):
        return np.asarray(row.numpy(old, np.asarray([item], dtype.numpy)))[0]

"""A Python function as one node of a graph (``dyncomp.allow_in_graph``), another library's ufunc, and other
routines of libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..dataclass import dataclass
from ..device import CPU
from ..dtypes import DType, float64, int32
from ..graph.ir import ArrayType, Callee, array_type
from ..symbolic.integers import Dim
from .kit import Array, pointwise_type, quiet, type_of
from .opdef import NEVER, Extern, OpDef, Sample
from .samples import data


def call_meta(*types: ArrayType, callee: Callee) -> Any:
    return callee.results if len(callee.results) > 1 else callee.results[0]


def call_ref(*arrays: object, callee: Callee) -> Any:
    """The call. What is unlike the call at capture raises, so that the original program runs instead."""
    found = callee.function(*arrays)
    results: Any = found if callee.structure is not None else (found,)
    if callee.structure is not None and type(found) is not callee.structure:
        raise TypeError(f"{callee.name} returned a {type(found).__name__}, not a {callee.structure.__name__}")
    if len(results) != len(callee.results):
        raise TypeError(f"{callee.name} returned {len(results)} values, not {len(callee.results)}")
    for result, kind, expected in zip(results, callee.kinds, callee.results):
        _check(callee, result, kind, expected)
        if isinstance(result, np.ndarray) and any(np.may_share_memory(result, a) for a in arrays):
            raise TypeError(f"{callee.name} returned memory of its arguments")
    arrays = tuple(np.asarray(r) for r in results)
    return arrays if len(arrays) > 1 else arrays[0]


def _check(callee: Callee, result: Any, kind: Any, expected: ArrayType) -> None:
    if type(result) is not kind:
        raise TypeError(f"{callee.name} returned a {type(result).__name__}, not a {kind.__name__}")
    strides = tuple(s // result.itemsize for s in result.strides)
    layout = all(n <= 1 or s == e for n, s, e in zip(result.shape, strides, expected.strides))
    if result.dtype != expected.dtype.numpy or result.shape != expected.shape or not layout:
        raise TypeError(f"{callee.name} returned {result.dtype}{result.shape}, not {expected}")


def call_samples() -> Iterator[Sample]:
    x = data(float64, (3, 4))
    single = Callee(np.negative, "negative", (array_type(float64, (3, 4)),), (np.ndarray,))
    yield Sample((x,), {"callee": single}, "array")
    results = (array_type(float64, (3, 4)), array_type(float64, ()))
    several = Callee(_pair, "pair", results, (np.ndarray, np.float64), tuple)
    yield Sample((x, x[::-1].copy()), {"callee": several}, "array and scalar")


def _pair(x: Any, y: Any) -> Any:
    return x + y, x.sum()


def ufunc_meta(*types: ArrayType, callee: Callee, dtypes: tuple[DType, ...]) -> Any:
    made = tuple(pointwise_type(types, dtype) for dtype in dtypes)
    return made if len(made) > 1 else made[0]


@quiet
def ufunc_ref(*arrays: object, callee: Callee, dtypes: tuple[DType, ...]) -> Any:
    found = callee.function(*arrays)
    results = found if len(dtypes) > 1 else (found,)
    made = tuple(np.asarray(r) for r in results)
    if any(r.dtype != dtype.numpy for r, dtype in zip(made, dtypes, strict=True)):
        raise TypeError(f"{callee.name} returned {made[0].dtype}, not {dtypes[0]}")
    return made if len(made) > 1 else made[0]


def ufunc_samples() -> Iterator[Sample]:
    x = data(float64, (3, 4))
    power = Callee(np.float_power, "float_power", (), ())
    yield Sample((abs(x), abs(x)), {"callee": power, "dtypes": (float64,)}, "one result")
    parts = Callee(np.frexp, "frexp", (), ())
    yield Sample((x,), {"callee": parts, "dtypes": (float64, int32)}, "several")


def routine_meta(
    *types: ArrayType,
    callee: Callee,
    numbers: tuple[Dim, ...],
    dtypes: tuple[DType, ...],
    shapes: tuple[tuple[Dim, ...], ...],
) -> Any:
    device = types[0].device if types else CPU
    made = tuple(array_type(dtype, shape, device) for dtype, shape in zip(dtypes, shapes, strict=True))
    return made if len(made) > 1 else made[0]


def routine_ref(
    *arrays: object,
    callee: Callee,
    numbers: tuple[int, ...],
    dtypes: tuple[DType, ...],
    shapes: tuple[tuple[int, ...], ...],
) -> Any:
    """The call; results of other types or sizes than were found at capture raise."""
    made = tuple(np.asarray(a, order="C") for a in callee.function(arrays, numbers))
    for array, dtype, shape in zip(made, dtypes, shapes, strict=True):
        if array.dtype != dtype.numpy or array.shape != shape:
            raise TypeError(f"{callee.name} returned {array.dtype}{array.shape}, not {dtype}{shape}")
    return made if len(made) > 1 else made[0]


def routine_samples() -> Iterator[Sample]:
    x = data(float64, (3, 4))
    cut = Callee(_first_columns, "first_columns", (), ())
    yield Sample((x,), {"callee": cut, "numbers": (2,), "dtypes": (float64,), "shapes": ((3, 2),)})


def _first_columns(arrays: tuple[Any, ...], numbers: tuple[int, ...]) -> tuple[Any, ...]:
    return (arrays[0][:, : numbers[0]],)


@dataclass(frozen=True, eq=False)
class ForEach:
    """An op, called for each element of a batch, which is axis 0 of its ``batched`` inputs."""

    meta: Callable[..., Any]
    ref: Callable[..., Any]
    params: Mapping[str, Any]
    batched: tuple[bool, ...]

    def types(self, inputs: Sequence[ArrayType]) -> tuple[ArrayType, ...]:
        single = [
            replace(t, shape=t.shape[1:], strides=t.strides[1:]) if has else t
            for t, has in zip(inputs, self.batched)
        ]
        found = self.meta(*single, **self.params)
        size = inputs[self.batched.index(True)].shape[0]
        results = found if isinstance(found, tuple) else (found,)
        return tuple(array_type(t.dtype, (size, *t.shape), t.device) for t in results)

    def __call__(self, *arrays: Array) -> tuple[Array, ...]:
        made = [
            np.empty(t.shape, t.dtype.numpy)  # type: ignore[arg-type]
            for t in self.types(tuple(map(type_of, arrays)))
        ]
        for i in range(len(arrays[self.batched.index(True)])):
            given = [a[i, ...] if has else a for a, has in zip(arrays, self.batched)]
            found = self.ref(*given, **self.params)
            for whole, part in zip(made, found if isinstance(found, tuple) else (found,), strict=True):
                if part.shape != whole.shape[1:]:
                    raise ValueError(f"results of shapes {part.shape} and {whole.shape[1:]}")
                whole[i] = part
        return tuple(made)


def for_each_meta(*types: ArrayType, callee: Callee) -> Any:
    made = callee.function.types(types)  # type: ignore[attr-defined]
    return made if len(made) > 1 else made[0]


def for_each_ref(*arrays: Array, callee: Callee) -> Any:
    made = callee.function(*arrays)
    return made if len(made) > 1 else made[0]


def for_each_samples() -> Iterator[Sample]:
    x = data(float64, (4, 3))
    single = ForEach(lambda x, y: array_type(float64, (3, 3)), np.outer, {}, (True, False))
    yield Sample((x, x[0]), {"callee": Callee(single, "outer", (), ())}, "one result")
    several = ForEach(
        lambda x: (array_type(float64, ()), array_type(float64, (3,))), _sum_and_more, {}, (True,)
    )
    yield Sample((x,), {"callee": Callee(several, "sum and more", (), ())}, "several")


def _sum_and_more(x: Array) -> tuple[Any, ...]:
    return np.asarray(x.sum()), x + 1.0


ROWS: tuple[OpDef, ...] = (
    OpDef(
        "python_call",
        ("callee",),
        call_meta,
        call_ref,
        lower=Extern(),
        samples=call_samples,
        doc="A Python function that the program allows in graphs, on arrays as it is given them.",
        rounds={"fc": NEVER},
    ),
    OpDef(
        "ufunc_call",
        ("callee", "dtypes"),
        ufunc_meta,
        ufunc_ref,
        lower=Extern(),
        samples=ufunc_samples,
        doc="A universal function that has no op of its own, such as those of `scipy.special`, on operands "
        "of one shape and of the dtypes of its inner loop.",
        rounds={"fc": NEVER},
    ),
    OpDef(
        "routine_call",
        ("callee", "numbers", "dtypes", "shapes"),
        routine_meta,
        routine_ref,
        lower=Extern(),
        samples=routine_samples,
        doc="A routine of a library (such as one of torch) that changes nothing: called with the arrays and "
        "with integers, it gives a tuple of arrays, which are taken in C order.",
        rounds={"fc": NEVER},
    ),
    OpDef(
        "for_each",
        ("callee",),
        for_each_meta,
        for_each_ref,
        lower=Extern(),
        samples=for_each_samples,
        doc="An op whose routine takes no stacks, called for each element of a batch.",
    ),
)

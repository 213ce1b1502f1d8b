"""Under ``numerics="strict"`` the functions of NumPy and PyTorch that are ops give the library's bits on the
samples of their rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import dyncomp
from dyncomp.prims.opdef import NEVER, ONCE, Pointwise, Reduce, Scan
from dyncomp.prims.table import TABLE

from .bits import bits, strictly

_MOST = 40  # samples of a row: of each dtype some
_NAMES = {"reduce_sum": "sum", "reduce_prod": "prod", "reduce_max": "max", "reduce_min": "min"}


def _samples(row: Any) -> list[Any]:
    by_dtype: dict[str, list[Any]] = {}
    for sample in row.samples():
        if sample.args and all(isinstance(a, np.ndarray) and a.dtype.name != "bfloat16" for a in sample.args):
            by_dtype.setdefault(sample.args[0].dtype.name, []).append(sample)
    each = max(1, _MOST // max(1, len(by_dtype)))
    return [s for group in by_dtype.values() for s in group[:: max(1, len(group) // each)][:each]]


def _call_of(row: Any, library: Any) -> Any:
    """What calls the library's function that the row is, with a sample's params as NumPy has them."""
    name = _NAMES.get(row.name, row.name)
    function = getattr(library, name, None)
    if function is None:
        return None
    if isinstance(row.lower, Pointwise) and not row.params:
        return lambda *arrays, **params: function(*arrays)
    if isinstance(row.lower, Reduce) and row.params == ("axes",) and library is np:
        return lambda x, axes: function(x, axis=axes)
    if isinstance(row.lower, (Reduce, Scan)) and row.params == ("axis",):
        return lambda x, axis: function(x, axis)
    return None


def _swept(row: Any, library: Any, made: Any) -> tuple[int, list[str]]:
    call = _call_of(row, library)
    found, count = [], 0
    for sample in _samples(row) if call is not None else ():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                arrays = [made(a) for a in sample.args]
                wanted = call(*arrays, **sample.params)
        except Exception:  # noqa: S112 - not for these types
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = strictly(call, backend="eager")(*arrays, **sample.params)
        count += 1
        if text := bits(wanted, got):
            found.append(f"{sample.label}: {text}")
    dyncomp.reset()
    return count, found


_ROWS = [
    name for name, row in TABLE.items() if row.samples and isinstance(row.lower, Pointwise | Reduce | Scan)
]


@pytest.mark.parametrize("name", [name for name in _ROWS if _call_of(TABLE[name], np) is not None])
def test_rows_in_numpy(name: str) -> None:
    count, found = _swept(TABLE[name], np, lambda a: a)
    assert count
    assert not found


@pytest.mark.parametrize("name", _ROWS)
def test_rows_in_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    if _call_of(TABLE[name], torch) is None:
        pytest.skip("no function of torch by this name")
    with torch.no_grad():
        _, found = _swept(TABLE[name], torch, lambda a: torch.from_numpy(a.copy()))
    assert not found


def test_rows_say_how_they_round() -> None:
    """A new row is taken to differ from libraries unless it says something."""
    from dyncomp.dtypes import float16, float32
    from dyncomp.graph.ir import GraphBuilder, array_type
    from dyncomp.prims.rounding import is_as_librarys, rounding

    builder = GraphBuilder(TABLE)
    x = builder.add_input(array_type(float32, (3,)))
    h = builder.add_input(array_type(float16, (3,)))
    builder.emit("exp", x)
    builder.emit("add", x, x)
    builder.emit("copy", x)
    builder.emit("reduce_sum", x, axes=(0,))
    builder.emit("add", h, h)
    said = [rounding(node, TABLE, "numpy") for node in builder.nodes]
    assert said == ["", ONCE, NEVER, "", ""]
    assert is_as_librarys(builder.nodes[1:3], TABLE, "numpy")
    assert not is_as_librarys([builder.nodes[1]] * 2, TABLE, "numpy")  # two roundings: in which order?

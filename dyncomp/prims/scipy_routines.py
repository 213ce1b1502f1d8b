"""Routines of SciPy on whole arrays, as graphs call them (``routine_call``)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ..dataclass import dataclass
from ..graph.ir import Callee

Arrays = tuple[Any, ...]


@dataclass(frozen=True)
class Routine:
    """A routine of a module, with its options. ``orders``: for each result the order of its axes in which it
    is contiguous, as it is given to the graph."""

    module: str
    name: str
    options: tuple[tuple[str, Any], ...]
    orders: tuple[tuple[int, ...], ...] = ()

    def __call__(self, arrays: Arrays, numbers: tuple[int, ...]) -> Arrays:
        made = self.results(arrays)
        return tuple(a.transpose(order) for a, order in zip(made, self.orders, strict=True))

    def results(self, arrays: Arrays) -> list[np.ndarray[Any, Any]]:
        library = sys.modules[self.module]
        options = dict(self.options)
        call = _FORMS.get(self.name)
        if call is None:
            made = getattr(library, self.name)(*arrays, **options)
        else:
            made = call(library, arrays, options)
        return [np.asarray(a) for a in (made if isinstance(made, tuple) else (made,))]


def routine_callee(
    module: str, name: str, options: Mapping[str, Any], orders: tuple[tuple[int, ...], ...]
) -> Callee:
    """``options`` are hashable. Callees of equal calls are equal."""
    routine = Routine(module, name, tuple(options.items()), orders)
    return Callee(routine, name, (), (), path=f"{module}.{name}")


def _cho_solve(library: Any, arrays: Arrays, options: dict[str, Any]) -> Any:
    factor, b = arrays
    return library.cho_solve((factor, options.pop("lower")), b, **options)


def _cho_factor(library: Any, arrays: Arrays, options: dict[str, Any]) -> Any:
    return library.cho_factor(*arrays, **options)[0]


def _lu_solve(library: Any, arrays: Arrays, options: dict[str, Any]) -> Any:
    factors, pivots, b = arrays
    return library.lu_solve((factors, pivots), b, **options)


def _permutation(library: Any, arrays: Arrays, options: dict[str, Any]) -> Any:
    """Which rows of a matrix the factors of its LU decomposition with these pivots are of, in order."""
    (pivots,) = arrays
    rows = np.arange(len(pivots))
    for place, other in enumerate(pivots):
        rows[[place, other]] = rows[[other, place]]
    return rows


_FORMS: Mapping[str, Callable[[Any, Arrays, dict[str, Any]], Any]] = MappingProxyType(
    {
        "cho_factor": _cho_factor,
        "cho_solve": _cho_solve,
        "lu_solve": _lu_solve,
        "lu_permutation": _permutation,
    }
)

"""Functions of libraries that rows name: NumPy's and SciPy's own results against compiled ones."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import dyncomp
from dyncomp.prims.table import TABLE

NAMED = [
    (f"{library}.{path}", row)
    for library in ("numpy", "scipy.special")
    for row in TABLE.values()
    for path in row.names_in(library)
]
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -2.0, 30.0, -30.0, 1e-300]


@pytest.mark.parametrize(("name", "row"), NAMED, ids=[name for name, _ in NAMED])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64])
def test_functions_of_libraries(name, row, dtype):
    library, _, path = name.rpartition(".")
    function = getattr(pytest.importorskip(library) and importlib.import_module(library), path)
    ordinary = next(iter(s for s in row.samples() if s.args[0].dtype == np.float64 and s.args[0].size > 20))
    with np.errstate(all="ignore"):
        usual = [np.ascontiguousarray(a) for a in ordinary.args]
        unusual = [np.roll(np.repeat(SPECIAL, len(SPECIAL)), 7 * i * i) for i in range(len(usual) - 1)]
        for operands in (usual, [np.tile(SPECIAL, len(SPECIAL)), *unusual]):
            if dtype == np.int64:
                operands = [np.round(np.nan_to_num(v, posinf=9.0, neginf=-9.0)) for v in operands]
            xs = [v.astype(dtype) for v in operands]
            found, wanted = dyncomp.compile(lambda *xs: function(*xs) * 2)(*xs), function(*xs) * 2
            assert type(found) is type(wanted)
            assert found.dtype == wanted.dtype
            eps = np.finfo(wanted.dtype).eps
            rounding = {"rtol": 4 * eps * max(row.tolerance.eps, 4), "atol": 4 * eps * row.tolerance.absolute}
            np.testing.assert_allclose(found, wanted, **rounding)


def test_errors_of_scipys_functions_are_raised_where_they_are_asked_for():
    special = pytest.importorskip("scipy.special")
    compiled = dyncomp.compile(lambda x: special.psi(x) * 2)
    x = np.array([0.0, 1.0])
    for _ in range(2):
        np.testing.assert_allclose(compiled(x), special.psi(x) * 2)
        with special.errstate(singular="raise"), pytest.raises(special.SpecialFunctionError):
            compiled(x)


def test_the_zeta_function_is_called_as_the_library_says():
    special = pytest.importorskip("scipy.special")

    def program(x, q):
        return special.zeta(x), special.zeta(x, q), special.zeta(x, q=2.5), special.polygamma(1, q)

    x, q = np.linspace(1.5, 20.0, 40), np.linspace(-3.9, 30.0, 40)
    for found, wanted in zip(dyncomp.compile(program, fullgraph=True)(x, q), program(x, q)):
        np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_a_number_stays_what_it_was():
    for function in (lambda x: np.i0(x), lambda x: np.i0(x[0]), lambda x: np.i0(2)):
        x = np.linspace(0.5, 3.0, 4)
        found, wanted = dyncomp.compile(function)(x), function(x)
        assert (type(found), found.shape, found.dtype) == (type(wanted), wanted.shape, wanted.dtype)
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_complex_numbers_are_an_error():
    with pytest.raises(TypeError):
        dyncomp.compile(lambda x: np.i0(x) + 1)(np.ones(3, complex))

"""Status flags: every form of a function raises those of NumPy's function, in whatever lane."""

from __future__ import annotations

import ctypes
import itertools
import math
import random

import numpy as np
import pytest

from dyncomp.build.library import load_vector_math
from dyncomp.build.toolchain import find_toolchain
from dyncomp.dtypes import float32, float64
from dyncomp.inductor.render.cpp import kernel as cpp_kernel
from dyncomp.inductor.render.cpp.sections import vector_functions
from dyncomp.prims.scalar import SCALARS

from .render_util import compile_kernels, load_source, pointwise

pytestmark = pytest.mark.skipif(
    not (load_vector_math() and find_toolchain().calls_vectors),
    reason="this compiler or processor does not call functions on vectors",
)

INVALID, DIVIDE, OVERFLOW = 1, 4, 8  # as the processor numbers them
PROBES = """
#include <immintrin.h>
#include <string.h>
#define EXPORT(TARGET) extern "C" __attribute__((target(TARGET)))
extern "C" void clear_flags() { _mm_setcsr(_mm_getcsr() & ~63u); }
extern "C" unsigned raised_flags() { return _mm_getcsr() & 13; }
#define PROBE(NAME, TARGET, T, V)                                              \\
  EXPORT(TARGET) unsigned NAME(void* f, int arity, const T* x, const T* y) {   \\
    V v, w, r;                                                                 \\
    memcpy(&v, x, sizeof v);                                                   \\
    memcpy(&w, y, sizeof w);                                                   \\
    clear_flags();                                                             \\
    asm volatile("" : "+x"(v), "+x"(w));                                       \\
    r = arity == 1 ? ((V(*)(V))f)(v) : ((V(*)(V, V))f)(v, w);                  \\
    asm volatile("" : "+x"(r));                                                \\
    return raised_flags();                                                     \\
  }
PROBE(probe_f32_1, "avx2", float, float)
PROBE(probe_f64_1, "avx2", double, double)
PROBE(probe_f32_4, "avx2", float, __m128)
PROBE(probe_f64_2, "avx2", double, __m128d)
PROBE(probe_f32_8, "avx2", float, __m256)
PROBE(probe_f64_4, "avx2", double, __m256d)
#ifdef __AVX512DQ__
PROBE(probe_f32_16, "avx512f", float, __m512)
PROBE(probe_f64_8, "avx512f", double, __m512d)
#endif
"""
LANES = {"f32": {"b": 4, "c": 8, "d": 8, "e": 16}, "f64": {"b": 2, "c": 4, "d": 4, "e": 8}}
TYPES = {"f32": np.float32, "f64": np.float64}
NUMPYS = {"pow": "power", "floordiv": "floor_divide", "tanh_beside_one": "tanh"}
LIBRARYS = ("erf", "erfc", "lgamma")  # what is due is what the C library's function raises
NOBODYS = ("sigmoid",)  # nothing is due

MAGNITUDES = [
    *(0.0, 1.0, 2.0, 0.5, 3.0, 2.5, 0.3, 1e-4, 1e-9, 1e-18, 1e-30, 10.0, 21.0, 1e4, 7e4, 1e6, 2.0**41),
    *(1e18, 1e22, 1e30, 1e150, 1e200, 1e300, np.inf),
    # around the thresholds of overflow and underflow
    *(88.7, 88.8, 89.0, 89.3, 89.5, 90.0, 104.5, 127.9, 128.0, 129.0, 150.5, 171.5, 709.7, 709.8, 710.4),
    *(710.5, 711.0, 745.5, 746.5, 1023.9, 1024.0, 1080.5),
]


def specials(dtype) -> list[float]:
    info, one = np.finfo(dtype), dtype(1)
    found = [*MAGNITUDES, info.smallest_subnormal, info.tiny, info.tiny / 4, info.max, info.max / 2]
    found += [np.nextafter(one, dtype(2)), np.nextafter(one, dtype(0))]
    with np.errstate(all="ignore"):
        return [float(v) for size in found for v in (dtype(size), -dtype(size))] + [np.nan]


def cases(name: str, dtype, arity: int, count: int = 200) -> list[tuple[float, ...]]:
    values = specials(dtype)
    if arity == 1:
        return [(v,) for v in values]
    few = [0.0, -0.0, 1.0, -1.0, -2.0, 0.5, 3.0, np.inf, -np.inf, np.nan]
    pairs = random.Random(name).sample(list(itertools.product(values, repeat=2)), count)
    # whether zero to the power of minus infinity divides by zero depends on the processor that NumPy finds
    unclear = {(0.0, -np.inf)} if "pow" in name else set()
    return [pair for pair in (*itertools.product(few, repeat=2), *pairs) if pair not in unclear]


def ordinary(op: str) -> float:
    return 1.5 if op == "arccosh" else 0.5


def due(op: str, dtype, values: tuple[float, ...], probes) -> int:
    seen = 0

    def note(kind: str, flags: int) -> None:
        nonlocal seen
        seen |= (flags & 1) * DIVIDE | (flags >> 1 & 1) * OVERFLOW | (flags >> 3 & 1) * INVALID

    if op in NOBODYS:
        return 0
    arrays = [np.array([v], dtype) for v in values]
    if op in LIBRARYS:
        short = "f32" if dtype is np.float32 else "f64"
        function = ctypes.CDLL("libm.so.6")[op + ("f" if short == "f32" else "")]
        return probes[f"probe_{short}_1"](function, 1, address(arrays[0]), address(arrays[0]))
    with np.errstate(all="call", call=note):
        getattr(np, NUMPYS.get(op, op))(*arrays)
    if any(math.isinf(v) for v in values):
        seen &= ~OVERFLOW  # NumPy's power for AVX-512 says so of exact infinities
    return seen


def address(array: np.ndarray) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def is_right(found: int, expected: int) -> bool:
    # steps after an invalid one may overflow or divide: NumPy runs again anyway
    return found & expected == expected if expected & INVALID else found == expected


@pytest.fixture(scope="module")
def probes():
    return ctypes.CDLL(str(load_source(PROBES).library.path))


@pytest.mark.parametrize("name", vector_functions())
def test_forms_of_the_runtime(name, probes):
    op, short = name.removeprefix("dcv_")[:-4], name[-3:]
    dtype, arity = TYPES[short], vector_functions()[name]
    forms = {name: 1}
    forms |= {f"_ZGV{abi}N{n}{'v' * arity}_{name}": n for abi, n in LANES[short].items()}
    wrong = []
    for case in cases(name, dtype, arity):
        expected = due(op, dtype, case, probes)
        for symbol, lanes in forms.items():
            if not hasattr(probes, f"probe_{short}_{lanes}"):
                continue  # not of this processor
            for place in {0, lanes - 1}:
                arrays = [np.full(16, ordinary(op), dtype) for _ in range(2)]
                for array, value in zip(arrays, case):
                    array[place] = value
                function = ctypes.cast(ctypes.CDLL(None)[symbol], ctypes.c_void_p)
                found = probes[f"probe_{short}_{lanes}"](function, arity, *map(address, arrays))
                if not is_right(found, expected):
                    wrong.append((symbol, case, expected, found))
    assert not wrong, wrong[:10]


@pytest.mark.parametrize("dtype", (float32, float64), ids=str)
def test_kernels(dtype, probes):
    """Functions inlined into kernels, but for those that have to be called, and called."""
    ops = [op for op, row in SCALARS.items() if dtype.kind in row.kind_names]
    ops = [op for op in ops if cpp_kernel.is_in_runtime(op, dtype)]
    wrong = []
    for calls in (False, True):
        chosen = [op for op in ops if calls or not SCALARS[op].vector.looked_at]
        kernels = [pointwise(op, [dtype] * SCALARS[op].arity, dtype, 37) for op in chosen]
        compiled = compile_kernels(kernels, point_ns=0.0, vector_calls=calls)
        for number, op in enumerate(chosen):
            numpys = TYPES[f"f{8 * dtype.itemsize}"]
            for case, place in itertools.product(cases(op, numpys, SCALARS[op].arity, 30), (3, 36)):
                arrays = [np.full(37, ordinary(op), numpys) for _ in range(SCALARS[op].arity + 1)]
                for array, value in zip(arrays, case):
                    array[place] = value
                probes.clear_flags()
                compiled.run(arrays, f"run_{number}", split=False)
                found, expected = probes.raised_flags(), due(op, numpys, case, probes)
                if not is_right(found, expected):
                    wrong.append((op, calls, case, place, expected, found))
    assert not wrong, wrong[:10]


def test_functions_that_are_looked_at_are_called():
    kernel = pointwise("log", [float64], float64, 10_000_000)
    assert "dcv_log_f64" in compile_kernels([kernel], point_ns=10.0, vector_calls=True).source

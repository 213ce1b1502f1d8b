"""The status flags that functions of the runtime raise, form by form, and those that NumPy's raise."""

from __future__ import annotations

import ctypes
import itertools
import math
import warnings

import numpy as np

from dyncomp.inductor.render.sections import vector_functions

from .render_util import load_source

INVALID, DIVIDE, OVERFLOW = 1, 4, 8  # as the processor numbers them
SOURCE = """
#include <immintrin.h>
#include <string.h>
extern "C" void clear_flags() { _mm_setcsr(_mm_getcsr() & ~63u); }
extern "C" unsigned raised_flags() { return _mm_getcsr() & 13; }
#define PROBE(NAME, TARGET, T, V)                                                                        \\
  extern "C" __attribute__((target(TARGET))) unsigned NAME(void* f, int arity, const T* x, const T* y) { \\
    V v, w, r;                                                                                           \\
    memcpy(&v, x, sizeof v);                                                                             \\
    memcpy(&w, y, sizeof w);                                                                             \\
    clear_flags();                                                                                       \\
    asm volatile("" : "+x"(v), "+x"(w));                                                                 \\
    r = arity == 1 ? ((V(*)(V))f)(v) : ((V(*)(V, V))f)(v, w);                                            \\
    asm volatile("" : "+x"(r));                                                                          \\
    return raised_flags();                                                                               \\
  }
PROBE(probe_f32_1, "avx2", float, float)
PROBE(probe_f64_1, "avx2", double, double)
PROBE(probe_f32_4, "avx2", float, __m128)
PROBE(probe_f64_2, "avx2", double, __m128d)
PROBE(probe_f32_8, "avx2", float, __m256)
PROBE(probe_f64_4, "avx2", double, __m256d)
#ifdef __AVX512F__
PROBE(probe_f32_16, "avx512f", float, __m512)
PROBE(probe_f64_8, "avx512f", double, __m512d)
#endif
"""
NUMPYS = {"pow": "power", "floordiv": "floor_divide", "tanh_beside_one": "tanh"}
# no functions of NumPy's: what is due is what the C library's raise, and nothing for what it has not
LIBRARYS = ("erf", "erfc", "lgamma")
ORDINARY = {"arccosh": 1.5}


def due_flags(op: str, dtype: type, values: tuple[float, ...]) -> int:
    """What NumPy reports, of an array of one."""
    seen = 0

    def note(kind: str, flags: int) -> None:
        nonlocal seen
        seen |= (flags & 1) * DIVIDE | (flags >> 1 & 1) * OVERFLOW | (flags >> 3 & 1) * INVALID

    if op == "sigmoid":
        return 0
    if op in LIBRARYS:
        return library_flags(op, dtype, values)
    with np.errstate(all="call", call=note):
        getattr(np, NUMPYS.get(op, op))(*(np.array([v], dtype) for v in values))
    return seen


def library_flags(op, dtype, values):
    lib = ctypes.CDLL("libm.so.6")
    short = dtype is np.float32
    f = lib[op + ("f" if short else "")]
    c = ctypes.c_float if short else ctypes.c_double
    f.argtypes, f.restype = [c], c
    p = load_source(SOURCE).library
    p = ctypes.CDLL(str(p.path))
    x = np.array([*values], dtype)
    return p["probe_f32_1" if short else "probe_f64_1"](f, 1, x.ctypes.data_as(ctypes.c_void_p), x.ctypes.data_as(ctypes.c_void_p))


def specials(dtype):
    info = np.finfo(dtype)
    base = [0.0, 1.0, 2.0, 0.5, 3.0, 2.5, 0.3, 1e-4, 1e-9, 1e-18, 1e-30, info.smallest_subnormal, info.tiny, info.tiny / 4,
      info.max, info.max/2, np.inf, np.nextafter(dtype(1), dtype(2)), np.nextafter(dtype(1), dtype(0)), 10.0, 21.0, 1e4, 7e4, 1e6, 2.0**41, 1e18, 1e22, 1e30,
      88.7, 88.8, 89.0, 89.3, 89.5, 90, 104.5, 127.9, 128, 129, 150.5]
    base += [171.5, 709.7, 709.8, 710.4, 710.5, 711.0, 745.5, 746.5, 1023.9, 1024.0, 1080.5, 1e150, 1e200, 1e300]
    with np.errstate(all="ignore"):
        made = np.array([s * v for v in base for s in (1, -1)] + [np.nan], dtype)
    return sorted(set(made[np.isfinite(made)].tolist())|{0.0}) + [-0.0, np.inf, -np.inf, np.nan]

"""Every float32 argument of elementary functions of one argument, against the C library in double precision.

``python tools/all_floats.py [--march ARCH] [--step N] [NAME…]`` compiles the helpers of
``dyncomp/inductor/render/cpp/csrc`` as generated code is compiled. It prints for each the largest error in
units in the last place of the true value, where that is, and a checksum of all results, by which
instruction sets can be compared. Needs g++ on x86-64 and a minute for each function.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from dyncomp.build.toolchain import find_toolchain, flags_for
from dyncomp.inductor.render.cpp.support import needed_support

# What the true value is, in C, and the largest argument that the helper itself is for.
TRUTH: dict[str, tuple[str, float]] = {
    "exp": ("exp(x)", np.inf),
    "exp2": ("exp2(x)", np.inf),
    "expm1": ("expm1(x)", np.inf),
    "log": ("log(x)", np.inf),
    "log2": ("log2(x)", np.inf),
    "log10": ("log10(x)", np.inf),
    "log1p": ("log1p(x)", np.inf),
    "sin": ("sin(x)", 65536.0),
    "cos": ("cos(x)", 65536.0),
    "tanh": ("tanh(x)", np.inf),
    "sigmoid": ("1 / (1 + exp(-x))", np.inf),
    "erf": ("erf(x)", np.inf),
    "arctan": ("atan(x)", np.inf),
    "sinh": ("sinh(x)", np.inf),
    "cosh": ("cosh(x)", np.inf),
    "arcsinh": ("asinh(x)", np.inf),
    "cbrt": ("cbrt(x)", np.inf),
}
BLOCK = 1 << 20

_TRUTH_SOURCE = """
#include <math.h>
extern "C" void truth(const float* from, double* to) {
  for (int i = 0; i < %d; ++i) { const double x = from[i]; to[i] = %s; }
}
"""
# The error of a result that is to be finite is measured by the distance of floats at the true value.
_OURS_SOURCE = """
typedef long long i64;
typedef unsigned long long u64;
#define DC_INLINE static inline __attribute__((always_inline))
%s
extern "C" void ours(const float* from, float* to) {
  #pragma omp simd
  for (int i = 0; i < %d; ++i) to[i] = dc_%s_f32(from[i]);
}
"""
_COMPARE_SOURCE = """
extern "C" void errors(const double* truth, const float* found, float* to) {
  for (int i = 0; i < %d; ++i) {
    union { float f; unsigned u; } near, step;
    near.f = (float)truth[i];
    const unsigned exponent = near.u >> 23 & 255;
    step.u = exponent > 23 ? (exponent - 23) << 23 : 1u << (exponent ? exponent - 1 : 0);
    const bool infinite = exponent == 255;
    const double error = __builtin_fabs(found[i] - truth[i]) / step.f;
    const bool same = near.f == found[i] || (near.f != near.f && found[i] != found[i]);
    to[i] = infinite ? (same ? 0.0f : 1e30f) : error == error ? (float)error : 1e30f;
  }
}
"""


def build(folder: Path, name: str, march: str) -> list[ctypes.CDLL]:
    """The libraries with ``truth``, ``ours`` and ``errors`` for one function."""
    compiler = find_toolchain().compiler
    helper = needed_support(f"dc_{name}_f32(")
    plain = ["-O3", "-march=native", "-fno-math-errno", "-fPIC", "-fopenmp-simd"]
    strict = [f for f in flags_for(march) if f not in ("-nostdlib", "-shared")]
    # the C library's vectors, by flags that must not reach the linker (it would set the processor's modes)
    texts = {
        "truth": (_TRUTH_SOURCE % (BLOCK, TRUTH[name][0]), [*plain, "-ffast-math"]),
        "ours": (_OURS_SOURCE % (helper, BLOCK, name), strict),
        "errors": (_COMPARE_SOURCE % BLOCK, plain),
    }
    found = []
    for key, (text, flags) in texts.items():
        source = folder / f"{key}.cpp"
        source.write_text(text)
        subprocess.run([compiler, *flags, "-c", str(source), "-o", str(folder / f"{key}.o")], check=True)
        library = folder / f"{key}.so"
        libraries = ["-lmvec", "-lm"]
        subprocess.run(
            [compiler, "-shared", str(folder / f"{key}.o"), "-o", str(library), *libraries], check=True
        )
        found.append(ctypes.CDLL(str(library)))
    return found


def measure(name: str, march: str, step: int) -> tuple[float, float, int]:
    """The largest error, its argument, and the checksum."""
    with tempfile.TemporaryDirectory() as folder:
        truth, ours, compare = build(Path(folder), name, march)
    limit = np.float32(TRUTH[name][1])
    true, out, error = np.empty(BLOCK), np.empty(BLOCK, np.float32), np.empty(BLOCK, np.float32)
    worst, place, checksum = 0.0, 0.0, 0
    for start in range(0, (1 << 32) - BLOCK * step + 1, BLOCK * step):
        x = np.arange(start, start + BLOCK * step, step, dtype=np.uint32).view(np.float32)
        if not (np.isfinite(x).any() and (np.abs(x) <= limit).any()):
            continue
        pointer = ctypes.c_void_p
        truth.truth(pointer(x.ctypes.data), pointer(true.ctypes.data))
        ours.ours(pointer(x.ctypes.data), pointer(out.ctypes.data))
        compare.errors(pointer(true.ctypes.data), pointer(out.ctypes.data), pointer(error.ctypes.data))
        inside = np.abs(x) <= limit
        error[~(inside & np.isfinite(x))] = 0
        bits = np.where(np.isnan(out) | ~inside, np.uint32(0), out.view(np.uint32))
        checksum = (checksum * 31 + int(bits.sum(dtype=np.uint64))) % (1 << 64)
        at = int(error.argmax())
        if error[at] > worst:
            worst, place = float(error[at]), float(x[at])
    return worst, place, checksum


def main() -> int:
    """Print the table; the exit status is 1 where an error is above 2."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--march", default="native", help="what the helpers are compiled for")
    parser.add_argument("--step", type=int, default=1, help="only one float in so many")
    parser.add_argument("names", nargs="*", help="only these functions")
    options = parser.parse_args()
    bad = False
    for name in options.names or TRUTH:
        worst, place, checksum = measure(name, options.march, options.step)
        bad |= worst > 2
        print(f"{name:10} {worst:8.3f} ulp at {place!r:26} checksum {checksum:016x}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

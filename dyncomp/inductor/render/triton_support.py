"""Text that generated Triton modules share: imports and helper functions, by name."""

from __future__ import annotations

import re

IMPORTS = """\
import triton
import triton.language as tl
"""

LIBDEVICE = "from triton.language.extra import libdevice as dc_libdevice\n"

# Triton's // and % on integers truncate as in C.
HELPERS: dict[str, str] = {
    "dc_divide": """
@triton.jit
def dc_divide(x, y):
    if x.dtype == tl.float32:
        q = tl.div_rn(x, y)
    else:
        q = x / y
    return q
""",
    "dc_sqrt": """
@triton.jit
def dc_sqrt(x):
    if x.dtype == tl.float32:
        r = tl.sqrt_rn(x)
    else:
        r = tl.sqrt(x)
    return r
""",
    "dc_finite_or_zero": """
@triton.jit
def dc_finite_or_zero(x):
    return tl.where(tl.abs(x) == float("inf"), 0.0, x)
""",
    "dc_shrunk": """
@triton.jit
def dc_shrunk(total, top, near):
    return tl.where(top == float("-inf"), 0.0, total * tl.exp(top - near))
""",
    "dc_rint": """
@triton.jit
def dc_rint(x):
    size = tl.abs(x)
    if x.dtype == tl.float32:
        large = 8388608.0
        negative = x.to(tl.int32, bitcast=True) < 0
    else:
        large = 4503599627370496.0
        negative = x.to(tl.int64, bitcast=True) < 0
    near = tl.where(size < large, (size + large) - large, size)
    return tl.where(negative, -near, near)
""",
    "dc_signbit": """
@triton.jit
def dc_signbit(x):
    if x.dtype == tl.float32:
        s = x.to(tl.int32, bitcast=True) < 0
    else:
        s = x.to(tl.int64, bitcast=True) < 0
    return s
""",
    "dc_floordiv_int": """
@triton.jit
def dc_floordiv_int(x, y):
    safe = tl.where(y == 0, y + 1, y)
    q = x // safe
    r = x - q * safe
    down = (r != 0) & ((r < 0) != (safe < 0))
    return tl.where(y == 0, x * 0, q - down.to(q.dtype)).to(x.dtype)
""",
    "dc_remainder_int": """
@triton.jit
def dc_remainder_int(x, y):
    safe = tl.where(y == 0, y + 1, y)
    r = x % safe
    moved = tl.where((r != 0) & ((r < 0) != (safe < 0)), r + safe, r)
    return tl.where(y == 0, x * 0, moved).to(x.dtype)
""",
    "dc_fmod_int": """
@triton.jit
def dc_fmod_int(x, y):
    safe = tl.where(y == 0, y + 1, y)
    return tl.where(y == 0, x * 0, x % safe).to(x.dtype)
""",
    "dc_power_int": """
@triton.jit
def dc_power_int(x, y):
    left = tl.where(y < 0, y * 0, y).to(x.dtype)
    base = x
    r = x * 0 + 1
    for _ in tl.static_range(x.dtype.primitive_bitwidth):
        r = tl.where((left & 1) != 0, r * base, r).to(x.dtype)
        base = (base * base).to(x.dtype)
        left = left >> 1
    if x.dtype.is_int_signed():
        odd = tl.where((y & 1) != 0, x, x * x)
        unit = (x == 1) | (x == -1)
        r = tl.where(y < 0, tl.where(unit, odd, x * 0), r)
    return r.to(x.dtype)
""",
    "dc_shl": """
@triton.jit
def dc_shl(x, n):
    inside = (n >= 0) & (n < x.dtype.primitive_bitwidth)
    return tl.where(inside, x << tl.where(inside, n, n * 0), x * 0).to(x.dtype)
""",
    "dc_shr": """
@triton.jit
def dc_shr(x, n):
    inside = (n >= 0) & (n < x.dtype.primitive_bitwidth)
    last = n * 0 + (x.dtype.primitive_bitwidth - 1)
    shifted = x >> tl.where(inside, n, last)
    if x.dtype.is_int_signed():
        r = shifted
    else:
        r = tl.where(inside, shifted, x * 0)
    return r.to(x.dtype)
""",
    "dc_product": """
@triton.jit
def dc_product(x, y):
    return x * y
""",
    "dc_max_of": """
@triton.jit
def dc_max_of(x, y):
    if x.dtype.is_floating():
        r = tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)
    else:
        r = tl.maximum(x, y)
    return r
""",
    "dc_min_of": """
@triton.jit
def dc_min_of(x, y):
    if x.dtype.is_floating():
        r = tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)
    else:
        r = tl.minimum(x, y)
    return r
""",
}


def prelude(body: str) -> str:
    """Imports and the helpers that ``body`` uses."""
    used = [text for name, text in HELPERS.items() if re.search(rf"\b{name}\b", body)]
    imports = IMPORTS + (LIBDEVICE if "dc_libdevice" in body else "")
    return imports + "\n".join(used)

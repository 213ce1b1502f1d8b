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
    # Both polynomials of N. Juffa's erff (a minimax fit each side of 0.93, 1 ulp), without branches: the
    # library's chooses coefficients, whose constants take a third more registers.
    "dc_erf": """
@triton.jit
def dc_erf(x):
    if x.dtype == tl.float32:
        t = tl.abs(x)
        s = x * x
        far = tl.fma(-1.72853470e-5, t, 3.83197126e-4)
        far = tl.fma(far, s, tl.fma(-3.88396438e-3, t, 2.42546219e-2))
        far = tl.fma(far, t, -1.06777877e-1)
        far = tl.fma(far, t, -6.34846687e-1)
        far = tl.fma(far, t, -1.28717512e-1)
        far = 1.0 - tl.exp(tl.fma(far, t, -t))
        near = tl.fma(-5.96761703e-4, s, 4.99119423e-3)
        near = tl.fma(near, s, -2.67681349e-2)
        near = tl.fma(near, s, 1.12819925e-1)
        near = tl.fma(near, s, -3.76125336e-1)
        near = tl.fma(near, s, 1.28379166e-1)
        r = tl.where(t > 0.927734375, tl.where(x < 0, -far, far), tl.fma(near, x, x))
    else:
        r = tl.erf(x)
    return r
""",
    # The quotient is within 2 ulp: one rounded as IEEE asks for takes twice as many instructions.
    "dc_sigmoid": """
@triton.jit
def dc_sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))
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
    "dc_remainder_float": """
@triton.jit
def dc_remainder_float(x, y):
    mod = dc_libdevice.fmod(x, y)
    moved = tl.where((y < 0) != (mod < 0), mod + y, mod)
    return tl.where(mod != 0, moved, dc_zero_like(y))
""",
    # NumPy's: the quotient is rounded from (x - mod) / y
    "dc_floordiv_float": """
@triton.jit
def dc_floordiv_float(x, y):
    mod = dc_libdevice.fmod(x, y)
    shift = ((mod != 0) & ((y < 0) != (mod < 0))).to(mod.dtype)
    quotient = dc_divide(x, y)
    near = dc_divide(x - mod, y) - shift
    down = tl.floor(near)
    whole = tl.where(near - down > 0.5, down + 1, down)
    return tl.where(y == 0, quotient, tl.where(near != 0, whole, dc_zero_like(quotient)))
""",
    "dc_zero_like": """
@triton.jit
def dc_zero_like(x):
    return tl.where(dc_signbit(x), -0.0, 0.0).to(x.dtype)
""",
    "dc_size": """
@triton.jit
def dc_size(x):
    if x.dtype.is_int_signed():
        wide = x.to(tl.int64)
        r = tl.where(wide < 0, -wide, wide).to(tl.uint64)
    else:
        r = x.to(tl.uint64)
    return r
""",
    # Euclid's algorithm, until all numbers of the block are done
    "dc_gcd": """
@triton.jit
def dc_gcd(x, y):
    a = dc_size(x) + dc_size(y) * 0
    b = dc_size(y) + dc_size(x) * 0
    while tl.max((a != 0).to(tl.int32)) != 0:
        rest = tl.where(a == 0, b, b % tl.where(a == 0, a + 1, a))
        b = tl.where(a == 0, b, a)
        a = tl.where(a == 0, a, rest)
    return b.to(x.dtype)
""",
    "dc_lcm": """
@triton.jit
def dc_lcm(x, y):
    a = dc_size(x) + dc_size(y) * 0
    b = dc_size(y) + dc_size(x) * 0
    common = dc_gcd(x, y).to(x.dtype)
    part = dc_size(common)
    return tl.where(part == 0, part, a // tl.where(part == 0, part + 1, part) * b).to(x.dtype)
""",
    "dc_power_int": """
@triton.jit
def dc_power_int(x, y):
    left = tl.where(y < 0, y * 0, y).to(x.dtype)
    base = x
    r = x * 0 + 1
    bits: tl.constexpr = x.dtype.primitive_bitwidth
    for _ in tl.static_range(bits):
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
    """Imports and the helpers that ``body`` uses, and that these use."""
    used = {name for name in HELPERS if re.search(rf"\b{name}\b", body)}
    todo = list(used)
    while todo:
        text = HELPERS[todo.pop()]
        more = {name for name in HELPERS if name not in used and re.search(rf"\b{name}\b", text)}
        used |= more
        todo += more
    helpers = "\n".join(text for name, text in HELPERS.items() if name in used)
    return IMPORTS + (LIBDEVICE if "dc_libdevice" in body + helpers else "") + helpers

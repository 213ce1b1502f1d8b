"""The loop IR's own rules: what ``verify_kernel`` refuses, and text that reads back."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dyncomp import dtypes
from dyncomp.errors import VerifyError
from dyncomp.inductor.loops.loop_ir import Axis, Buffer, Index, Kernel, Stmt
from dyncomp.inductor.loops.loop_reference import Memory, OutOfBounds, run_kernel
from dyncomp.inductor.loops.loop_text import kernel_text, parse_kernel
from dyncomp.inductor.loops.loop_verify import verify_kernel
from dyncomp.symbolic.integers import ShapeEnv

F64 = dtypes.float64
I64 = dtypes.int64
AT = Index((("i", 4), ("j", 1)))


def softmax_like() -> Kernel:
    """b1[i, j] = b0[i, j] / sum over j of b0[i, j]"""
    body = (
        Stmt("v0", "load", (), ("i", "j"), ("b0", AT), F64),
        Stmt("v1", "reduce", ("v0",), ("i",), ("sum", ("j",)), F64),
        Stmt("v2", "divide", ("v0", "v1"), ("i", "j"), None, F64),
        Stmt("", "store", ("v2",), ("i", "j"), ("b1", AT), F64),
    )
    axes = (Axis("i", 3), Axis("j", 4, "reduce"))
    return Kernel("k", axes, (Buffer("b0", F64, 12, "in"), Buffer("b1", F64, 12, "out")), body)


def with_stmt(kernel: Kernel, number: int, **changes: Any) -> Kernel:
    body = list(kernel.body)
    body[number] = replace(body[number], **changes)
    return replace(kernel, body=tuple(body))


def test_a_good_kernel_passes_and_runs() -> None:
    kernel = verify_kernel(softmax_like())
    x = np.arange(1.0, 13.0)
    out = np.zeros(12)
    run_kernel(kernel, {"b0": Memory(x), "b1": Memory(out)})
    rows = x.reshape(3, 4)
    np.testing.assert_allclose(out.reshape(3, 4), rows / rows.sum(1, keepdims=True))


BAD = {
    "undefined value": (2, {"args": ("v0", "v9")}),
    "axes out of order": (2, {"axes": ("j", "i")}),
    "axes that the arguments do not have": (2, {"axes": ("i",)}),
    "wrong dtype": (2, {"dtype": I64}),
    "unknown op": (2, {"op": "frobnicate"}),
    "unknown buffer": (0, {"arg": ("b7", AT)}),
    "index over an unknown axis": (0, {"arg": ("b0", Index((("z", 1),)))}),
    "unknown reducer": (1, {"arg": ("median", ("j",))}),
    "reduction over another axis": (1, {"arg": ("sum", ("i",)), "axes": ("j",)}),
    "defined twice": (2, {"out": "v0"}),
    "store with a result": (3, {"out": "v3"}),
    "store of a value with more axes": (3, {"axes": ("i",)}),
    "read where it is not written": (3, {"arg": ("b0", Index((("i", 4), ("j", 1)), 1))}),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name: str) -> None:
    number, changes = BAD[name]
    with pytest.raises(VerifyError):
        verify_kernel(with_stmt(softmax_like(), number, **changes))


def test_wrong_mode_is_refused() -> None:
    kernel = softmax_like()
    with pytest.raises(VerifyError, match="is out, not in"):
        verify_kernel(replace(kernel, buffers=(kernel.buffers[0], replace(kernel.buffers[1], mode="in"))))


def test_reference_notices_memory_errors() -> None:
    kernel = softmax_like()
    with pytest.raises(VerifyError, match="out of its memory"):
        run_kernel(kernel, {"b0": Memory(np.zeros(11)), "b1": Memory(np.zeros(12))})
    folded = with_stmt(kernel, 3, arg=("b1", Index((("j", 1),))))
    with pytest.raises(VerifyError, match="written twice"):
        run_kernel(folded, {"b0": Memory(np.zeros(12)), "b1": Memory(np.zeros(12))})


def gather_kernel() -> Kernel:
    at = Index((("i", 1),))
    body = (
        Stmt("v0", "load", (), ("i",), ("b0", at), I64),
        Stmt("v1", "gather", ("v0",), ("i",), ("b1", Index(), (1,), (5,), (True,)), F64),
        Stmt("", "store", ("v1",), ("i",), ("b2", at), F64),
    )
    buffers = (Buffer("b0", I64, 3, "in"), Buffer("b1", F64, 5, "in"), Buffer("b2", F64, 3, "out"))
    return Kernel("k", (Axis("i", 3),), buffers, body)


def test_gather_wraps_and_raises() -> None:
    kernel = verify_kernel(gather_kernel())
    out = np.zeros(3)
    memory = {"b1": Memory(np.arange(5.0)), "b2": Memory(out)}
    run_kernel(kernel, {**memory, "b0": Memory(np.array([-1, 0, 2]))})
    assert out.tolist() == [4.0, 0.0, 2.0]
    for bad in (5, -6):
        with pytest.raises(OutOfBounds):
            run_kernel(kernel, {**memory, "b0": Memory(np.array([0, bad, 2]))})


@pytest.mark.parametrize(
    "value", [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-320, 2**63 - 1, True, 1 + 2j, -1j]
)
def test_constants_read_back(value: Any) -> None:
    stmt = Stmt("v0", "const", (), (), value, dtypes.complex128 if isinstance(value, complex) else F64)
    kernel = Kernel("k", (), (), (stmt,), ("a.py:1", "it's"))
    text = kernel_text(kernel)
    back = parse_kernel(text)
    assert kernel_text(back) == text
    assert type(back.body[0].arg) is type(value)
    assert np.array(back.body[0].arg).tobytes() == np.array(value).tobytes()
    assert back.origin == kernel.origin


@pytest.mark.parametrize("kernel", [softmax_like(), gather_kernel()], ids=["softmax", "gather"])
def test_text_round_trip(kernel: Kernel) -> None:
    assert parse_kernel(kernel_text(kernel)) == kernel


def test_text_round_trip_with_symbols() -> None:
    env = ShapeEnv()
    n = env.new_symbol(6, low=2)
    at = Index((("i", n // 2 + 1),), n * 3)
    body = (
        Stmt("v0", "symbol", (), (), n * n, I64),
        Stmt("v1", "load", (), ("i",), ("b0", at), I64),
        Stmt("v2", "add", ("v0", "v1"), ("i",), None, I64),
        Stmt("", "store", ("v2",), ("i",), ("b0", at), I64),
    )
    kernel = Kernel("k", (Axis("i", n),), (Buffer("b0", I64, n * n, "inout"),), body)
    assert parse_kernel(kernel_text(verify_kernel(kernel)), env) == kernel

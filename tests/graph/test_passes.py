"""Clean-up passes: what they remove, what they keep, and that values stay equal to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dyncomp import dtypes
from dyncomp.device import CPU
from dyncomp.dtypes import DType
from dyncomp.errors import VerifyError
from dyncomp.graph.interp import run
from dyncomp.graph.ir import ArrayType, Graph, GraphBuilder, GraphOutput, Node, Var, array_type, verify
from dyncomp.graph.passes.cse import eliminate_common_subexpressions
from dyncomp.graph.passes.dce import eliminate_dead_code
from dyncomp.graph.passes.decompose import decompose
from dyncomp.graph.passes.fold import fold_constants
from dyncomp.graph.passes.order import delay_updates
from dyncomp.graph.passes.outputs import own_outputs
from dyncomp.graph.passes.rewrite_rules import RULES, is_lossless, simplify
from dyncomp.graph.passes.simplify import Call, RuleSet, rewrite_graph
from dyncomp.graph.rewrite import Transformer, with_strides
from dyncomp.prims.table import TABLE

F8 = dtypes.float64
I8 = dtypes.int64
SPECIAL = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 5e-324, 1.7e308])


class Build(GraphBuilder):
    """A builder of functional graphs with short names for common things."""

    def __init__(self) -> None:
        super().__init__(TABLE)

    def full(self, value: Any, shape: tuple[int, ...] = (9,), dtype: DType = F8) -> Var:
        made: Var = self.emit("full", shape=shape, value=value, dtype=dtype, device=CPU)
        return made

    def spread(self, value: Any, shape: tuple[int, ...] = (9,), dtype: DType = F8) -> Var:
        """A scalar, broadcast: what frontends make of a Python number."""
        made: Var = self.emit("broadcast_in_dim", self.full(value, (), dtype), shape=shape, dims=())
        return made

    def done(self, *outputs: Var, mutations: tuple[tuple[int, Var], ...] = ()) -> Graph:
        captured = self.finish(tuple(GraphOutput(v) for v in outputs))
        return verify(replace(captured, mutations=mutations, functional=True), TABLE)


def ops(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def bits(value: np.ndarray[Any, Any]) -> bytes:
    return np.ascontiguousarray(value).tobytes()


def check_same(before: Graph, after: Graph, *inputs: np.ndarray[Any, Any]) -> Graph:
    verify(after, TABLE)
    want = run(before, TABLE, *[a.copy(order="K") for a in inputs])
    got = run(after, TABLE, *[a.copy(order="K") for a in inputs])
    for a, b in zip(want, got, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.strides == b.strides
        nans = np.isnan(a) if a.dtype.kind in "fc" else np.zeros(a.shape, bool)
        assert (nans == (np.isnan(b) if b.dtype.kind in "fc" else nans)).all()
        assert bits(a[~nans]) == bits(b[~nans])
    return after


# -- dce, cse ---------------------------------------------------------------------------------
def test_dce_removes_what_nothing_uses() -> None:
    b = Build()
    x = b.add_input(array_type(F8, (9,)))
    b.emit("negative", b.emit("square", x))
    kept = b.emit("abs", x)
    assert ops(eliminate_dead_code(b.done(kept), TABLE)) == ["abs"]
    b.emit("sqrt", kept)
    assert ops(eliminate_dead_code(b.done(mutations=((0, kept),)), TABLE)) == ["abs"]


def test_dce_keeps_what_may_raise() -> None:
    b = Build()
    x = b.add_input(array_type(F8, (9,)))
    i = b.add_input(array_type(I8, (2,)))
    b.emit("index", x, i, dims=(0,), position=0)
    graph = eliminate_dead_code(b.done(x), TABLE)
    with pytest.raises(IndexError):
        run(graph, TABLE, np.zeros(9), np.array([0, 9]))


def test_cse() -> None:
    b = Build()
    x = b.add_input(array_type(F8, (9,)))
    one = b.emit("add", b.emit("exp", x), b.emit("exp", x))
    two = b.emit("add", b.emit("exp", x), b.emit("exp", x))
    graph = b.done(b.emit("multiply", one, two))
    after = check_same(graph, eliminate_common_subexpressions(graph, TABLE), SPECIAL)
    assert ops(after) == ["exp", "add", "multiply"]


@pytest.mark.parametrize(("one", "two"), [(0.0, -0.0), (1, True), (1, 1.0)])
def test_cse_tells_equal_constants_apart(one: Any, two: Any) -> None:
    b = Build()
    graph = b.done(b.full(one), b.full(two))
    assert len(eliminate_common_subexpressions(graph, TABLE).nodes) == 2


# -- simplify ---------------------------------------------------------------------------------
def unary_case(make: Callable[[Build, Var], Var], dtype: DType = F8) -> tuple[Graph, np.ndarray[Any, Any]]:
    b = Build()
    x = b.add_input(array_type(dtype, (9,)))
    # negative afterwards, so that the simplified value is not the output itself
    after = b.emit("abs", make(b, x)) if not dtype.is_bool else b.emit("copy", make(b, x))
    values = SPECIAL if dtype.is_inexact else np.array([0, 1, 2, -1, -128, 127, 5, 6, 7])
    with np.errstate(all="ignore"):
        return b.done(after), values.astype(dtype.numpy)


EXACT: dict[str, tuple[Callable[[Build, Var], Any], list[str]]] = {
    "x * 1": (lambda b, x: b.emit("multiply", x, b.spread(1.0)), ["abs"]),
    "1 * x": (lambda b, x: b.emit("multiply", b.spread(1.0), x), ["abs"]),
    "x / 1": (lambda b, x: b.emit("divide", x, b.spread(1.0)), ["abs"]),
    "x - 0": (lambda b, x: b.emit("subtract", x, b.spread(0.0)), ["abs"]),
    "x + -0": (lambda b, x: b.emit("add", x, b.spread(-0.0)), ["abs"]),
    "x ** 1": (lambda b, x: b.emit("power", x, b.spread(1.0)), ["abs"]),
    "x ** 2": (lambda b, x: b.emit("power", x, b.spread(2.0)), ["multiply", "abs"]),
    "- -x": (lambda b, x: b.emit("negative", b.emit("negative", x)), ["abs"]),
    "abs(abs(x))": (lambda b, x: b.emit("abs", x), ["abs"]),
    "abs(-x)": (lambda b, x: b.emit("negative", x), ["abs"]),
    "-x * -x": (
        lambda b, x: b.emit("multiply", b.emit("negative", x), b.emit("negative", x)),
        ["multiply", "abs"],
    ),
    "-x * 3 * -x": (
        lambda b, x: b.emit(
            "multiply", b.emit("multiply", b.emit("negative", x), b.spread(3.0)), b.emit("negative", x)
        ),
        ["full", "broadcast_in_dim", "multiply", "multiply", "abs"],
    ),
    "max(x, x)": (lambda b, x: b.emit("maximum", x, x), ["abs"]),
    "where(c, x, x)": (lambda b, x: b.emit("where", b.emit("isnan", x), x, x), ["abs"]),
    "where(True, x, y)": (
        lambda b, x: b.emit("where", b.spread(True, dtype=dtypes.bool_), x, b.emit("exp", x)),
        ["abs"],
    ),
    "where(not c, x, y)": (
        lambda b, x: b.emit("where", b.emit("logical_not", b.emit("isnan", x)), x, b.spread(2.0)),
        ["isnan", "full", "broadcast_in_dim", "where", "abs"],
    ),
    "x[:]": (lambda b, x: b.emit("strided_slice", x, starts=(0,), sizes=(9,), steps=(1,)), ["abs"]),
    "x[1:][::2]": (
        lambda b, x: b.emit(
            "strided_slice",
            b.emit("strided_slice", x, starts=(8,), sizes=(8,), steps=(-1,)),
            starts=(1,),
            sizes=(4,),
            steps=(2,),
        ),
        ["strided_slice", "abs"],
    ),
    "x.reshape(3, 3).reshape(9)": (
        lambda b, x: b.emit("reshape", b.emit("reshape", x, shape=(3, 3)), shape=(9,)),
        ["abs"],
    ),
    "x.T.T": (
        lambda b, x: b.emit(
            "transpose",
            b.emit("transpose", b.emit("reshape", x, shape=(3, 3)), perm=(1, 0)),
            perm=(1, 0),
        ),
        ["reshape", "abs"],
    ),
    "copy": (lambda b, x: b.emit("copy", b.emit("contiguous", x)), ["abs"]),
    "to float64": (lambda b, x: b.emit("convert", x, dtype=F8), ["abs"]),
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_rules(name: str) -> None:
    make, expected = EXACT[name]
    graph, values = unary_case(make)
    with np.errstate(all="ignore"):
        after = check_same(graph, eliminate_dead_code(simplify(graph, TABLE), TABLE), values)
    assert ops(after) == expected


INEXACT: dict[str, Callable[[Build, Var], Any]] = {
    "x + 0": lambda b, x: b.emit("add", x, b.spread(0.0)),
    "x - -0": lambda b, x: b.emit("subtract", x, b.spread(-0.0)),
    "x * 0": lambda b, x: b.emit("multiply", x, b.spread(0.0)),
    "x ** 0.5": lambda b, x: b.emit("power", x, b.spread(0.5)),
    "x / 3": lambda b, x: b.emit("divide", x, b.spread(3.0)),
    "x - x": lambda b, x: b.emit("subtract", x, x),
}


@pytest.mark.parametrize("name", INEXACT)
def test_tempting_rules_that_are_not_exact(name: str) -> None:
    graph, values = unary_case(INEXACT[name])
    with np.errstate(all="ignore"):
        after = check_same(graph, simplify(graph, TABLE), values)
    assert ops(after) == ops(graph)


@pytest.mark.parametrize("number", [2.0, 0.5, -4.0, 2.0**90])
def test_division_by_a_power_of_two(number: float) -> None:
    graph, values = unary_case(lambda b, x: b.emit("divide", x, b.spread(number)))
    after = check_same(graph, simplify(graph, TABLE), values)
    assert "divide" not in ops(after)


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.int64])
def test_integer_rules(dtype: DType) -> None:
    def make(b: Build, x: Var) -> Var:
        one, nothing = b.spread(1, dtype=dtype), b.spread(0, dtype=dtype)
        y = b.emit("add", b.emit("multiply", x, one), nothing)
        made: Var = b.emit("invert", b.emit("invert", b.emit("subtract", y, nothing)))
        return made

    graph, values = unary_case(make, dtype)
    after = eliminate_dead_code(simplify(graph, TABLE), TABLE)
    assert ops(check_same(graph, after, values)) == ["abs"]


def test_layout_of_results_is_kept() -> None:
    """``x * 1`` of a sliced ``x`` is dense: simplified to a copy, not to ``x``."""
    b = Build()
    x = b.add_input(ArrayType(F8, (3, 4), (16, 2)))
    y = b.emit("multiply", x, b.spread(1.0, (3, 4)))
    graph = b.done(b.emit("as_strided", y, shape=(12,), strides=(1,), offset=0))
    data = np.arange(48.0).reshape(3, 16)[:, ::2][:, :4]
    after = verify(simplify(graph, TABLE), TABLE)
    np.testing.assert_array_equal(run(graph, TABLE, data)[0], run(after, TABLE, data)[0])


CHAINS = [
    (source, middle, target)
    for source in (dtypes.bool_, dtypes.int8, dtypes.uint16, dtypes.int32, dtypes.float32, dtypes.float64)
    for middle in (dtypes.int8, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.complex128)
    for target in (dtypes.int8, dtypes.int32, dtypes.float32, dtypes.float64, dtypes.complex64)
    if not (middle.is_complex and not target.is_complex)
]


@pytest.mark.parametrize(("source", "middle", "target"), CHAINS, ids=lambda d: d.name)
def test_conversion_chains(source: DType, middle: DType, target: DType) -> None:
    b = Build()
    x = b.add_input(array_type(source, (6,)))
    graph = b.done(b.emit("convert", b.emit("convert", x, dtype=middle), dtype=target))
    values = np.array([0, 1, 100, 3, 127, 77]).astype(source.numpy)
    if source.kind == "int":
        values = np.array([0, -1, 2**31 - 1, -(2**31), 127, -128]).astype(source.numpy)
    with np.errstate(all="ignore"):
        check_same(graph, simplify(graph, TABLE), values)


def test_lossless_conversions() -> None:
    assert is_lossless(dtypes.int32, dtypes.float64)
    assert not is_lossless(dtypes.int64, dtypes.float64)
    assert not is_lossless(dtypes.int32, dtypes.float32)
    assert not is_lossless(dtypes.int8, dtypes.uint64)
    assert not is_lossless(dtypes.float16, dtypes.bfloat16)
    assert is_lossless(dtypes.float32, dtypes.complex64)
    assert not is_lossless(dtypes.float64, dtypes.complex64)


def test_second_write_to_a_window_voids_the_first() -> None:
    b = Build()
    x = b.add_input(array_type(F8, (9,)))
    window = {"starts": (2,), "sizes": (4,), "steps": (1,)}
    one = b.emit("update_slice", x, b.full(1.0, (4,)), **window)
    two = b.emit("update_slice", one, b.full(2.0, (4,)), **window)
    graph = b.done(two)
    after = check_same(graph, eliminate_dead_code(simplify(graph, TABLE), TABLE), SPECIAL)
    assert ops(after) == ["full", "update_slice"]


def test_writing_an_input_back_unchanged_is_dropped() -> None:
    b = Build()
    x = b.add_input(array_type(F8, (9,)))
    y = b.emit("multiply", x, b.spread(1.0))
    assert simplify(b.done(mutations=((0, y),)), TABLE).mutations == ()


def test_a_cycle_of_rules_is_named() -> None:
    rules = RuleSet()

    @rules.on("add")
    def swap_one(rewrite: Any, inputs: Any, params: Any) -> Call:
        return Call("subtract", inputs, params)

    @rules.on("subtract")
    def swap_two(rewrite: Any, inputs: Any, params: Any) -> Call:
        return Call("add", inputs, params)

    b = Build()
    x = b.add_input(array_type(F8, (9,)))
    with pytest.raises(VerifyError, match="swap_one, swap_two"):
        rewrite_graph(b.done(b.emit("add", x, x)), TABLE, rules)


def test_every_rule_is_for_an_op_that_exists() -> None:
    assert set(RULES.by_op) <= set(TABLE)


# -- fold -------------------------------------------------------------------------------------
def test_constants_fold() -> None:
    b = Build()
    x = b.add_input(array_type(F8, (9,)))
    two = b.emit("sqrt", b.full(4.0, ()))
    wide = b.emit("broadcast_in_dim", b.emit("convert", two, dtype=F8), shape=(9,), dims=())
    graph = b.done(b.emit("multiply", x, wide))
    after = check_same(graph, eliminate_dead_code(fold_constants(graph, TABLE), TABLE), SPECIAL)
    assert ops(after) == ["full", "broadcast_in_dim", "multiply"]
    assert after.nodes[0].kwargs["value"] == 2.0


def test_folding_keeps_signed_zeros_and_nans() -> None:
    b = Build()
    zero = b.emit("negative", b.full(0.0, (3,)))
    nan = b.emit("sqrt", b.full(-1.0, (3,)))
    graph = b.done(zero, nan)
    after = fold_constants(graph, TABLE)
    with np.errstate(all="ignore"):
        got = run(after, TABLE)
    assert np.signbit(got[0]).all() and np.isnan(got[1]).all()


def test_large_constants_are_not_materialised() -> None:
    b = Build()
    graph = b.done(b.emit("exp", b.full(1.0, (1000,))))
    assert ops(fold_constants(graph, TABLE)) == ["full", "full"]


def test_functions_of_uniform_values_fold_through_views() -> None:
    b = Build()
    x = b.add_input(array_type(F8, (9,)))
    half = b.emit("reciprocal", b.spread(2.0))
    third = b.emit("divide", half, b.emit("negative", b.spread(1.5)))
    kept = b.emit("iota", shape=(9,), axis=0, dtype=F8, device=CPU)
    graph = b.done(b.emit("multiply", b.emit("add", x, third), b.emit("sqrt", kept)))
    after = check_same(graph, eliminate_dead_code(fold_constants(graph, TABLE), TABLE), SPECIAL)
    assert ops(after) == ["full", "iota", "add", "sqrt", "multiply"]


# -- decompose --------------------------------------------------------------------------------
COMPOSITES = [name for name, row in TABLE.items() if row.decomp is not None]


def test_composites_become_prims_of_equal_value() -> None:
    assert "softmax" in COMPOSITES
    b = Build()
    x = b.add_input(array_type(F8, (4, 5)))
    graph = b.done(b.emit("softmax", x, axes=(1,)))
    after = verify(decompose(graph, TABLE), TABLE)
    assert all(TABLE[node.op].is_prim for node in after.nodes)
    data = np.random.default_rng(0).standard_normal((4, 5))
    np.testing.assert_allclose(run(graph, TABLE, data)[0], run(after, TABLE, data)[0], rtol=1e-14)


def test_equal_composites_are_decomposed_once() -> None:
    calls = 0
    row = TABLE["softmax"]

    def counting(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        return row.decomp(*args, **kwargs)  # type: ignore[misc]

    table = {**TABLE, "softmax": replace(row, decomp=counting)}
    b = Build()
    x = b.add_input(array_type(F8, (4, 5)))
    y = x
    for _ in range(6):
        y = b.emit("softmax", y, axes=(1,))
    graph = b.done(y)
    after = verify(decompose(graph, table), table)
    assert calls == 1
    data = np.random.default_rng(0).standard_normal((4, 5))
    np.testing.assert_allclose(run(graph, TABLE, data)[0], run(after, TABLE, data)[0], rtol=1e-13)


# -- own, transformer -------------------------------------------------------------------------
def test_writes_come_after_what_may_raise() -> None:
    g = Build()
    x, m = g.add_input(array_type(F8, (9,))), g.add_input(array_type(F8, (2, 2)))
    i, v = g.add_input(array_type(I8, (3,))), g.add_input(array_type(F8, (3,)))
    first = g.emit("index_put", x, v, i, dims=(0,), position=0, combine="set")
    inverse = g.emit("inv", m)
    second = g.emit("index_put", first, v, g.emit("add", i, i), dims=(0,), position=0, combine="add")
    graph = g.done(inverse, mutations=((0, second),))
    assert ops(delay_updates(graph, TABLE)) == ["add", "inv", "index_put", "index_put"]


def test_writes_that_are_read_stay() -> None:
    g = Build()
    x = g.add_input(array_type(F8, (9,)))
    i, v = g.add_input(array_type(I8, (3,))), g.add_input(array_type(F8, (3,)))
    first = g.emit("index_put", x, v, i, dims=(0,), position=0, combine="set")
    total = g.emit("add", first, first)
    graph = g.done(g.emit("index", total, i, dims=(0,), position=0), mutations=((0, first),))
    assert ops(delay_updates(graph, TABLE)) == ["index_put", "add", "index"]


def test_outputs_own_their_memory() -> None:
    b = Build()
    x = b.add_input(array_type(F8, (9,)))
    y = b.add_input(array_type(F8, (9,)))
    z = b.emit("exp", x)
    graph = b.done(z, z, x, mutations=((0, y), (1, x)))
    after = verify(own_outputs(graph, TABLE), TABLE)
    names = [out.var.name for out in after.outputs]
    assert len(set(names) | {"in0", "in1"}) == 5
    assert {var.name for _, var in after.mutations}.isdisjoint({"in0", "in1", *names})
    assert own_outputs(after, TABLE) is after


def test_transformer_replaces_ops() -> None:
    class Negated(Transformer):
        def node(self, node: Node, inputs: tuple[Var, ...]) -> Any:
            if node.op != "exp":
                return self.keep(node, inputs)
            return self.builder.emit("exp", self.builder.emit("negative", *inputs))

    b = Build()
    x = b.add_input(array_type(F8, (9,)))
    graph = b.done(b.emit("sqrt", b.emit("exp", x)))
    after = verify(Negated(graph, TABLE).run(), TABLE)
    assert ops(after) == ["negative", "exp", "sqrt"]


def test_transformer_refuses_another_type() -> None:
    class Wrong(Transformer):
        def node(self, node: Node, inputs: tuple[Var, ...]) -> Any:
            return self.builder.emit("convert", inputs[0], dtype=dtypes.float32)

    b = Build()
    x = b.add_input(array_type(F8, (9,)))
    with pytest.raises(VerifyError, match="float32"):
        Wrong(b.done(b.emit("exp", x)), TABLE).run()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
def test_with_strides(order: tuple[int, ...]) -> None:
    b = Build()
    x = b.add_input(array_type(F8, (2, 3, 4)))
    whole = np.empty([(2, 3, 4)[a] for a in order]).transpose(np.argsort(order))
    strides = tuple(s // 8 for s in whole.strides)
    y = with_strides(b, x, strides)
    assert y.type.strides == strides
    data = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(run(b.done(y), TABLE, data)[0], data)

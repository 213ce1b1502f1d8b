"""Recompilation: what changes is generalised before the limit is reached; past it a warning says what to
do."""

from __future__ import annotations

import dataclasses
import logging

import numpy as np
import pytest

import dyncomp
from dyncomp.hook import _hook
from tests.capture.programs import vec


@pytest.fixture(autouse=True)
def fresh():
    dyncomp.reset()


def compile_eager(function, **options):
    return dyncomp.compile(function, backend="eager", options=options)


@dataclasses.dataclass
class Box:
    value: object


class Slotted:
    __slots__ = ("value",)


SCALE = 1.0


def from_argument(x, v):
    return x * v


def from_attribute(x, box):
    return x * box.value


def from_list(x, items):
    return x * items[0]


def from_dict(x, table):
    return x * table["k"]


def from_nested(x, boxes):
    return x * boxes["a"][0].value


def from_global(x, v):
    return x * SCALE


def from_default(x, v=None, k=3):
    return x * k


def from_keyword(x, *args, **kwargs):
    return x * (args[0] if args else kwargs["k"])


def via_callee(x, box):
    return from_attribute(x, box) + 1


PLACES = {
    "argument": (from_argument, lambda v: ((v,), {})),
    "attribute": (from_attribute, lambda v: ((Box(v),), {})),
    "slot": (from_attribute, lambda v: ((slotted(v),), {})),
    "list": (from_list, lambda v: (([v],), {})),
    "tuple": (from_list, lambda v: (((v,),), {})),
    "dict": (from_dict, lambda v: (({"k": v},), {})),
    "nested": (from_nested, lambda v: (({"a": [Box(v)]},), {})),
    "*args": (from_keyword, lambda v: ((v,), {})),
    "**kwargs": (from_keyword, lambda v: ((), {"k": v})),
    "callee": (via_callee, lambda v: ((Box(v),), {})),
}


def slotted(v):
    made = Slotted()
    made.value = v
    return made


def values(kind):
    makers = {"int": lambda n: n + 2, "float": lambda n: n + 0.5, "size": lambda n: np.arange(float(n + 3))}
    return [makers[kind](n) for n in range(12)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["int", "float", "size"])
def test_what_changes_is_generalised_wherever_it_is_read(place, kind):
    function, arguments = PLACES[place]
    compiled = compile_eager(function)
    for value in values(kind):
        args, kwargs = arguments(value)
        x = np.ones(value.shape) if kind == "size" else vec()
        assert np.array_equal(compiled(x, *args, **kwargs), function(x, *args, **kwargs))
    assert len(compiled.config.records.entries) == 2
    assert dyncomp.stats()["limited"] == 0


@pytest.mark.parametrize("kind", ["int", "float", "size"])
def test_globals_and_cells_are_generalised(kind, monkeypatch):
    cell = None

    def f(x):
        return x * SCALE + cell

    compiled = compile_eager(f)
    for value in values(kind):
        monkeypatch.setitem(globals(), "SCALE", value)
        cell = value
        x = np.ones(value.shape) if kind == "size" else vec()
        assert np.array_equal(compiled(x), f(x))
    assert len(compiled.config.records.entries) <= 3


def test_int_and_float_take_turns():
    compiled = compile_eager(from_argument)
    for n in range(20):
        v = n if n % 2 else n + 0.5
        assert np.array_equal(compiled(vec(), v), vec() * v)
    assert len(compiled.config.records.entries) <= 4


# -- the limit -----------------------------------------------------------------------------------------
def per_key(x, key):
    return x * {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6}[key]


def test_one_warning_names_the_guard_the_last_values_and_what_to_do(caplog):
    compiled = compile_eager(per_key, recompile_limit=2)
    with caplog.at_level(logging.WARNING, logger="dyncomp.capture"):
        for _ in range(3):
            for key in "abcdef":
                assert np.array_equal(compiled(vec(), key), per_key(vec(), key))
    (record,) = caplog.records
    text = record.getMessage()
    assert f"per_key at {__file__}:{per_key.__code__.co_firstlineno}" in text
    assert "recompilation limit (2)" in text and "options['recompile_limit']" in text
    assert "key == 'c' (str)" in text and "3 of 3 times" in text
    assert f"assumed at: {__file__}:{per_key.__code__.co_firstlineno + 1}" in text
    assert "the last two values: 'c' (str) and then 'd' (str)" in text
    assert "what to do: each value of key gets compiled code of its own" in text
    assert dyncomp.stats()["limited"] == 1
    ((name, _, reason),) = compiled.config.records.skipped
    assert name == "per_key" and "recompilation limit" in reason
    assert len(compiled.config.records.entries) == 3


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda n: Box(tuple(range(n + 2))), "has another length each time"),
        (lambda n: Box(type(f"T{n}", (), {})), "is another object each time"),
        (lambda n: Box(np.zeros((2,) * n)), "has another dtype, rank or shape"),
        (lambda n: Box({f"k{n}": 1}), "has other keys each time"),
        (lambda n: type(f"T{n}", (), {"value": 3})(), "of another type each time"),
    ],
)
def test_advice_by_kind_of_guard(make, advice, caplog):
    def f(x, box):
        value = box.value
        if isinstance(value, type):
            return x * len(value.__name__)
        if isinstance(value, np.ndarray):
            return x * value.sum()
        if isinstance(value, dict):
            return x * len(list(value))
        return x * (len(value) if isinstance(value, tuple) else value)

    compiled = compile_eager(f, recompile_limit=2)
    with caplog.at_level(logging.WARNING, logger="dyncomp.capture"):
        for n in range(6):
            box = make(n)
            assert np.array_equal(compiled(vec(), box), f(vec(), box))
    assert advice in caplog.text


def test_the_limit_over_several_configurations(caplog):
    def own(x, key):
        return per_key(x, key)

    kept = []
    with caplog.at_level(logging.WARNING, logger="dyncomp.capture"):
        for _ in range(3):
            compiled = compile_eager(own, accumulated_recompile_limit=5)
            kept.append(compiled)
            for key in "abc":
                assert np.array_equal(compiled(vec(), key), own(vec(), key))
    assert _hook.num_entries(own.__code__) == 5
    assert "options['accumulated_recompile_limit']" in caplog.text
    assert len(caplog.records) == 2  # one for each configuration that reached it


def test_limited_functions_show_in_explain():
    def f(x):
        return [per_key(x + 1, key) for key in ("a", "b")]

    report = dyncomp.explain(f, backend="eager")(vec())
    assert "recompilation limit" not in report.details()

    def many(x):
        out = []
        for key in "abcdef" * 3:
            dyncomp.graph_break()
            out.append(per_key(x, key))
        return out

    report = dyncomp.explain(many, backend="eager", options={"recompile_limit": 2})(vec())
    text = report.details()
    assert "recompilation limit (2)" in text
    assert "the guard that kept failing" in text


def test_what_frozen_functions_have_compiled_is_still_used():
    compiled = compile_eager(per_key, recompile_limit=2)
    for key in "abcdef":
        compiled(vec(), key)
    hits = dyncomp.stats()["cache_hits"]
    compiled(vec(), "a")
    compiled(vec(), "b")
    assert dyncomp.stats()["cache_hits"] == hits + 2


def test_reset_lifts_the_limit():
    compiled = compile_eager(per_key, recompile_limit=1)
    for key in "abcd":
        compiled(vec(), key)
    dyncomp.reset()
    compiled(vec(), "d")
    assert len(compiled.config.records.entries) == 1


def many_branches(x):
    total = 0.0
    for k in range(6):
        if x[k] > 0:
            total = total + x[k]
        elif x[k] < -1:
            total = total - 1
    return x * total


def test_the_limit_on_all_pieces_of_a_function(caplog):
    compiled = compile_eager(many_branches, capture_limit=6)
    rng = np.random.default_rng(0)
    before = dyncomp.stats()["frames_captured"]
    with caplog.at_level(logging.WARNING, "dyncomp.capture"):
        for _ in range(40):
            x = rng.normal(size=6)
            np.testing.assert_array_equal(compiled(x), many_branches(x))
    assert dyncomp.stats()["frames_captured"] - before <= 6
    text = caplog.text
    assert "6 pieces of the function are compiled, the limit" in text
    assert "options['capture_limit']" in text
    assert len(caplog.records) == 1
    report = dyncomp.explain(many_branches, backend="eager", options={"capture_limit": 1})(x)
    assert "options['capture_limit']" in report.details()


# -- branches on numbers that change ---------------------------------------------------------------
def scaled(x, box):
    return x * box.value if box.value != 0 else x - 1


def stepwise(x, v):
    for k in range(20):
        if v < k / 20:
            return x * (v + k)
    return x


def counted_down(x, v):
    total = x
    while v > 0.5:
        total, v = total + v, v - 1.0
    return total


def test_each_outcome_of_a_comparison_has_an_entry():
    fast, x = compile_eager(scaled), vec()
    for value in (0.5, 0.25, 0.0, -0.5, float("nan"), 0.0, -0.0, 0.125):
        np.testing.assert_array_equal(fast(x, Box(value)), scaled(x, Box(value)))
    stats = dyncomp.stats()
    assert stats["breaks"] == {} and stats["graphs"] == 3  # the constant 0.5, zero, others


def test_many_outcomes_break_instead():
    fast, x = compile_eager(stepwise), vec()
    for k in range(40):
        v = (k * 7 % 40) / 40
        np.testing.assert_array_equal(fast(x, v), stepwise(x, v))
    assert dyncomp.stats()["limited"] == 0 and dyncomp.stats()["breaks"]["data-dependent-branch"]


@pytest.mark.parametrize("v", [0.25, 4.75, 80.5])
def test_variables_of_loops_take_their_branches_in_turn(v):
    fast, x = compile_eager(counted_down), vec()
    for value in (v, v + 1.5, v / 2):
        np.testing.assert_allclose(fast(x, value), counted_down(x, value), rtol=1e-12)

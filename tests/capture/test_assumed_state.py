"""What capture takes from the state around a call: each is guarded, or it is asked at run time."""

from __future__ import annotations

import contextlib
import contextvars
import decimal
import os
import sys
import types

import numpy as np
import pytest

import dyncomp
from dyncomp.errors import GraphBreakError


def compile_eager(function, **settings):
    return dyncomp.compile(function, backend="eager", options={"debug_verify": True}, **settings)


# -- regions --------------------------------------------------------------------------------------------
def breaking(x):
    print(end="")
    return x + 1


def whole(x):
    return x + 1


def test_an_entry_with_a_break_is_not_used_where_breaks_are_errors():
    compiled = compile_eager(breaking)
    x = np.arange(3.0)
    assert np.array_equal(compiled(x), x + 1)
    for _ in range(12):  # more often than the recompilation limit
        with dyncomp.error_on_graph_break(), pytest.raises(GraphBreakError):
            compiled(x)
    with dyncomp.error_on_graph_break(), dyncomp.error_on_graph_break(False):
        assert np.array_equal(compiled(x), x + 1)
    assert np.array_equal(compiled(x), x + 1)
    assert not any("limit" in str(skip) for skip in compiled.config.records.skipped)


def test_an_entry_made_where_breaks_are_allowed_is_not_used_under_fullgraph():
    compiled = compile_eager(breaking, fullgraph=True)
    x = np.arange(3.0)
    with dyncomp.error_on_graph_break(False):
        assert np.array_equal(compiled(x), x + 1)
    with pytest.raises(GraphBreakError):
        compiled(x)
    with dyncomp.error_on_graph_break(False):
        assert np.array_equal(compiled(x), x + 1)


def test_an_entry_without_breaks_serves_everywhere():
    compiled = compile_eager(whole)
    x = np.arange(3.0)
    compiled(x)
    with dyncomp.error_on_graph_break():
        assert np.array_equal(compiled(x), x + 1)
    assert len(compiled.config.records.entries) == 1


def test_refused_code_in_a_region():
    def refused(x):
        with open(os.devnull) as file:
            return x + len(file.read())

    compiled = compile_eager(refused)
    x = np.arange(3.0)
    assert np.array_equal(compiled(x), x)
    with dyncomp.error_on_graph_break(), pytest.raises(GraphBreakError):
        compiled(x)


# -- overlap ----------------------------------------------------------------------------------------------
def shift(x, y):
    x[:] = y + 1
    return x.sum()


@pytest.mark.parametrize("overlapping_first", [True, False])
def test_overlap(overlapping_first):
    compiled = compile_eager(shift)
    for number in range(4):
        made = []
        for function in (shift, compiled):
            base = np.arange(8.0)
            overlaps = (number % 2 == 0) == overlapping_first
            result = function(base[1:5], base[:4] if overlaps else np.arange(4.0))
            made.append((result, base.tolist()))
        assert made[0] == made[1]
    graphs = [e for e in compiled.config.records.entries if e.graph is not None]
    assert len(graphs) == 1  # arrays that are apart are captured, whatever came first
    assert len(compiled.config.records.skipped) == 1


# -- objects and modules ------------------------------------------------------------------------------------
class Plain:
    scale = 3


class Derived(Plain):
    pass


OBJECT = Derived()
MODULE = types.ModuleType("a_module_of_the_program")
MODULE.__spec__ = None
MODULE.value = 3
VARIABLE = contextvars.ContextVar("variable", default=1)


@contextlib.contextmanager
def attribute(owner, name, value):
    had = name in vars(owner) or name == "__bases__"
    old = getattr(owner, name, None)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if had:
            setattr(owner, name, old)
        else:
            delattr(owner, name)


@contextlib.contextmanager
def variable(value):
    token = VARIABLE.set(value)
    try:
        yield
    finally:
        VARIABLE.reset(token)


@contextlib.contextmanager
def environment(value):
    os.environ["DYNCOMP_OF_A_TEST"] = value
    try:
        yield
    finally:
        del os.environ["DYNCOMP_OF_A_TEST"]


def imported_member(x):
    import a_module_of_the_program

    return x + a_module_of_the_program.value


def imported_name(x):
    from a_module_of_the_program import value

    return x + value


STATES = {
    "imported_member": (imported_member, lambda: attribute(MODULE, "value", 9)),
    "imported_name": (imported_name, lambda: attribute(MODULE, "value", 9)),
    "class_lacks": (lambda x: x + hasattr(Derived, "cache"), lambda: attribute(Plain, "cache", {})),
    "hook": (
        lambda x: x + getattr(OBJECT, "nothing", 5),
        lambda: attribute(Plain, "__getattr__", lambda self, name: 9),
    ),
    "length": (lambda x: x + (1 if OBJECT else 2), lambda: attribute(Plain, "__len__", lambda self: 0)),
    "resolution_order": (
        lambda x: x + len(Derived.__mro__),
        lambda: attribute(Derived, "__bases__", (Three,)),
    ),
    "class_member": (lambda x: x * OBJECT.scale, lambda: attribute(Derived, "scale", 7)),
    "error_modes": (lambda x: x / 0, lambda: np.errstate(all="raise")),
    "asked_error_modes": (lambda x: (x + 1, np.geterr()["over"]), lambda: np.errstate(over="ignore")),
    "print_options": (lambda x: (x + 1, str(x / 3)), lambda: np.printoptions(precision=2)),
    "asked_print_options": (
        lambda x: x + np.get_printoptions()["precision"],
        lambda: np.printoptions(precision=2),
    ),
    "context_variable": (lambda x: x + VARIABLE.get(), lambda: variable(7)),
    "environment": (lambda x: x + len(os.environ.get("DYNCOMP_OF_A_TEST", "abc")), lambda: environment("")),
    "decimal": (lambda x: x + float(decimal.Decimal(1) / 3), lambda: decimal.localcontext(prec=3)),
    "digits_of_text": (lambda x: x + len(str(VAST)), lambda: digits(0)),
    "digits_formatted": (lambda x: x + len(f"{VAST:,}"), lambda: digits(0)),
    "digits_in_a_list": (lambda x: x + len("%s" % [VAST]), lambda: digits(0)),
    "digits_read": (lambda x: x + int("7" * 5000) % 11, lambda: digits(0)),
    "handled": (lambda x: x + (sys.exc_info()[0] is None), lambda: handling()),
}


class Three(Plain):
    pass


VAST = 10**5000


@contextlib.contextmanager
def digits(limit):
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(limit)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(before)


@contextlib.contextmanager
def handling():
    try:
        raise ValueError
    except ValueError:
        yield


def outcome(function, x):
    try:
        found = function(x)
    except Exception as error:
        return type(error), str(error)
    return [
        f.tolist() if isinstance(f, np.ndarray) else f for f in (found if type(found) is tuple else (found,))
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("name", STATES)
def test_state(name, first, monkeypatch):
    monkeypatch.setitem(sys.modules, MODULE.__name__, MODULE)
    function, state = STATES[name]
    compiled = compile_eager(function)
    x = np.arange(1.0, 4.0)
    for inside in (first, not first, first, not first):
        with state() if inside else contextlib.nullcontext():
            assert outcome(compiled, x) == outcome(function, x)


# -- torch --------------------------------------------------------------------------------------------------
def torch_states():
    torch = pytest.importorskip("torch")

    @contextlib.contextmanager
    def double():
        torch.set_default_dtype(torch.float64)
        try:
            yield
        finally:
            torch.set_default_dtype(torch.float32)

    return {
        "device": (lambda x: torch.ones(3) + 1, lambda: torch.device("meta")),
        "dtype": (lambda x: torch.ones(3) + 1, double),
        "grad": (lambda x: x + torch.is_grad_enabled(), torch.no_grad),
        "inference": (lambda x: x + torch.is_inference_mode_enabled(), torch.inference_mode),
        "autocast": (lambda x: x[:, None] @ x[None], lambda: torch.autocast("cpu", dtype=torch.bfloat16)),
    }


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("name", ["device", "dtype", "grad", "inference", "autocast"])
def test_torch_state(name, first):
    function, state = torch_states()[name]
    import torch

    compiled = compile_eager(function)
    x = torch.arange(4.0)
    for inside in (first, not first, first, not first):
        with state() if inside else contextlib.nullcontext():
            expected, found = function(x), compiled(x)
            assert (expected.dtype, expected.device) == (found.dtype, found.device)
            assert expected.is_inference() == found.is_inference()
            assert expected.device.type == "meta" or torch.equal(expected, found)

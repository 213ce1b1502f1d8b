"""Stances: what compiled functions do when they are called."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import dyncomp
from dyncomp.capture.policy.stance import STANCES
from dyncomp.errors import RecompileError
from dyncomp.hook import _hook
from tests.capture.programs import vec


@pytest.fixture(autouse=True)
def default_stance():
    yield
    assert dyncomp.current_stance() == "default"


def scale(x, k):
    return x * k


def traced(x):
    """1 where it is captured, 0 as plain Python."""
    return x * 0 + int(dyncomp.is_compiling())


def breaking(x):
    y = traced(x)
    dyncomp.graph_break()
    return y + traced(x)


def compile_eager(function, **settings):
    return dyncomp.compile(function, backend="eager", **settings)


def test_force_eager_neither_uses_nor_makes_code():
    ready, fresh = compile_eager(breaking), compile_eager(breaking)
    assert ready(vec())[0] == 2
    with dyncomp.set_stance("force_eager"):
        assert ready(vec())[0] == 0
        assert fresh(vec())[0] == 0
    assert not fresh.config.records.entries
    assert ready(vec())[0] == 2


def test_force_eager_in_the_middle_reaches_continuations():
    def switching(x):
        y = traced(x)
        guard = dyncomp.set_stance("force_eager")
        guard.__enter__()
        z = traced(x)
        guard.__exit__(None, None, None)
        return y, z, traced(x)

    compiled = compile_eager(switching)
    y, z, after = compiled(vec())
    assert (y[0], z[0]) == (1, 0)
    assert np.array_equal(after * 0, vec() * 0)


def test_eager_on_recompile():
    compiled = compile_eager(traced)
    with dyncomp.set_stance("eager_on_recompile"):
        assert compiled(vec(3))[0] == 1  # a first compilation
        assert compiled(vec(4))[0] == 0
        assert compiled(vec(3))[0] == 1
    assert len(compiled.config.records.entries) == 1
    assert compiled(vec(4))[0] == 1


def test_fail_on_recompile_names_the_guard_both_values_and_the_line():
    compiled = compile_eager(scale)
    with dyncomp.set_stance("fail_on_recompile"):
        compiled(vec(3), 2.0)
        compiled(vec(3), 2.0)
        with pytest.raises(RecompileError) as raised:
            compiled(vec(3), 3.0)
    message = str(raised.value)
    line = scale.__code__.co_firstlineno + 1
    assert "k == 2.0" in message and "3.0" in message and "scale" in message
    assert f"{__file__}:{line}" in message
    assert np.array_equal(compiled(vec(3), 3.0), vec(3) * 3)


def test_fail_on_recompile_at_a_continuation():
    def f(x, box):
        y = x + 1
        dyncomp.graph_break()
        return y * box[0]

    compiled = compile_eager(f)
    compiled(vec(), [2])
    with dyncomp.set_stance("fail_on_recompile"), pytest.raises(RecompileError, match="f"):
        compiled(vec(), [3])


def test_eager_then_compile_knows_what_changes():
    compiled = compile_eager(traced)
    with dyncomp.set_stance("eager_then_compile"):
        assert compiled(vec(5))[0] == 0
        assert compiled(vec(6))[0] == 1
        assert compiled(vec(7))[0] == 1
    assert len(compiled.config.records.entries) == 1


def test_eager_then_compile_looks_into_containers():
    def total(pairs, options):
        return pairs[0] * options["k"] + pairs[1]

    compiled = compile_eager(total)
    with dyncomp.set_stance("eager_then_compile"):
        for n in (5, 6, 7, 8):
            result = compiled([vec(n), 2.0 * n], {"k": n})
            assert np.array_equal(result, vec(n) * n + 2.0 * n)
    assert len(compiled.config.records.entries) == 1


def test_nesting():
    seen = []
    with dyncomp.set_stance("force_eager"):
        seen.append(dyncomp.current_stance())
        with dyncomp.set_stance("eager_on_recompile") as inner:
            seen.append(dyncomp.current_stance())
            with dyncomp.set_stance("default"), inner:
                seen.append(dyncomp.current_stance())
            seen.append(dyncomp.current_stance())
        seen.append(dyncomp.current_stance())
    assert seen == [
        "force_eager",
        "eager_on_recompile",
        "eager_on_recompile",
        "eager_on_recompile",
        "force_eager",
    ]


def test_it_is_left_when_the_block_raises():
    with pytest.raises(KeyError), dyncomp.set_stance("force_eager"):
        raise KeyError("x")


def test_decorator():
    compiled = compile_eager(traced)
    compiled(vec())

    @dyncomp.set_stance("force_eager")
    def run(x, depth=1):
        return compiled(x)[0] if not depth else run(x, depth - 1)

    assert dyncomp.current_stance() == "default"
    assert run.__name__ == "run"
    assert run(vec()) == 0
    assert compiled(vec())[0] == 1


def test_a_plain_call_holds_for_the_process_and_a_block_for_its_thread():
    compiled = compile_eager(traced)
    compiled(vec())

    def in_thread():
        found = []
        thread = threading.Thread(target=lambda: found.append(compiled(vec())[0]))
        thread.start()
        thread.join()
        return found[0]

    dyncomp.set_stance("force_eager")
    try:
        assert dyncomp.current_stance() == "force_eager"
        assert compiled(vec())[0] == 0
        assert in_thread() == 0
        with dyncomp.set_stance("default"):
            assert compiled(vec())[0] == 1
            assert in_thread() == 0
    finally:
        dyncomp.set_stance("default")
    with dyncomp.set_stance("force_eager"):
        assert compiled(vec())[0] == 0
        assert in_thread() == 1


def test_the_hook_obeys():
    @dyncomp.disable(recursive=False)
    def outside(x):
        return traced(x), dyncomp.current_stance()

    def outer(x):
        return outside(x)[0] + 0

    compiled = compile_eager(outer)
    assert compiled(vec())[0] == 1
    with dyncomp.set_stance("force_eager"):
        assert compiled(vec())[0] == 0


def test_unknown_names():
    with pytest.raises(ValueError, match="unknown stance 'fast'.*force_eager"):
        dyncomp.set_stance("fast")
    with pytest.raises(ValueError, match="no such stance"):
        _hook.set_stance(len(STANCES), False)
    assert repr(dyncomp.set_stance("default")) == "set_stance('default')"

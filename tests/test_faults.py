"""Faults of dyncomp itself: the program goes on, and they are counted, told once, and raised if asked for."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import dyncomp
from dyncomp import notices
from dyncomp.build.toolchain import Toolchain, find_toolchain
from dyncomp.errors import LoweringFault, RejectedCode, ToolchainError
from dyncomp.inductor import compile as inductor
from dyncomp.inductor.render.cpp import kernel as cpp_kernel
from dyncomp.options import Options, make_options
from dyncomp.scalar_loops import build as native_build

X = np.arange(6.0)
LENIENT = {"strict": False}


def program():
    """A new function, so that nothing is known of it."""
    names: dict = {}
    exec(compile("def function(x):\n    return x * 2 + 1\n", "<test of faults>", "exec"), names)
    return names["function"]


def unknown_name(text):
    return text.replace("const double v_v0 =", "const double v_v0 = never_declared +")


def wrong_code(monkeypatch):
    render = inductor.render_module
    monkeypatch.setattr(inductor, "render_module", lambda *args: unknown_name(render(*args)))


def cannot_print(monkeypatch):
    def fails(*args, **kwargs):
        raise LoweringFault("a local array over axis i0 of unknown size")

    monkeypatch.setattr(cpp_kernel.Printer, "items", fails)


def bug(monkeypatch):
    def fails(*args):
        raise KeyError("planted")

    monkeypatch.setattr(inductor, "find_toolchain", fails)


PLANTED = [
    (wrong_code, RejectedCode, "never_declared"),
    (cannot_print, LoweringFault, "local array"),
    (bug, KeyError, "planted"),
]


@pytest.mark.parametrize("plant, kind, text", PLANTED)
def test_the_program_goes_on_and_is_told_once(monkeypatch, caplog, plant, kind, text):
    plant(monkeypatch)
    before = dyncomp.stats()["internal_errors"]
    function = program()
    notices.forget()
    compiled = dyncomp.compile(function, options=LENIENT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the program's, which sees nothing of it
        for x in (X, X.astype("f4"), X.astype("i4")):
            np.testing.assert_array_equal(compiled(x), function(x))
    (message,) = [record.getMessage() for record in caplog.records if record.name == "dyncomp"]
    assert "function at <test of faults>:1 runs as plain Python" in message
    assert text in message and kind.__name__ in message and "report" in message
    assert dyncomp.stats()["internal_errors"] > before
    assert any(text in found for found in compiled.config.records.internal_errors)


@pytest.mark.parametrize("plant, kind, text", PLANTED)
def test_strict_raises(monkeypatch, plant, kind, text):
    plant(monkeypatch)
    compiled = dyncomp.compile(program(), options={"strict": True})
    with pytest.raises(kind, match=text):
        compiled(X)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("plant, kind, text", PLANTED[:2])
def test_of_a_form_that_is_measured(monkeypatch, caplog, tmp_path, plant, kind, text, strict):
    monkeypatch.setenv("DYNCOMP_CACHE_DIR", str(tmp_path))  # where no choice was made yet
    compile_default = inductor.Maker.tuned

    def planting(*args):
        plant(monkeypatch)
        return compile_default(*args)

    monkeypatch.setattr(inductor.Maker, "tuned", planting)
    notices.forget()
    before = dyncomp.stats()["internal_errors"]
    big = np.ones((300, 300))
    options = {"tuning_seconds": 1.0, "strict": strict}
    compiled = dyncomp.compile(lambda x: x.T * 2 + x, mode="max-autotune", options=options)
    if strict:
        with pytest.raises(kind, match=text):
            compiled(big)
        return
    np.testing.assert_array_equal(compiled(big), big * 3)
    assert "is not measured" in caplog.text
    assert dyncomp.stats()["internal_errors"] > before


def test_of_a_part_whose_sizes_are_known_late(monkeypatch):
    compiled = dyncomp.compile(lambda x: (x[x > 2] * 2).sum(), options={"strict": True})
    assert compiled(X) == (X[X > 2] * 2).sum()
    dyncomp.reset()
    wrong_code(monkeypatch)
    with pytest.raises(RejectedCode):
        compiled(X)


@pytest.mark.parametrize("strict", [True, False])
def test_of_native_loops(monkeypatch, caplog, strict):
    def fails(*args, **kwargs):
        raise RejectedCode("loop.cpp:1:1: error: planted")

    def count(n):
        s = 0
        for i in range(n):
            s += i * i % 7
        return s

    monkeypatch.setattr(native_build, "build", fails)
    notices.forget()
    options = {"native_loop_us": 0, "unroll_limit": 0, "strict": strict}
    compiled = dyncomp.compile(count, options=options)
    if strict:
        with pytest.raises(RejectedCode, match="planted"):
            compiled(3000)
        return
    assert [compiled(3000) for _ in range(4)] == [count(3000)] * 4
    assert "planted" in caplog.text


# -- what is a fault ------------------------------------------------------------------------------
def failure(tmp_path, compiler, text="int f() { return x; }"):
    source = tmp_path / "unit.cpp"
    source.write_text(text)
    with pytest.raises(ToolchainError) as caught:
        compiler.compile(source, tmp_path / "unit.so")
    return caught.value


def test_errors_in_the_source_are_ours(tmp_path):
    assert isinstance(failure(tmp_path, find_toolchain()), RejectedCode)


def test_errors_in_assembly_are_ours(tmp_path):
    text = 'void f() { asm("no_such_instruction %eax"); }'
    assert isinstance(failure(tmp_path, find_toolchain(), text), RejectedCode)


@pytest.mark.parametrize("flag", ["-march=no-such-processor", "-fno-such-option"])
def test_wrong_flags_are_not(tmp_path, flag):
    toolchain = find_toolchain().with_flags((flag,))
    assert not isinstance(failure(tmp_path, toolchain, "int f();"), RejectedCode)


def test_a_compiler_that_fails_is_not(tmp_path):
    broken = tmp_path / "c++"
    broken.write_text("#!/bin/sh\necho 'no licence: error' >&2\nexit 3\n")
    broken.chmod(0o755)
    assert not isinstance(failure(tmp_path, Toolchain(str(broken), (), "broken")), RejectedCode)


def test_strict_is_no_part_of_keys():
    assert Options(strict=True).key() == Options().key()
    assert make_options(environ={"DYNCOMP_STRICT": "1"}).strict
    assert not make_options(environ={"DYNCOMP_STRICT": "0"}).strict


def test_this_suite_is_strict():
    assert make_options().strict

"""Reductions over different axes that share values: what is generated compiles, and is right."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from dyncomp.inductor.render.cpp import values as cpp_values
from tests.inductor import reductions_run
from tests.inductor.reduction_graphs import make_program, source_of, syntax_errors

PART = 100


def check(first: int, count: int) -> None:
    failed = reductions_run.rejected(first, count)
    assert not failed, "\n".join(f"seed {seed}: {text}" for seed, text in failed.items())


@pytest.mark.parametrize("part", range(5))
def test_the_compiler_takes_what_is_generated(part: int) -> None:
    check(part * PART, PART)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(20))
def test_the_compiler_takes_much_more(part: int) -> None:
    check(part * 1000, 1000)


def check_values(seed: int) -> None:
    program = make_program(seed, reductions_run.POINTS)
    assert reductions_run.run_program(seed, program, program.sizes) == ""


@pytest.mark.parametrize("seed", range(40))
def test_values(seed: int) -> None:
    check_values(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 1100))
def test_more_values(seed: int) -> None:
    check_values(seed)


def test_names_of_a_block_end_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fuzzer sees the fault that made it: values named outside of the loop that declares them."""
    block = cpp_values.ValuePrinter.block

    def leaking(self, *args):
        inside = block(self, *args)

        class Leaking:
            def __enter__(_):
                return inside.__enter__()

            def __exit__(_, *error):
                env = self.env
                inside.__exit__(*error)
                self.env = env

        return Leaking()

    monkeypatch.setattr(cpp_values.ValuePrinter, "block", leaking)
    sources = {seed: source_of(seed, make_program(seed)) for seed in range(30)}
    assert any("was not declared in this scope" in text for text in syntax_errors(sources).values())


def moments(x):
    mean = x.mean(0)
    d = x - mean
    variance = (d**2).mean(0)
    skew = (d**3).mean(0) / variance**1.5
    kurtosis = (d**4).mean(0) / variance**2
    return mean, variance, skew, kurtosis, x.min(1), x.max(1)


def over_two_axes(x):
    return x.reshape(3, 16, -1).sum((0, 2)), x.reshape(3, 16, -1).max((0, 2))


@pytest.mark.parametrize("program", [moments, over_two_axes])
def test_once_rejected(program):
    """The compiler said that ``v_v1`` was not declared in this scope."""
    x = np.random.default_rng(0).random((2400, 320))
    compiled = dyncomp.compile(program)
    for found, wanted in zip(compiled(x), program(x)):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert not compiled.config.records.skipped


def test_rows_of_unknown_number_are_reduced():
    """Partial results of so many rows would need memory of unknown size."""
    compiled = dyncomp.compile(lambda x: (x.sum(0), x.sum(1)), dynamic=True)
    for shape in ((4000, 30), (3000, 50), (5000, 7)):
        x = np.random.default_rng(0).random(shape)
        for found, axis in zip(compiled(x), (0, 1)):
            np.testing.assert_allclose(found, x.sum(axis), rtol=1e-9)
    assert not compiled.config.records.skipped

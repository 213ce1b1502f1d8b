"""The examples of derivatives: small forms of each, and the networks for digits as they are."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rich")

from rich.console import Console  # noqa: E402

import dyncomp  # noqa: E402
from demo.derivatives import digits, equation, process  # noqa: E402
from demo.derivatives.__main__ import main  # noqa: E402


@pytest.fixture
def console():
    return Console(width=120, quiet=True)


@pytest.mark.parametrize("model", digits.MODELS, ids=lambda model: model.name)
def test_gradients_are_those_written_by_hand(model):
    images, labels, _, _ = digits.split()
    weights = model.weights(np.random.default_rng(3))
    value, gradient = dyncomp.value_and_grad(model.loss)(weights, images[:40], labels[:40])
    wanted, by_hand = model.by_hand(weights, images[:40], labels[:40])
    np.testing.assert_allclose(value, wanted, rtol=1e-12)
    assert list(gradient) == list(weights)
    for name, g in gradient.items():
        np.testing.assert_allclose(g, by_hand[name], rtol=1e-9, atol=1e-14)


def test_networks_learn(console):
    for result in digits.run(console, None, quick=True):
        assert result.difference < 1e-9
        assert result.own.losses[-1] < 0.7 * result.own.losses[0]


@pytest.mark.slow
def test_networks_read_digits(console):
    for result in digits.run(console, None):
        assert result.difference < 1e-6
        assert result.accuracy >= 0.97


def test_newtons_method_finds_the_rates(console):
    result = equation.run(console, None, quick=True)
    assert result.own.slopes[-1] < 1e-8
    np.testing.assert_allclose(result.own.unknown, result.differences.unknown, atol=1e-5)
    wanted = equation.difference_hessian(lambda x: equation.improbability(x, result.seen), result.own.unknown)
    np.testing.assert_allclose(result.own.hessian, wanted, rtol=1e-4, atol=1e-2)


def test_a_gaussian_process_is_as_likely_as_it_can_be(console):
    t, x = process.series(True)

    def f(constants):
        return process.improbability(constants, t, x)

    gradient = dyncomp.grad(f)(process.START)
    np.testing.assert_allclose(gradient, equation.difference_gradient(f, process.START), rtol=1e-6, atol=1e-7)
    pytest.importorskip("scipy")
    result = process.run(console, None, quick=True)
    assert result.own.value < f(process.START) - 10
    assert result.own.value < result.differences.value + 1e-2
    assert result.own.calls < result.differences.calls


def test_pictures(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    pytest.importorskip("scipy")
    assert main(["digits", "process", "--quick", "--pictures", str(tmp_path)]) == 0
    assert "first call s" in capsys.readouterr().out
    names = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(names) == ["digits.png", "digits.svg", "process.png", "process.svg"]
    for name, content in names.items():
        assert content.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml")

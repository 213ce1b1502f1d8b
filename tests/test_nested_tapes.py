"""Derivatives of derivatives, forward mode and Jacobians of programs that are no single graph."""

import numpy as np
import pytest

import dyncomp
from dyncomp.autodiff import api, iterations, record

from .test_iterations import made

X, W = np.array([0.3, -0.2, 0.7, 0.1]), 0.8
V = np.array([0.5, -1.0, 0.25, 2.0])
STEP = 1e-6


def second_derivatives(program):
    """Ways to the product of the Hessian by x with V, all of which have to agree."""
    by_x = dyncomp.grad(program)

    def along(x):
        return dyncomp.jvp(lambda y: program(y, W), (x,), (V,))[1]

    def pulled(x):
        value, pullback = dyncomp.vjp(lambda y: by_x(y, W), x)
        return pullback(V)[0]

    return {
        "forward over reverse": lambda x: dyncomp.jvp(lambda y: by_x(y, W), (x,), (V,))[1],
        "reverse over forward": lambda x: dyncomp.grad(along)(x),
        "reverse over reverse": lambda x: dyncomp.grad(lambda y: by_x(y, W) @ V)(x),
        "hessian": lambda x: dyncomp.hessian(program)(x, W) @ V,
        "jacobian": lambda x: dyncomp.jacobian(lambda y: by_x(y, W), mode="forward")(x) @ V,
        "pullback": pulled,
        "forward over forward": lambda x: [
            dyncomp.jvp(lambda y: dyncomp.jvp(lambda z: program(z, W), (y,), (V,))[1], (x,), (unit,))[1]
            for unit in np.eye(4)
        ],
    }


def outcome(run, x):
    try:
        return np.asarray(run(x))
    except Exception as error:  # noqa: BLE001 - all are compared
        return type(error).__name__


def difference(gradient, step):
    ends = [gradient(X + s * step * V, W) for s in (1, -1)]
    return (ends[0] - ends[1]) / (2 * step)


def check(seed, monkeypatch):
    monkeypatch.setattr(api, "FEW_OPS", 0)
    monkeypatch.setattr(record, "MOST_OPS", 1)
    monkeypatch.setattr(iterations, "TRIALS", 3 + seed % 3)
    for patience in (0.0, 1e9):
        monkeypatch.setattr(iterations, "PATIENCE", patience)
        program, text = made(seed)
        gradient = outcome(lambda x: dyncomp.grad(program)(x, W), X)
        value, slope = program(X, W), None
        if not isinstance(gradient, str):
            value, slope = dyncomp.jvp(lambda x: program(x, W), (X,), (V,))
            np.testing.assert_allclose(slope, gradient @ V, rtol=1e-8, atol=1e-11, err_msg=text)
            np.testing.assert_allclose(value, program(X, W), rtol=1e-9, err_msg=text)
            expected, other = (difference(dyncomp.grad(program), step) for step in (STEP, STEP / 7))
            if not np.allclose(expected, other, rtol=1e-3, atol=1e-3):  # at a kink
                expected = second_derivatives(program)["hessian"](X)
        for name, run in second_derivatives(program).items():
            found = outcome(run, X)
            if isinstance(gradient, str):
                assert found == gradient, f"{name}: {found} instead of {gradient} of\n{text}"
                continue
            assert not isinstance(found, str), f"{name}: {found} of\n{text}"
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, err_msg=f"{name}:\n{text}")


@pytest.mark.parametrize("seed", range(6))
def test_random_bodies(seed, monkeypatch):
    check(seed, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_more_random_bodies(block, monkeypatch):
    for seed in range(2000 + 20 * block, 2020 + 20 * block):
        check(seed, monkeypatch)

"""Programs under ``numerics="strict"`` have NumPy's and PyTorch's bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyncomp

from .bits import STRICT, bits, strictly

Arrays = tuple[Any, ...]


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x: Any) -> Any:
    mean, var = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(var + 1e-5) * 1.5 + 0.25


def statistics(x: Any) -> Any:
    norm = np.linalg.norm(x), np.linalg.norm(x, axis=0), np.linalg.norm(x, ord=1, axis=1)
    return np.var(x), np.mean(x, axis=0), np.std(x, axis=1, ddof=1), norm, x.cumsum(axis=0), np.median(x)


def products(x: Any) -> Any:
    return x @ x.T, np.einsum("ij,kj->ik", x, x), np.einsum("ij->j", x), np.dot(x[0], x[1]), x.T @ x[:, 0]


def k_means_step(x: Any) -> Any:
    centres = x[:4]
    distances = ((x[:, None, :] - centres[None]) ** 2).sum(axis=2)
    nearest = distances.argmin(axis=1)
    weights = (nearest[:, None] == np.arange(4)).astype(x.dtype)
    return (weights.T @ x) / np.maximum(weights.sum(axis=0), 1)[:, None], nearest


def stencil(x: Any) -> Any:
    new = x.copy()
    for _ in range(3):
        inner = new[:-2, 1:-1] + new[2:, 1:-1] + new[1:-1, :-2] + new[1:-1, 2:]
        new[1:-1, 1:-1] += 0.1 * (inner - 4 * new[1:-1, 1:-1])
    return new


def functions(x: Any) -> Any:
    y = np.abs(x) + 0.5
    return (
        np.sin(x),
        np.tanh(x) ** 3,
        np.log1p(y),
        y**1.7,
        np.hypot(x, y),
        np.arctan2(x, y),
        np.cbrt(x),
        y % 0.3,
    )


def in_place(x: Any) -> Any:
    y = x.copy()
    np.exp(y, out=y)
    y **= 3
    np.add(y, x, out=y, where=x > 0)
    y[1:] = np.sin(y[:-1])
    y.sort(axis=0)
    return y


def masks(x: Any) -> Any:
    kept = x[x > 0.1]
    y = x.copy()
    y[y < 0] = np.exp(y[y < 0])
    return kept.sum(), kept.mean(), np.sqrt(kept), y


def scalars(x: Any) -> Any:
    total = x.sum()
    scale = float(np.exp(x[0, 0])) ** 0.3
    return total * scale / 7, np.sqrt(total * total), np.sin(total), round(float(total), 3), x * scale


def spectra(x: Any) -> Any:
    return np.fft.rfft(x), np.fft.fft2(x), np.abs(np.fft.fft(x)), (x * 1j + x) * (x - 2j) / (x + 1j)


def solved(x: Any) -> Any:
    a = x[:5, :5] @ x[:5, :5].T + 3 * np.eye(5, dtype=x.dtype)
    return np.linalg.solve(a, x[:5, 0]), np.linalg.inv(a), np.linalg.cholesky(a), np.linalg.eigvalsh(a)


def zeros(x: Any) -> Any:
    z = x * 0.0
    return np.maximum(z, 0), np.minimum(z, -z), np.clip(z, 0, 1), z.max(axis=0), z.sum(axis=0), np.spacing(z)


PROGRAMS = (
    softmax, layer_norm, statistics, products, k_means_step, stencil, functions, in_place, masks, scalars,
    spectra, solved, zeros,
)  # fmt: skip


def normal(shape: tuple[int, ...], dtype: str) -> Any:
    return np.random.default_rng(3).normal(size=shape).astype(dtype)


LAYOUTS: dict[str, Callable[[str], Any]] = {
    "odd": lambda dtype: normal((37, 19), dtype),
    "strided": lambda dtype: normal((74, 19), dtype)[::2, ::-1],
    "fortran": lambda dtype: np.asfortranarray(normal((33, 17), dtype)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_numpy_programs(program: Callable[..., Any], dtype: str) -> None:
    compiled = strictly(program)
    for layout, make in LAYOUTS.items():
        for _ in range(2):
            given, own = make(dtype), make(dtype)
            assert not bits(program(own), compiled(given)), layout
            assert not bits(own, given), layout


def test_whole_and_halves() -> None:
    """Integers and float16, whose arithmetic NumPy rounds at every operation."""
    for dtype in ("float16", "int32", "uint8", "complex64"):
        x = (normal((9, 7), "float32") * 8).astype("int16" if dtype == "uint8" else "float32").astype(dtype)
        program = lambda x: ((x * x + x) / 3 - x, x.sum(), x.mean(axis=0), (x * x + x).astype("float32"))  # noqa: E731
        with np.errstate(all="ignore"):
            assert not bits(program(x), strictly(program)(x)), dtype


def test_sizes_that_change() -> None:
    compiled = strictly(softmax)
    for rows in (3, 5, 8, 9, 17):
        x = normal((rows, 2 * rows + 1), "float32")
        assert not bits(softmax(x), compiled(x))


def test_one_graph_without_breaks() -> None:
    """What rounds is a call in the graph, not a break."""
    for program in (softmax, layer_norm, statistics, products, functions, zeros):
        x = normal((7, 5), "float64")
        assert not bits(
            program(x), dyncomp.compile(program, options={"numerics": "strict"}, fullgraph=True)(x)
        )


def test_default_differs_somewhere() -> None:
    """Else these tests could not fail."""
    x = normal((37, 1019), "float32")
    compiled = dyncomp.compile(lambda x: (np.exp(x), np.tanh(x), x.sum(axis=1), x @ x.T))
    plain = np.exp(x), np.tanh(x), x.sum(axis=1), x @ x.T
    assert bits(plain, compiled(x))
    assert not bits(plain, strictly(lambda x: (np.exp(x), np.tanh(x), x.sum(axis=1), x @ x.T))(x))


def warning(x: Any) -> Any:
    return np.log(x) + np.sqrt(x)


def test_warnings_and_errors_are_numpys() -> None:
    compiled = strictly(warning)
    x = np.array([1.0, 2.0, -1.0, 0.0])
    assert not bits(np.log(x[:2]) + np.sqrt(x[:2]), compiled(x[:2]))
    with pytest.warns(RuntimeWarning, match="encountered in log") as caught:
        compiled(x)
    assert {w.filename for w in caught} == {__file__}
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        compiled(x)
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        strictly(np.linalg.inv)(np.zeros((3, 3)))


def numbers(values: list[float], x: Any) -> Any:
    total = 0.0
    for i in range(len(values)):
        total = total * 0.99 + np.sin(values[i]) * x[i] ** 0.7
    return total


def test_loops_over_numbers() -> None:
    values, x = [0.37 * k for k in range(5000)], np.abs(normal((5000,), "float64"))
    compiled = strictly(numbers)
    for _ in range(3):
        assert compiled(values, x) == numbers(values, x)


def test_verification_is_exact() -> None:
    x = normal((37, 19), "float32")
    before = dyncomp.stats()["verified"]
    checked = dyncomp.compile(softmax, verify="first", options=STRICT)
    checked(x)
    assert dyncomp.stats()["verified"] == before + 1
    assert not dyncomp.stats()["mismatches"]


def test_explain_counts_the_librarys_functions() -> None:
    report = dyncomp.explain(softmax, options=STRICT)(normal((7, 5), "float64"))
    assert "3 of them functions of the library, for the same bits" in str(report)


def test_derivatives_are_dyncomps_own() -> None:
    """They are no library's; what is around them is."""
    x = normal((9,), "float64")
    gradient = strictly(lambda x: dyncomp.grad(lambda x: np.sum(np.exp(x)))(x))
    np.testing.assert_allclose(gradient(x), np.exp(x), rtol=1e-12)


def test_options() -> None:
    with pytest.raises(ValueError, match="numerics must be one of default, strict, is 'exact'"):
        dyncomp.compile(softmax, options={"numerics": "exact"})
    with pytest.raises(ValueError, match="other numbers"):
        dyncomp.compile(softmax, options={"numerics": "strict", "random": "fused"})

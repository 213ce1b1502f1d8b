"""Attention under a causal mask: what no row of a block sees is left out, and nothing is seen of it."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp
from tests.inductor.test_chain import RNG, softmax, three
from tests.inductor.threads import by_threads


def looking_back(ahead: int):
    """Causal attention in which a row sees so many columns behind its own."""

    def program(q, k, v):
        seen = np.tril(np.ones((q.shape[-2], k.shape[-2]), dtype=bool), ahead)
        return softmax(np.where(seen, q @ np.swapaxes(k, -1, -2), -np.inf)) @ v

    return program


def masked_by_a_number(q, k, v):
    seen = np.tril(np.ones((q.shape[-2], k.shape[-2]), dtype=bool))
    return softmax(np.where(seen, q @ np.swapaxes(k, -1, -2), -1e9)) @ v


def squared(q, k, v):
    """Not a softmax: what is hidden counts."""
    seen = np.tril(np.ones((q.shape[-2], k.shape[-2]), dtype=bool))
    s = np.where(seen, q @ np.swapaxes(k, -1, -2), -np.inf)
    return (np.exp(s) + 1) / np.sum(np.exp(s), axis=-1, keepdims=True) @ v


def check(program, arguments, artifacts, leaves_out):
    with np.errstate(all="ignore"):
        expected = program(*arguments)
        found = dyncomp.compile(program)(*arguments)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert ("causal = 1" in artifacts[-1].source) == leaves_out


@pytest.mark.parametrize(("m", "n", "ahead"), [(300, 300, 0), (70, 400, 50), (400, 70, 0), (130, 260, 130)])
def test_values(artifacts: list, m: int, n: int, ahead: int) -> None:
    check(looking_back(ahead), three(2, m=m, n=n), artifacts, True)


def test_rows_that_see_nothing(artifacts: list) -> None:
    check(looking_back(-40), three(2, m=200, n=200), artifacts, True)


@pytest.mark.parametrize("program", [masked_by_a_number, squared])
def test_masks_that_hide_nothing(artifacts: list, program) -> None:
    check(program, three(2, m=200, n=200), artifacts, False)


@pytest.mark.parametrize("operand", [1, 2])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 150, 299])
def test_special_values_among_what_is_hidden(artifacts: list, operand: int, value: float, row: int) -> None:
    arguments = three(2, m=300, n=300)
    arguments[operand][0, row, 3] = value
    check(looking_back(0), arguments, artifacts, True)


def test_strided_values(artifacts: list) -> None:
    q, k, v = three(m=300, n=300)
    turned = np.asfortranarray(v)
    check(looking_back(0), (q, k, turned), artifacts, True)
    turned[280, 7] = np.nan
    check(looking_back(0), (q, k, turned), artifacts, True)


def test_the_bits_do_not_depend_on_threads() -> None:
    arguments = three(1, m=1300, n=1300, e=16, f=16)
    compiled = dyncomp.compile(looking_back(0))
    found = by_threads(lambda: compiled(*arguments))
    assert all(np.array_equal(found[0], other) for other in found)


def test_what_is_hidden_changes_no_bits() -> None:
    q, k, v = three(1, m=700, n=700, e=16, f=16)
    compiled = dyncomp.compile(looking_back(0))
    found = compiled(q, k, v)
    v[0, -1, :] = np.nan
    with np.errstate(all="ignore"):
        assert np.isnan(compiled(q, k, v)).all()  # 0 * nan is nan: nothing is left out
    v[0, -1, :] = RNG.standard_normal(16)
    assert np.array_equal(compiled(q, k, v)[0, :-1], found[0, :-1])


def test_torch() -> None:
    torch = pytest.importorskip("torch")

    def program(q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    arguments = [torch.from_numpy(x) for x in three(2, 3, m=150, n=150, e=32, f=32)]
    with torch.no_grad():
        torch.testing.assert_close(
            dyncomp.compile(program)(*arguments), program(*arguments), rtol=1e-4, atol=1e-5
        )

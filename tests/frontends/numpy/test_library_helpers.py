"""What libraries ask of arrays besides computing: shared memory, ``copy=False``, indices."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import dyncomp

X = np.arange(12.0).reshape(3, 4)


def fresh(x):
    y = x * 2
    return y, np.shares_memory(x, y), np.may_share_memory(y, y + 1), np.may_share_memory(y[1:], x.T)


def not_copied(x):
    same = np.array(x, copy=False)
    return same is x, np.asarray(x, copy=False) is x, same * 2


def wrapped(x):
    y = x + 1
    return x.__array_wrap__(y) is y, y


def orders(x):
    return (
        x + np.zeros((3, 4), order="c"),
        np.array(x, order="f").flags.f_contiguous,
        np.empty(3, order="f") * 0,
    )


def sublists(x):
    pairs = np.einsum(x, [0, 1], x, [2, 1], [0, 2])
    return pairs, np.einsum(x, [0, 1]), np.einsum(x, [1, 0]), np.einsum(x, [Ellipsis, 3], [Ellipsis])


@pytest.mark.parametrize("program", [fresh, not_copied, wrapped, orders, sublists], ids=lambda p: p.__name__)
def test_is_captured_whole(program):
    compiled = dyncomp.compile(program, backend="eager", fullgraph=True)
    for _ in range(2):
        for got, wanted in zip(compiled(X), program(X)):
            np.testing.assert_array_equal(got, wanted)
            assert type(got) is type(wanted)


def test_arguments_that_share_memory():
    def program(x, y):
        return np.may_share_memory(x, y), np.shares_memory(x[0], y), x + y

    compiled = dyncomp.compile(program, backend="eager")
    for pair in [(X, X.copy()), (X, X), (X, X[:]), (X.copy(), X), (X[:1], X[1:2])]:
        for got, wanted in zip(compiled(*pair), program(*pair)):
            np.testing.assert_array_equal(got, wanted)


def test_views_of_one_array():
    def program(x):
        y = x * 1j
        return np.shares_memory(y, y.real), np.may_share_memory(y[0], y[1]), np.shares_memory(x, x.T), y

    compiled = dyncomp.compile(program, backend="eager")
    for got, wanted in zip(compiled(X), program(X)):
        np.testing.assert_array_equal(got, wanted)


def test_copies_that_are_refused():
    def program(x, dtype):
        return np.array(x, dtype=dtype, copy=False)

    compiled = dyncomp.compile(program, backend="eager")
    assert compiled(X, None) is X
    for given, dtype in ((X, np.float32), ([1.0, 2.0], None)):
        with pytest.raises(ValueError, match="copy"):
            compiled(given, dtype)


@pytest.mark.parametrize(
    "value", [np.int64(3), np.array(3), True, np.uint8(2), np.bool_(True), np.array([1]), 2.0]
)
def test_index(value):
    def program(x, n):
        y = x * 2
        try:
            return y, operator.index(n)
        except TypeError as error:
            return y, str(error)

    got = dyncomp.compile(program, backend="eager")(X, value)[1]
    wanted = program(X, value)[1]
    assert got == wanted and type(got) is type(wanted)


def test_index_of_a_computed_number():
    def program(x):
        return x[operator.index(np.argmax(x[0]))]

    np.testing.assert_array_equal(dyncomp.compile(program, backend="eager")(X[:, :2]), program(X[:, :2]))

"""Recursion is inlined to its end where that is known at capture, and a few levels where it is not."""

from __future__ import annotations

import numpy as np

import dyncomp
from tests.capture.comparing import break_ids, check


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


class Node:
    def __init__(self, value, children=()):
        self.value = value
        self.children = list(children)


def tree(depth):
    return Node(depth + 0.5, [tree(depth - 1) for _ in range(2)] if depth else ())


def total(node, x):
    result = x * node.value
    for child in node.children:
        result = result + total(child, x)
    return result


def fourier(x):
    n = x.shape[0]
    if n == 1:
        return x.astype(complex)
    even, odd = fourier(x[::2]), fourier(x[1::2])
    w = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
    return np.concatenate([even + w, even - w])


def flattened(items):
    found = []
    for item in items:
        if isinstance(item, list):
            found.extend(flattened(item))
        else:
            found.append(item)
    return found


def down(x, n):
    return x if n == 0 else down(x + 1, n - 1)


def breaks_deep_inside(x, n):
    if n == 0:
        dyncomp.graph_break()
        return x
    return breaks_deep_inside(x + n, n - 1) * 2


def with_number(x):
    return x * fibonacci(9)


def with_tree(x, node):
    return total(node, x)


def with_list(x):
    return x * sum(flattened([1, [2, [3, [4, [5, [6, []]]]]]]))


def with_array(x):
    return fourier(x).real + 1


def with_break(x):
    return breaks_deep_inside(x, 6)


def endless(x):
    return x + fibonacci(22)


def traced(function):
    """A decorator whose wrappers are all of one code, as libraries have on most of their methods."""

    def wrapper(*args):
        return function(*args)

    return wrapper


@traced
def innermost(x):
    return x * 2


@traced
def inner(x):
    return innermost(x) + 1


@traced
def middle(x):
    return inner(x) * inner(x + 1)


@traced
def outer(x):
    return middle(x) - 1


@traced
def outermost(x):
    return outer(x) + middle(x)


@traced
def decorated_fibonacci(x, n):
    return x * n if n < 2 else decorated_fibonacci(x, n - 1) + decorated_fibonacci(x, n - 2)


def test_wrappers_of_one_decorator_are_no_recursion():
    records = check(outermost, *[lambda n=n: (np.arange(n + 2.0),) for n in range(4)])
    assert break_ids(records) == []


def test_recursion_through_a_decorator():
    records = check(decorated_fibonacci, *[lambda n=n: (np.ones(3), n) for n in (3, 9, 6, 12, 7)], repeats=1)
    assert set(break_ids(records)) == {"inline-refused"}


def test_to_its_end():
    for function, maker in (
        (with_number, lambda: (np.ones(3),)),
        (with_tree, lambda: (np.ones(3), tree(5))),
        (with_list, lambda: (np.ones(3),)),
        (with_array, lambda: (np.arange(32.0),)),
    ):
        records = check(function, maker)
        assert break_ids(records) == []
        assert not records.skipped


def test_depth_that_changes_from_call_to_call():
    makers = [lambda n=n: (np.ones(3), n) for n in (5, 9, 7, 12, 30, 6, 8, 11, 15)]
    records = check(down, *makers)
    assert set(break_ids(records)) == {"inline-refused"}
    assert not records.skipped


def test_a_break_far_inside():
    records = check(with_break, lambda: (np.ones(3),))
    assert {"graph-break", "inline-refused"} >= set(break_ids(records))
    assert not records.skipped


def test_too_long():
    records = check(endless, lambda: (np.ones(3),), repeats=1)
    assert "inline-refused" in break_ids(records)


def test_trees_of_many_shapes():
    check(with_tree, *[lambda n=n: (np.ones(3), tree(n)) for n in range(6)])

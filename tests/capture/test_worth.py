"""Loops over single numbers are left to plain Python; what is around them is captured."""

from __future__ import annotations

import numpy as np

import dyncomp
from tests.capture.comparing import call, differences


def checksum(data, x):
    x = np.sqrt(x * x + 1.0)
    total = 0xFFFF
    for byte in data:
        total = (total >> 1) ^ 0x8408 if (total ^ int(byte)) & 1 else total >> 1
    return total, (x + total).sum()


def first_above(x, y):
    x = x * 2.0 + y
    i = 0
    while i < len(x):
        if x[i] > 3.0:
            break
        i += 1
    return i, np.cos(x) * i


def nested(table):
    table = table * 1.0
    for i in range(1, table.shape[0]):
        for j in range(1, table.shape[1]):
            if table[i, j] < table[i - 1, j - 1]:
                table[i, j] = table[i - 1, j - 1]
    return table * table + 1.0


def unbound_behind(x, n):
    for i in range(n):  # noqa: B007
        value = x[i] + 1.0
    return value * x  # an UnboundLocalError where n is 0


def arrays_later(x, n):
    """Each iteration reckons with numbers until, once, there are arrays."""
    total = x[0]
    for i in range(n):
        total = total + x[i] if i < 12 else total + np.exp(x).sum() + np.sin(x).sum()
    return total


def queens(n):
    found = []

    def place(row, columns, left, right, chosen):
        if row == n:
            found.append(tuple(chosen))
            return
        for k in range(n):
            if columns[k] or left[row + k] or right[row - k + n]:
                continue
            columns[k] = left[row + k] = right[row - k + n] = 1
            chosen.append(k)
            place(row + 1, columns, left, right, chosen)
            chosen.pop()
            columns[k] = left[row + k] = right[row - k + n] = 0

    place(0, np.zeros(n, int), np.zeros(2 * n, int), np.zeros(2 * n + 1, int), [])
    return found


def is_free(table, row, column, number):
    return all(table[row, k] != number and table[k, column] != number for k in range(len(table)))


def latin_square(table):
    """Fills the zeros; the callee's branches are on numbers, too."""
    for row in range(len(table)):
        for column in range(len(table)):
            if table[row, column] == 0:
                for number in range(1, len(table) + 1):
                    if is_free(table, row, column, number):
                        table[row, column] = number
                        if latin_square(table):
                            return True
                        table[row, column] = 0
                return False
    return True


def arrays_behind_recursion(x, depth):
    total = 0.0
    for k in range(12):
        if depth and x[k] > 0.9:
            total += arrays_behind_recursion(x * 0.99, depth - 1)
    return total + np.exp(x).sum() * np.sin(x).sum()


def check(function, *makers, repeats=4):
    compiled = dyncomp.compile(function, backend="eager", options={"debug_verify": True})
    for maker in makers:
        for _ in range(repeats):
            found = call(compiled, maker())
            problems = differences(call(function, maker()), found, 0.0)
            assert not problems, problems
    return compiled.config.records


def left_plain(records):
    reasons = [b.reason for entry in records.entries for b in entry.breaks if b.id == "loop"]
    return [reason for reason in reasons if "left to plain Python" in reason]


def test_branches_on_numbers():
    data = np.arange(200, dtype=np.uint8)
    records = check(checksum, lambda: (data, np.arange(5.0)))
    assert left_plain(records)
    assert sum(entry.graph is not None for entry in records.entries) >= 2  # before the loop, and behind it


def test_while_loop_that_is_left():
    makers = [lambda top=top: (np.linspace(0.0, top, 60), np.zeros(60)) for top in (5.0, 2.0, 1.0)]
    records = check(first_above, *makers)
    assert left_plain(records)
    assert any(entry.graph is not None and "cos" in str(entry.graph) for entry in records.entries)


def test_nested_loops():
    records = check(nested, lambda: (np.random.default_rng(0).random((12, 14)),))
    assert left_plain(records) or records.skipped


def test_recursion_and_calls_in_loops():
    check(queens, lambda: (5,))
    check(latin_square, lambda: (np.diag([1, 2, 3, 4]),))


def test_arrays_behind_recursion():
    records = check(arrays_behind_recursion, lambda: (np.linspace(0.0, 1.0, 14), 2))
    assert any(entry.graph is not None and "exp" in str(entry.graph) for entry in records.entries)


def test_variable_that_may_be_unbound():
    check(unbound_behind, lambda: (np.arange(30.0), 20), lambda: (np.arange(30.0), 0))


def test_arrays_in_some_iterations():
    records = check(arrays_later, lambda: (np.arange(30.0), 30))
    assert not left_plain(records)


def test_loops_over_arrays_are_compiled():
    def steps(u, n):
        for _ in range(n):
            u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        return u

    assert not left_plain(check(steps, lambda: (np.arange(20.0) ** 2, 15)))

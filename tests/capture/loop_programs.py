"""Functions with loops of every shape; each returns a value that shows its effects."""

from __future__ import annotations

from tests.capture.resume_programs import (
    Log,
    cells,
    for_loop,
    nested_loops,
    suppress_loop,
    try_finally,
    while_with_break,
)


def returns_inside(values, wanted):
    for position, value in enumerate(values):
        if value == wanted:
            return position, value
        if value is None:
            raise ValueError(position)
    return -1


def returns_deep(values, wanted):
    for row in values:
        for value in row:
            if value == wanted:
                return row, value
    return None


def try_in_loop(values):
    out = []
    for value in values:
        try:
            out.append(10 // value)
            if value == 5:
                break
            if value == 4:
                return "four", out
        except ZeroDivisionError as error:
            out.append(type(error).__name__)
            continue
        except TypeError:
            out.append("type")
            break
        finally:
            out.append("finally")
        out.append("after")
    else:
        out.append("else")
    return out


def with_in_loop(values):
    log = Log(True)
    for value in values:
        with log as entered:
            entered.append(10 // value)
            if value == 2:
                continue
            if value == 3:
                break
            if value == 4:
                return "four", list(log)
            if value == 5:
                raise ValueError
    return list(log)


def maybe_unbound(values):
    for value in values:
        if value > 2:
            found = value
        if value > 3:
            found += 1
        last = value
    return found, last


def maybe_unbound_previous(values):
    out = []
    for value in values:
        if value > 1:
            out.append(previous)  # noqa: F821
        if value > 0:
            previous = value  # noqa: F841
        if value > 5:
            del previous
    return out


def maybe_unbound_caught(values):
    out = []
    for value in values:
        try:
            if value == 3:
                x = value
            out.append(x)
        except UnboundLocalError as error:
            out.append(str(error))
        if value == 4:
            del x
    return out


def deleted(values):
    kept = 0
    for value in values:
        if value == 3:
            del kept
            break
    try:
        return kept
    except UnboundLocalError:
        return "deleted"


def collatz(n):
    steps = 0
    while n != 1:
        if n % 2:
            n = 3 * n + 1
        else:
            n //= 2
        steps += 1
        if steps > 50:
            break
    else:
        steps = (steps, "else")
    return steps, n


def while_and_or(a, b):
    out = []
    while a > 0 and b > 0 or a == 5:
        a -= 1
        if a == 3:
            continue
        b -= 2
        out.append((a, b))
    return out, a, b


def while_true_return(n):
    k = 0
    while True:
        k += 1
        if k * k > n:
            return k
        for j in range(k):
            if j > 3:
                break


def closures(n):
    total = 0
    functions = []
    for k in range(n):

        def add(v, k=k):
            nonlocal total
            total += v + k
            return total

        functions.append(add)
        add(k)
        total += 1
    return total, [f(1) for f in functions]


def loop_variable_cell(n):
    functions = []
    for k in range(n):
        functions.append(lambda: k)  # noqa: B023
    return [f() for f in functions], k


def deep_expression(n):
    def pair(*values):
        return values

    return pair(1, [k * n for k in range(n) if k != 2], {k: v for k, v in zip("abc", range(n))}, n)  # noqa: C416


def in_try(values):
    out = []
    try:
        for value in values:
            out.append(10 // value)
    except ZeroDivisionError:
        out.append("zero")
    finally:
        out.append("finally")
    return out


def in_try_reads(values):
    count = 0
    try:
        for value in values:
            count += 10 // value
    except ZeroDivisionError:
        return "zero", count
    return count


def in_with(values):
    log = Log(False)
    with log:
        for value in values:
            log.append(value)
            if value == 3:
                break
    return list(log)


def return_through_finally(values):
    out = []
    try:
        for value in values:
            out.append(value)
            if value == 3:
                return out
    finally:
        out.append("finally")
    return out


def updates(n):
    total, product, names = 0, 1, {}
    for i in range(n):
        total, product = total + i, product * (i + 1)
        names[i] = total
        squares = [i * j for j in range(i)]
        i = -i
    return total, product, names, squares, i


def conditional_entry(values, flag):
    out = []
    if flag:
        out.append("flag")
    while values:
        head, *values = values
        if head == 2:
            continue
        out.append(head)
        if head == 4:
            out.append("four")
            break
    return out, values


def unpack_items(table):
    out = []
    for key, (a, b) in table.items():
        for c in (a, b):
            if c == key:
                break
        else:
            out.append(key)
            continue
        out.append((key, c))
    return out


LOOPS = [
    (for_loop, [(0,), (3,), (6,), (20,)]),
    (nested_loops, [(0,), (5,)]),
    (cells, [(0,), (4,)]),
    (suppress_loop, [([1, 0, "x", 3],), ([],)]),
    (while_with_break, [(Log,)]),
    (returns_inside, [([1, 2, 3], 2), ([1, None], 7), ([], 0), ([1], 7)]),
    (returns_deep, [([[1, 2], [3]], 3), ([[1, 2], [3]], 1), ([[]], 1)]),
    (try_in_loop, [([1, 2],), ([0, 1],), ([1, "x", 2],), ([5, 1],), ([0, 4, 1],), ([],)]),
    (with_in_loop, [([1, 2, 1],), ([3, 1],), ([1, 4],), ([5, 1],), ([0],), ([],)]),
    (maybe_unbound, [([1, 3, 4],), ([1],), ([4],), ([],)]),
    (maybe_unbound_previous, [([1, 2, 3],), ([0, 1, 0, 2],), ([2],), ([1, 6, 2],), ([],)]),
    (maybe_unbound_caught, [([1, 3, 1, 4, 5],), ([],), ([4],)]),
    (deleted, [([1, 2],), ([3],), ([],)]),
    (collatz, [(1,), (6,), (27,)]),
    (while_and_or, [(0, 0), (6, 9), (9, 3)]),
    (while_true_return, [(0,), (30,)]),
    (closures, [(0,), (3,)]),
    (loop_variable_cell, [(3,)]),
    (deep_expression, [(0,), (4,)]),
    (in_try, [([1, 2],), ([1, 0, 2],), (["x"],), ([],)]),
    (in_try_reads, [([1, 2],), ([1, 0, 2],), ([],)]),
    (in_with, [([1, 2],), ([3, 4],), ([],)]),
    (return_through_finally, [([1, 2],), ([3, 4],)]),
    (updates, [(0,), (1,), (4,)]),
    (conditional_entry, [([1, 2, 3, 4, 5], True), ([], False), ([2, 2], False)]),
    (unpack_items, [({1: (1, 2), 2: (3, 4), 5: (6, 5)},)]),
    (try_finally, [(1,)]),
]

"""``sum``, ``min``, ``max``, ``sorted`` and ``sort`` of lists in compiled loops, and bits of ints."""

import pytest

from tests.scalar_loops.runs import Run, check, outcome


def reduced(it, a, s):
    for i in it:
        a[i % len(a)] = a[-1] - i
        s += sum(a) + min(a) * 2 - max(a)
    return a, s


@pytest.mark.parametrize(
    "a",
    [[3, 1, 2], [0.1, 0.2, 1e16, -1e16], [5], [float("inf"), 1.5], [2.0, float("nan"), 1.0], [1, 2.5, 3],
     [True, 1, 2], [2**62, 2**62, 3], [2**70, 1], [10**18, 10**18], ["a", 1]],
    ids=repr,
)  # fmt: skip
def test_reductions(a):
    assert outcome(Run(reduced), (range(12), a, 0)) == outcome(reduced, (range(12), a, 0))


def test_reductions_are_compiled():
    check(reduced, range(30), [5, 3, 8, 1], 0, left=False)
    check(reduced, range(30), [0.1, 0.2, 1e16, -1e16, 3.3], 0.0, left=False)


def totals(it, a, s):
    for _ in it:
        s += sum(a)
        a.pop()
    return s


def test_lists_that_become_empty():
    check(totals, range(3), [1, 2, 3], 0, left=False)
    assert outcome(Run(totals), (range(9), [1.5, 2.5], 0)) == outcome(totals, (range(9), [1.5, 2.5], 0))


def ordered(it, a, kept, s):
    for i in it:
        a.append((i * 37) % 11)
        b = sorted(a)
        kept = a.copy()
        kept.reverse()
        kept.append(i)
        s = s * 3 % 1009 + b[len(b) // 2] * 5 + kept[0]
        if i % 3 == 0:
            a.sort()
    return a, b, kept, s, a is kept


def test_sorting():
    check(ordered, range(30), [4, 1], None, 0, left=False)
    check(ordered, range(30), [4.5, 1.5], None, 0.0)
    for a in (["b", "a"], [1, None], [(1, 2)], [2.5, 1, True]):
        assert outcome(Run(ordered), (range(4), a, None, 0)) == outcome(ordered, (range(4), a, None, 0))


def bits(it, a, s):
    for i in it:
        s += a[i].bit_length() * 100 + a[i].bit_count() + (i - 3).bit_length()
    return s


def test_bits():
    numbers = [0, 1, -1, 255, -256, 2**59, -(2**59) + 1, 12345]
    check(bits, range(8), numbers, 0, left=False)
    check(bits, range(9), [*numbers, 2**80], 0)

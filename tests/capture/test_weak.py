"""Weak references from outside: what they refer to is known where something else holds it, too."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import dyncomp


class Holder:
    def __init__(self) -> None:
        self.weight = np.arange(3.0)
        self.reference = weakref.ref(self.weight)
        self.own = weakref.ref(self)


def changed(holder, x):
    weight = holder.weight
    if holder.reference() is not weight:
        return x - 1.0
    return x * weight


def test_a_referent_is_known_and_guarded():
    holder, x = Holder(), np.ones(3)
    report = dyncomp.explain(changed)(holder, x)
    assert not report.breaks and not report.skipped
    fast = dyncomp.compile(changed)
    for _ in range(2):
        np.testing.assert_array_equal(fast(holder, x), changed(holder, x))
    holder.weight = np.full(3, 7.0)
    np.testing.assert_array_equal(fast(holder, x), x - 1.0)
    holder.reference = weakref.ref(holder.weight)
    np.testing.assert_array_equal(fast(holder, x), x * 7.0)


def test_a_referent_that_is_gone_is_none():
    def f(reference, x):
        return x + 1.0 if reference() is None else x + 2.0

    kept = Holder()
    gone = weakref.ref(Holder())
    gc.collect()
    fast, x = dyncomp.compile(f), np.ones(2)
    for reference in (gone, weakref.ref(kept), gone, weakref.ref(kept)):
        np.testing.assert_array_equal(fast(reference, x), f(reference, x))
    assert not dyncomp.explain(f)(gone, x).breaks


def drops_attribute(holder, x):
    reference = holder.reference
    before = holder.weight.sum()
    holder.weight = None
    return before, reference() is None, x + 1.0


def drops_argument(holder, x):
    reference = holder.own
    before = holder.weight.sum()
    del holder
    return before, reference() is None, x + 1.0


def drops_item(holder, x):
    inner = holder[0]
    before = inner.weight.sum()
    reference = inner.own
    del inner
    holder.clear()
    return before, reference() is None, x + 1.0


@pytest.mark.parametrize("function", [drops_attribute, drops_argument, drops_item])
def test_what_the_program_lets_go_is_gone(function):
    x = np.ones(3)
    fast = dyncomp.compile(function)
    for _ in range(3):
        arguments = [[Holder()] if function is drops_item else Holder() for _ in range(2)]
        expected = function(arguments.pop(), x)
        found = fast(arguments.pop(), x)
        assert expected[:2] == found[:2] == (3.0, True)


def test_the_referent_is_given_out_itself():
    def f(holder, x):
        weight = holder.weight
        found = holder.reference()
        found += x
        return found, weight

    holder, x = Holder(), np.ones(3)
    weight = holder.weight
    found, same = dyncomp.compile(f)(holder, x)
    assert found is weight and same is weight
    np.testing.assert_array_equal(weight, [1.0, 2.0, 3.0])


def test_references_themselves_come_and_go():
    def f(holder, x):
        return holder.reference, isinstance(holder.reference, weakref.ref), bool(holder.reference), x + 1.0

    holder, x = Holder(), np.ones(3)
    reference, *rest, _ = dyncomp.compile(f)(holder, x)
    assert reference is holder.reference and rest == [True, True]


def test_arguments_of_a_call_are_the_programs_error():
    def f(holder, x):
        weight = holder.weight
        return holder.reference(x), weight

    with pytest.raises(TypeError):
        dyncomp.compile(f)(Holder(), np.ones(3))


def test_entries_do_not_hold_the_referent():
    holder = Holder()
    seen = weakref.ref(holder.weight)
    fast = dyncomp.compile(changed)
    fast(holder, np.ones(3))
    holder.weight = None
    gc.collect()
    assert seen() is None

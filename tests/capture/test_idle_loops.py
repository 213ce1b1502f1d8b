"""Loops of inlined functions that do no array work are unrolled further than others."""

import numpy as np
import pytest

import dyncomp


class Layer:
    def __init__(self, kind):
        self.kind = kind


class Layers:
    """A sequence by ``__getitem__`` alone, whose length no iterator tells."""

    def __init__(self, number):
        self.number = number

    def __getitem__(self, position):
        if position >= self.number:
            raise IndexError(position)
        return Layer("even" if position % 2 else "odd")


class Texts(Layers):
    def __getitem__(self, position):
        if position >= self.number:
            raise IndexError(position)
        return "t" * position


def kinds(layers):
    found = []
    for layer in layers:
        if getattr(layer, "window", None) is not None:
            found.append("window")
        else:
            found.append(layer.kind)
    return found


def made(number):
    return [Layer("same") for _ in range(number)]


def repeated(x, steps):
    for step in range(steps):
        x = x * 0.5 + step
    return x


def summed(values, weight):
    total = 0.0
    for value in values:
        total += value * weight
    return total


def bookkeeping(x, number):
    return (
        x * len(kinds(Layers(number)))
        + sum(layer.kind == "same" for layer in made(number))
        + kinds(Layers(number)).count("odd")
    )


def working(x, number):
    return repeated(x, number) + 1.0


def reckoning(x, number, weight):
    return x * summed([0.5] * number, weight)


X = np.linspace(0.0, 1.0, 1000)


@pytest.mark.parametrize("number", [3, 12, 60])
def test_idle_loops_do_not_break(number):
    report = dyncomp.explain(bookkeeping)(X, number)
    assert not report.breaks
    assert len(report.graphs) == 1
    np.testing.assert_array_equal(report.result, bookkeeping(X, number))


@pytest.mark.parametrize("program", [working, bookkeeping])
def test_other_loops_are_loops(program):
    """Iterations with array work, and very many ones, are not unrolled."""
    report = dyncomp.explain(program)(X, 20 if program is working else 100)
    assert [b.id for b in report.breaks].count("loop") >= 1


def test_lengths_that_change():
    compiled = dyncomp.compile(bookkeeping)
    for number in (12, 12, 40, 80, 3, 12, 0):
        np.testing.assert_array_equal(compiled(X, number), bookkeeping(X, number))


def test_numbers_known_at_run_time():
    compiled = dyncomp.compile(reckoning)
    for weight in (0.5, 1.5, 2.5, 3.5):
        np.testing.assert_array_equal(compiled(X, 30, weight), reckoning(X, 30, weight))


def test_what_a_loop_changes_outside():
    """Objects from outside that an idle loop writes to: in the order and number of the program."""
    log = []

    class Noting:
        def __setattr__(self, name, value):
            log.append((name, value))
            object.__setattr__(self, name, value)

    def number_them(things):
        for position, thing in enumerate(things):
            thing.position = position

    def program(x, things):
        number_them(things)
        return x + things[-1].position

    compiled = dyncomp.compile(program)
    things = [Noting() for _ in range(20)]
    for _ in range(3):
        log.clear()
        expected = program(X, things)
        noted = list(log)
        log.clear()
        np.testing.assert_array_equal(compiled(X, things), expected)
        assert log == noted


def test_a_loop_over_one_kind_of_things_after_another():
    """One that no iterator tells the length of, then names: each is decided by itself."""

    def program(x):
        for things in (Texts(3), ["n" * k for k in range(12)], Texts(2)):
            for thing in things:
                x = x + len(thing)
        return x

    compiled = dyncomp.compile(lambda x: program(x) * 2.0)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(X), program(X) * 2.0)
    assert not dyncomp.explain(lambda x: program(x) * 2.0)(X).skipped

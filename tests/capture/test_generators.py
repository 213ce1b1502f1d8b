"""Generators: consumed in the frame, half-way at a break, given away; generator functions themselves."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import dyncomp
from tests.capture import generator_programs
from tests.capture.comparing import check, check_program
from tests.capture.programs import vec

PROGRAMS = generator_programs.PROGRAMS
IN_CPP = [p for p in PROGRAMS if p.name in ("for_over_generator", "partly_consumed", "half_way_at_a_break")]


@pytest.mark.parametrize("program", PROGRAMS, ids=[p.name for p in PROGRAMS])
def test_same_as_plain_python(program):
    check_program(program)


@pytest.mark.parametrize("program", IN_CPP, ids=[p.name for p in IN_CPP])
def test_same_in_cpp(program):
    check(program.function, *program.makers, backend="inductor")


def compiled(function):
    return dyncomp.compile(function, backend="eager", options={"debug_verify": True})


def test_a_generator_that_escapes_goes_on_where_it_stands():
    for _ in range(2):
        plain, first = generator_programs.escapes(vec())
        ours, found = compiled(generator_programs.escapes)(vec())
        assert np.array_equal(first, found)
        assert (ours.__name__, ours.__qualname__) == (plain.__name__, plain.__qualname__)
        assert inspect.getgeneratorstate(ours) == inspect.getgeneratorstate(plain) == "GEN_SUSPENDED"
        assert ours.gi_frame.f_lineno == plain.gi_frame.f_lineno
        assert ours.gi_code.co_filename == plain.gi_code.co_filename
        assert np.array_equal(list(ours), list(plain))


def test_a_delegating_generator_that_escapes():
    plain = generator_programs.escapes_within_a_list(vec())
    ours = compiled(generator_programs.escapes_within_a_list)(vec())
    assert ours[0] is ours[3]
    assert ours[0].gi_yieldfrom.__name__ == plain[0].gi_yieldfrom.__name__
    assert ours[0].gi_yieldfrom.gi_yieldfrom.__name__ == "scaled"
    assert np.array_equal(list(ours[0]), list(plain[0]))


def test_values_can_be_sent_to_a_generator_that_escaped():
    plain = generator_programs.escapes_after_sends(vec())
    ours = compiled(generator_programs.escapes_after_sends)(vec())
    assert np.array_equal(ours.send(1), plain.send(1))
    assert np.array_equal(ours.send(vec()), plain.send(vec()))
    ours.close()
    assert list(ours) == []


def test_several_generators_escape():
    plain = generator_programs.escapes_from_a_comprehension(vec())
    ours = compiled(generator_programs.escapes_from_a_comprehension)(vec())
    for a, b in zip(ours, plain, strict=True):
        assert np.array_equal(list(a), list(b))


def test_closures_and_sent_values_of_one_that_escaped():
    ours, function = compiled(generator_programs.escapes_with_closure)(vec())
    x, k = ours.send(5)
    assert k == 5
    assert next(ours)[0] is x
    assert next(function(1))[0] is x
    with pytest.raises(KeyError):
        ours.throw(KeyError("thrown"))


def test_an_exception_thrown_into_a_rebuilt_generator_finds_its_handlers():
    log = []

    def handling(x):
        try:
            yield x
            yield x + 1
        except ValueError as error:
            log.append((str(error), error.__traceback__.tb_lineno))
            yield x + 2
        finally:
            log.append("done")

    def program(x):
        g = handling(x)
        return g, next(g)

    seen = []
    for function in (program, compiled(program)):
        log.clear()
        g, _ = function(vec())
        seen.append((g.throw(ValueError("in")).tolist(), list(g), list(log)))
    assert seen[0] == seen[1]


# -- generator functions themselves -------------------------------------------------------------------
def test_a_compiled_generator_function_is_a_generator_function():
    function = compiled(generator_programs.chained)
    for _ in range(2):
        found = function(vec())
        assert inspect.isgenerator(found)
        assert np.array_equal(list(found), list(generator_programs.chained(vec())))


def test_explain_says_that_generator_functions_run_plain():
    function = compiled(generator_programs.chained)
    list(function(vec()))
    skipped = function.config.records.skipped
    assert skipped and "generator" in skipped[0][2]

"""Programs of every construct: compiled equals plain Python, with the breaks that are known and no more."""

from __future__ import annotations

import pytest

from tests.capture import (
    container_programs,
    control_programs,
    exception_programs,
    feature_programs,
    library_programs,
    programs,
)
from tests.capture.comparing import check, check_program

MODULES = (
    programs,
    container_programs,
    control_programs,
    exception_programs,
    feature_programs,
    library_programs,
)
EVERY = [program for module in MODULES for program in module.PROGRAMS]
IN_CPP = {
    "call_forms",
    "counter_with_nonlocal",
    "call_of_an_object",
    "attribute_writes",
    "shared_arguments",
    "iterate_rows",
    "long_loop",
    "loop_with_index",
    "nested_loops",
    "break_and_continue",
    "in_place_in_a_loop",
    "integers_overflow_in_a_loop",
    "break_two_calls_deep",
    "caught_index_error",
    "stores_that_overflow",
    "errstate",
}


def names(chosen):
    return [p.name for p in chosen]


def test_program_names_are_unique():
    assert len(set(names(EVERY))) == len(EVERY)
    assert set(names(EVERY)) >= IN_CPP


@pytest.mark.parametrize("program", EVERY, ids=names(EVERY))
def test_same_as_plain_python(program):
    check_program(program)


CPP = [p for p in EVERY if p.name in IN_CPP]


@pytest.mark.parametrize("program", CPP, ids=names(CPP))
def test_same_in_cpp(program):
    check(program.function, *program.makers, backend="inductor")


@pytest.mark.slow
@pytest.mark.parametrize("program", EVERY, ids=names(EVERY))
def test_all_same_in_cpp(program):
    check(program.function, *program.makers, backend="inductor")


@pytest.mark.parametrize("program", EVERY, ids=names(EVERY))
def test_same_with_symbolic_sizes(program):
    check(program.function, *program.makers, dynamic=True)

"""NumPy scalars, and numbers known at run time only, where a function asks for the type of an argument."""

from __future__ import annotations

import numpy as np
import pytest

import dyncomp

SINGLE = np.arange(6, dtype=np.float32)
ARGUMENTS = [SINGLE, np.int64(-3), np.array(5), np.float32(2)]


def outcome(function, *args):
    try:
        return repr(function(*args))
    except Exception as error:
        return type(error), str(error)


QUESTIONS = {
    "min_scalar_type": lambda v: np.min_scalar_type(v),
    "min_scalar_type of a number": lambda v: np.min_scalar_type(int(v.sum())),
    "issubdtype": lambda v: np.issubdtype(v, np.floating),
    "promote_types": lambda v: np.promote_types(v, np.int8),
    "dtype": lambda v: np.dtype(v),
    "finfo": lambda v: np.finfo(v).eps,
    "iinfo": lambda v: np.iinfo(v).max,
    "isdtype": lambda v: np.isdtype(v, "integral"),
    "can_cast": lambda v: np.can_cast(v, np.float64),
    "result_type": lambda v: np.result_type(v, np.int8),
    "of dtypes": lambda v: (
        np.dtype(v.dtype),
        np.issubdtype(v.dtype, np.floating),
        np.isdtype(v.dtype, "bool"),
    ),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_about_types(name):
    question = QUESTIONS[name]

    def program(v):
        return v + 1, question(v)

    for v in ARGUMENTS:
        assert outcome(dyncomp.compile(program, backend="eager"), v) == outcome(program, v)


@pytest.mark.parametrize("q", [np.float64(0.5), 0.5, 1, np.int64(1), np.float32(0.5)])
def test_quantile(q):
    for function in (np.quantile, np.percentile):
        compiled = dyncomp.compile(lambda x, function=function: function(x, q), backend="eager")
        got, wanted = compiled(SINGLE), function(SINGLE, q)
        assert type(got) is type(wanted)
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


@pytest.mark.parametrize("order", [np.int64(5), 5, np.float64(2.5)])
def test_norm(order):
    got = dyncomp.compile(lambda x: np.linalg.norm(x, order), backend="eager")(SINGLE)
    wanted = np.linalg.norm(SINGLE, order)
    assert type(got) is type(wanted)
    np.testing.assert_allclose(got, wanted, rtol=1e-6)

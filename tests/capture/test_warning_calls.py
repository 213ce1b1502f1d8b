"""``warnings.warn`` in captured code: shown as often as in plain Python; raised where a filter says so."""

from __future__ import annotations

import contextlib
import io
import sys
import warnings

import numpy as np
import pytest

import dyncomp

X = np.arange(4.0)


def old(x):
    warnings.warn("old", DeprecationWarning, stacklevel=2)
    return x * 2


def program(x):
    y = x + 1
    warnings.warn("careful", stacklevel=1)
    z = old(y)
    for _ in range(2):
        warnings.warn(message="twice", category=FutureWarning, stacklevel=1)
    return z - 1


def shown(function, action="always"):
    """What is written, for three calls."""
    globals().pop("__warningregistry__", None)
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()) as found:
        warnings.resetwarnings()
        warnings.simplefilter(action)
        for _ in range(3):
            result = function(X)
    np.testing.assert_array_equal(result, program(X))
    return found.getvalue()


def _showwarnmsg_impl(message):
    """As the module's own."""
    sys.stderr.write(warnings._formatwarnmsg(message))


@pytest.fixture(autouse=True)
def unrecorded(monkeypatch):
    """pytest records warnings."""
    monkeypatch.setattr(warnings, "_showwarnmsg_impl", _showwarnmsg_impl)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("action", ["always", "default", "module", "once", "ignore"])
def test_shown(action):
    compiled = dyncomp.compile(program, fullgraph=True)
    found = shown(compiled, action)
    assert found == shown(program, action)
    assert (
        found.count("Warning: ") == {"always": 12, "ignore": 0, "default": 3, "module": 3, "once": 3}[action]
    )


def raised(function, given):
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.filterwarnings("error", *given)
        with pytest.raises(Warning) as found:
            function(X)
    return type(found.value), str(found.value)


def test_raised():
    compiled = dyncomp.compile(program)
    line = program.__code__.co_firstlineno + 2
    for given in ((), ("o",), ("", FutureWarning), ("", Warning, __name__, line)):
        assert raised(compiled, given) == raised(program, given)
        compiled(X)  # the entry that gives them
    assert raised(dyncomp.compile(program), ()) == raised(program, ())


def test_blocks_and_callers_break():
    def in_a_block(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.warn("careful", stacklevel=1)
            return x + 1

    def of_the_caller(x):
        warnings.warn("careful", stacklevel=2)
        return x + 1

    for function in (in_a_block, of_the_caller):
        with pytest.raises(dyncomp.GraphBreakError, match="a warning"):
            dyncomp.compile(function, fullgraph=True)(X)
        np.testing.assert_array_equal(dyncomp.compile(function)(X), X + 1)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        dyncomp.compile(of_the_caller)(X)
        dyncomp.compile(program)(X)
        assert len(found) == 5
    assert (found[0].filename, found[0].lineno) == (__file__, sys._getframe().f_lineno - 3)

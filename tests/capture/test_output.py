"""``print`` to the interpreter's own stream, texts of arrays, and logging: without a break, in order."""

# ruff: noqa: UP030, UP031, UP032
from __future__ import annotations

import contextlib
import io
import logging
import sys

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import break_ids, check, differences
from tests.capture.comparing import call as plain_call


@contextlib.contextmanager
def own_stream():
    """A file of the interpreter's own, in place of what pytest puts there."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    before = sys.stdout, sys.__stdout__
    sys.stdout = sys.__stdout__ = stream
    try:
        yield stream
    finally:
        sys.stdout, sys.__stdout__ = before


def written(stream):
    stream.flush()
    text = stream.buffer.getvalue().decode()
    stream.buffer.seek(0)
    stream.buffer.truncate()
    return text


def constants(x):
    y = x + 1
    print("a")
    y = y * 2
    print("b", y.shape, None, 1.5, "é", sep="-", end="!\n")
    print()
    return y


def arrays(x):
    y = x + 1
    print(y, y.sum(), float(y[0]))
    y += 1
    x *= 2
    print(y, x)
    return y * 2


def formatted(x):
    loss = x.mean()
    print(f"loss {loss:.3f} {float(loss)!r} {x} {loss}")
    x[0] = 9
    return loss


def in_a_callee(x):
    def inner(v, verbose=False):
        if verbose:
            print("inner", v.shape)
        return v + 1

    return inner(x) + inner(x, True)


def in_a_loop(x):
    for i in range(3):
        x = x + 1
        print(i, f"{x.sum():8.2e}")
    return x


def with_lists(x):
    items = [1]
    print(items)
    items.append(2)
    print(items, {"a": 1}, (x.ndim,))
    return x + 1, items


def before_a_handled_error(x):
    try:
        print("in")
        y = x + 1
        [][1]
    except IndexError as error:
        print("error", error)
    return y


WHOLE = [constants, arrays, formatted, in_a_callee, in_a_loop, with_lists, before_a_handled_error]


def around_a_break(x):
    print("one", x)
    y = x + 1
    dyncomp.graph_break()
    print("two", y)
    return y * 2


def raises(x):
    print("before")
    y = x + 1
    raise ValueError(f"bad {y.sum():.1f}")


def in_a_long_loop(x):
    for i in range(60):
        x = x + 1
        if i % 20 == 0:
            print(i, x[0])
    return x


def flushes(x):
    y = x + 1
    print("now", flush=True)
    return y * 2


@pytest.mark.parametrize("function", [*WHOLE, around_a_break, raises, in_a_long_loop, flushes])
def test_the_interpreters_own_stream(function):
    compiled = dyncomp.compile(function, backend="eager", options={"debug_verify": True})
    for _ in range(3):
        expected, found = (_result_and_text(run) for run in (function, compiled))
        assert expected[1] == found[1]
        np.testing.assert_equal(found[0], expected[0])
    records = compiled.config.records
    assert records.counters["internal_errors"] == 0
    if function in WHOLE:
        assert not break_ids(records)
        assert not records.skipped


def _result_and_text(function):
    with own_stream() as stream:
        try:
            result = function(np.arange(1.0, 5.0))
        except ValueError as error:
            result = str(error)
        return result, written(stream)


def test_a_stream_of_the_programs_own():
    compiled = dyncomp.compile(constants, backend="eager")
    with own_stream() as stream:
        compiled(np.ones(2))
        expected = written(stream)
        assert not break_ids(compiled.config.records)
    other = io.StringIO()
    with contextlib.redirect_stdout(other):
        compiled(np.ones(2))
    assert other.getvalue() == expected
    assert "print" in break_ids(compiled.config.records)


def test_printing_fails():
    compiled = dyncomp.compile(constants, backend="eager")
    with own_stream() as stream:
        compiled(np.ones(2))
        stream.close()
        with pytest.raises(ValueError, match="closed file"):
            compiled(np.ones(2))


# -- texts ------------------------------------------------------------------------------------------
def texts(x):
    total = f"{x.sum():.2f}"
    return (
        total,
        str(x.max()),
        repr(x.min()),
        f"{x}",
        str(x),
        total + "!",
        [total.upper(), f"{total:>9}"],
        x + 1,
    )


def older_formats(x):
    total = x.sum()
    return (
        "%.2f" % total,
        "%s and %5.1f of %d" % ("a", x.max(), x.shape[0]),
        "{:.3e} {name} {}".format(total, 1, name=x.min()),
        "{0:>9}|{1}".format(total, 3),
        "%r" % float(x[0]),
        x % 2,
    )


def text_of_what_changes(x):
    before = f"{x} {x[0]:.1f}"
    x += 1
    return before, f"{x}", x * 2


def test_texts_of_arrays_are_no_breaks():
    for function in (texts, text_of_what_changes, older_formats):
        records = check(
            function, lambda: (np.arange(3.0),), lambda: (np.arange(3, dtype=np.float32),), repeats=3
        )
        assert not break_ids(records)
        assert not records.skipped


def branches_on_a_text(x):
    text = f"{x.sum():.0f}"
    return (x + 1, text) if text == "3" else (x - 1, text)


def test_a_branch_on_a_text():
    check(branches_on_a_text, lambda: (np.arange(3.0),), lambda: (np.arange(4.0),))


def has_a_wrong_format(x):
    return f"{x.sum():zz}"


def test_a_wrong_format():
    check(has_a_wrong_format, lambda: (np.arange(3.0),))


# -- logging ----------------------------------------------------------------------------------------
LOGGER = logging.getLogger("dyncomp.tests.output")


class Quiet(logging.Logger):
    def isEnabledFor(self, level):
        return level > 100


def logs(x, logger):
    logger.debug("start %s", x)
    y = x + 1
    logger.info("y is %s", y.sum())
    logger.log(5, "no")
    if logger.isEnabledFor(logging.DEBUG):
        y = y * 2
    return y


def test_messages_that_are_dropped():
    LOGGER.setLevel(logging.WARNING)
    records = check(logs, lambda: (np.ones(3), LOGGER))
    assert not break_ids(records)
    check(logs, lambda: (np.ones(3), Quiet("quiet")))


def test_messages_that_are_passed_on(caplog):
    compiled = dyncomp.compile(logs, backend="eager")
    LOGGER.setLevel(logging.WARNING)
    outcome = plain_call(logs, (np.ones(3), LOGGER))
    assert not differences(outcome, plain_call(compiled, (np.ones(3), LOGGER)))
    caplog.clear()
    with caplog.at_level(logging.DEBUG, LOGGER.name):
        for function in (logs, compiled, compiled):
            np.testing.assert_array_equal(function(np.ones(3), LOGGER), [4.0] * 3)
    messages = [r.getMessage() for r in caplog.records if r.name == LOGGER.name]
    assert messages == ["start [1. 1. 1.]", "y is 6.0"] * 3
    np.testing.assert_array_equal(compiled(np.ones(3), LOGGER), [2.0] * 3)

"""Small programs of ``except*`` and exception groups; see ``programs.Program``."""

# ruff: noqa: B904, F841, TRY201
from __future__ import annotations

from typing import Any

from tests.capture.programs import Program, one

PROGRAMS: list[Program] = []


def program(*makers: Any, breaks: tuple[str, ...] = (), plain: bool = False) -> Any:
    def add(function: Any) -> Any:
        PROGRAMS.append(Program(function, makers, breaks, plain))
        return function

    return add


def shape(value):
    """An exception, and those in it, as plain data."""
    if isinstance(value, BaseExceptionGroup):
        return [type(value).__name__, value.message, [shape(member) for member in value.exceptions]]
    return [type(value).__name__, *value.args]


def nested():
    inner = ExceptionGroup("inner", [TypeError(2), ValueError(3)])
    return ExceptionGroup("outer", [ValueError(1), inner, KeyError(4)])


class Mine(ExceptionGroup):
    def derive(self, members):
        return Mine(self.message + "!", members)


class Own(ExceptionGroup):
    def __init__(self, message, members):
        super().__init__(message, members)
        self.code = len(members)


@program(one)
def clauses_take_parts(x):
    log = []
    try:
        raise nested()
    except* ValueError as e:
        log.append(shape(e))
        x = x + len(e.exceptions)
    except* TypeError as e:
        log.append(shape(e))
    except* (KeyError, OSError) as e:
        log.append(shape(e))
    return x * 2, log


@program(one)
def no_exception(x):
    try:
        y = x + 1
    except* ValueError:
        y = x
    else:
        y = y * 2
    finally:
        y = y - 1
    return y


@program(one)
def naked_exception(x):
    log = []
    try:
        raise ValueError("naked")
    except* TypeError:
        log.append("no")
    except* ValueError as e:
        log.append(shape(e))
    return log, x + 1


@program(one)
def rest_is_caught_outside(x):
    log = []
    try:
        try:
            raise nested()
        except* ValueError as e:
            log.append(shape(e))
    except ExceptionGroup as e:
        log.append(shape(e))
        log.append(str(e))
    return log, x * 2


@program(one)
def nobody_takes_it(x):
    try:
        try:
            raise nested()
        except* OSError:
            x = x * 5
    except BaseExceptionGroup as e:
        return shape(e), x + 1
    return None, x


@program(one)
def clause_raises(x):
    log = []
    try:
        try:
            raise nested()
        except* ValueError as e:
            raise RuntimeError("new") from e
        except* TypeError:
            raise OSError("other")
    except ExceptionGroup as e:
        log.append(shape(e))
        log.append([shape(member.__cause__) if member.__cause__ else None for member in e.exceptions])
        log.append([shape(member.__context__) for member in e.exceptions[:2]])
    return log, x + 1


@program(one)
def one_clause_raises_all_taken(x):
    try:
        try:
            raise ExceptionGroup("two", [ValueError(1), KeyError(2)])
        except* ValueError:
            raise RuntimeError("only")
        except* KeyError:
            x = x + 1
    except ExceptionGroup as e:
        return shape(e), x
    except RuntimeError as e:
        return str(e), x * 3
    return None, x


@program(one)
def bare_raise_joins_the_rest(x):
    try:
        try:
            raise nested()
        except* ValueError:
            raise
        except* TypeError:
            pass
    except ExceptionGroup as e:
        return shape(e), x + 1
    return None, x


@program(one)
def named_raise_stands_alone(x):
    try:
        try:
            raise nested()
        except* ValueError as e:
            raise e
        except* TypeError:
            pass
    except ExceptionGroup as e:
        return shape(e), x + 1
    return None, x


def again():
    raise  # noqa: PLE0704


@program(one)
def raised_again_by_a_function(x):
    try:
        try:
            raise nested()
        except* ValueError:
            again()
    except ExceptionGroup as e:
        return shape(e), x + 1
    return None, x


@program(one)
def classes_of_their_own(x):
    log = []
    try:
        try:
            raise Mine("m", [ValueError(1), Mine("n", [KeyError(2), TypeError(3)])])
        except* (ValueError, KeyError) as e:
            log.append(shape(e))
    except Mine as e:
        log.append(shape(e))
    return log, x + 1


@program(one)
def class_with_init(x):
    e = Own("own", [ValueError(1), KeyError(2)])
    half = e.subgroup(ValueError)
    return e.code, shape(half), type(half) is ExceptionGroup, x + e.code


@program(one)
def split_by_classes_and_functions(x):
    e = nested()
    match, rest = e.split(ValueError)
    small = e.subgroup(lambda one: not isinstance(one, ExceptionGroup) and one.args[0] < 3)
    nothing = e.subgroup(OSError)
    same = e.split((ExceptionGroup, OSError))
    return shape(match), shape(rest), shape(small), nothing, same[0] is e, same[1], x + 1


@program(one)
def groups_escape(x):
    members = [ValueError(1), TypeError(2)]
    e = ExceptionGroup("kept", members)
    members.append(3)
    base = BaseExceptionGroup("base", [KeyboardInterrupt()])
    e.hint = "look"
    return shape(e), shape(base), len(members), e.derive([KeyError()]).message, str(e), x + 1


def made_outside(x):
    e = ExceptionGroup("kept", [ValueError(1), TypeError(2)])
    e.__cause__ = KeyError("why")
    half = e.subgroup(ValueError)
    return e, half, x + 1


@program(one)
def notes(x):
    e = ExceptionGroup("kept", [ValueError(1), TypeError(2)])
    e.add_note("first")
    half = e.subgroup(ValueError)
    e.add_note("second")
    v = ValueError("v")
    v.add_note("alone")
    return e.__notes__, half.__notes__, v.__notes__, half.__suppress_context__, x + 1


@program(one)
def in_a_loop(x):
    total = 0
    for k in range(4):
        try:
            if k % 2:
                raise ExceptionGroup("g", [ValueError(k), KeyError(k)])
            total += k
        except* ValueError as e:
            total += e.exceptions[0].args[0] * 10
        except* KeyError:
            total += 100
    return x * total


@program(one)
def names_are_unbound_afterwards(x):
    try:
        raise ExceptionGroup("g", [ValueError(1)])
    except* ValueError as e:
        pass
    try:
        e  # noqa: B018
    except NameError as error:
        return str(error), x + 1
    return None, x


@program(one)
def wrong_class(x):
    try:
        try:
            raise ValueError(1)
        except* ExceptionGroup:
            pass
    except TypeError as e:
        return str(e), x + 1
    return None, x


@program(one, breaks=("raise",), plain=True)
def rest_escapes(x):
    y = x * 2
    try:
        raise nested()
    except* ValueError:
        y = y + 1
    return y


@program(one, breaks=("raise", "inline-refused", "unsupported-call"), plain=True)
def group_is_kept(x):
    try:
        raise ExceptionGroup("g", [ValueError(1)])
    except* ValueError as e:
        kept = e
    return x + 1, shape(kept), kept.__traceback__ is not None


@program(one, breaks=("graph-break",))
def break_in_a_clause_of_another(x):
    import dyncomp

    y = x + 1
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
    except* ValueError:
        y = y * 2
    except* KeyError:
        y = y + 3
    dyncomp.graph_break()
    return y * 2

"""Programs that raise, catch and clean up: functions of an array and a list that they may write to.

``WHOLE`` are captured without a graph break, ``BROKEN`` need not be. Not a test module.
"""

# ruff: noqa: B007, B012, B016, B017, B018, B020, B023, B030, B904, C408, E722, E731, E741, F821, F841, RET503
# ruff: noqa: RET504, RET505, RET506, RET507, RET508, SIM105, SIM114, SIM115, SIM117, UP028
from __future__ import annotations

import sys
from typing import Any

WHOLE: list[Any] = []
BROKEN: list[Any] = []


def whole(function: Any) -> Any:
    WHOLE.append(function)
    return function


def broken(function: Any) -> Any:
    BROKEN.append(function)
    return function


class Plain(Exception):
    pass


class Coded(ValueError):
    def __init__(self, code, text="no text"):
        super().__init__(text)
        self.code = code

    def doubled(self):
        return self.code * 2


class Spoken(RuntimeError):
    def __str__(self):
        return f"spoken {len(self.args)}"


class Lonely(Exception):
    """Does not call the base class's ``__init__``."""

    def __init__(self, a, b):
        self.pair = (a, b)


class Ranked(Coded):
    rank = 3

    @property
    def level(self):
        return self.rank + self.code


class Manager:
    def __init__(self, log, swallow=False, name="m"):
        self.log = log
        self.swallow = swallow
        self.name = name

    def __enter__(self):
        self.log.append(("enter", self.name))
        return self

    def __exit__(self, kind, value, trace):
        self.log.append(("exit", self.name, kind, None if value is None else value.args, trace is None))
        return self.swallow


class Failing:
    def __init__(self, log, where):
        self.log = log
        self.where = where

    def __enter__(self):
        if self.where == "enter":
            raise Plain("enter")
        self.log.append("entered")

    def __exit__(self, *given):
        self.log.append(given[0])
        if self.where == "exit":
            raise Plain("exit")


def check(v, limit):
    if v > limit:
        raise Coded(v, f"over {limit}")
    return v


def parse(text):
    return int(text)


def through(v, limit):
    w = check(v, limit)
    return w + 1


# -- raised and caught ------------------------------------------------------------------------------
@whole
def raise_instance(x, log):
    try:
        raise ValueError("a", 2)
    except ValueError as e:
        return x + len(e.args), e.args, str(e), repr(e)


@whole
def raise_class(x, log):
    try:
        raise KeyError
    except KeyError as e:
        return x + 1, e.args, str(e), repr(e)


@whole
def else_runs(x, log):
    try:
        y = x * 2
    except ValueError:
        log.append("except")
    else:
        log.append("else")
    finally:
        log.append("finally")
    return y


@whole
def finally_after_catch(x, log):
    try:
        raise Plain(1)
    except Plain:
        log.append("except")
    else:
        log.append("else")
    finally:
        log.append("finally")
    return x + len(log)


@whole
def tuple_of_classes(x, log):
    for cls in (KeyError, IndexError, OSError):
        try:
            raise cls("t")
        except (IndexError, KeyError, ZeroDivisionError):
            log.append("lookup")
        except OSError:
            log.append("os")
    return x + 1


@whole
def first_match_wins(x, log):
    try:
        raise IndexError(1)
    except LookupError:
        log.append(1)
    except IndexError:
        log.append(2)
    return x + 1


@whole
def bare_except(x, log):
    try:
        raise Plain
    except:  # noqa: E722
        return x - 1


@whole
def classes_chosen_at_run_time(x, log):
    kinds = (ValueError,) if len(x) > 2 else (KeyError,)
    try:
        raise ValueError("v")
    except kinds:
        return x + 3


@whole
def name_is_deleted(x, log):
    e = 5
    try:
        raise Plain
    except Plain as e:
        log.append(1)
    try:
        return x + e
    except UnboundLocalError as u:
        return x + 1, str(u)


@whole
def user_class_with_init(x, log):
    try:
        raise Coded(7)
    except ValueError as e:
        return x + e.code, e.doubled(), str(e), e.args


@whole
def user_class_with_str(x, log):
    try:
        raise Spoken(1, 2)
    except RuntimeError as e:
        return x + 1, str(e), f"{e}", f"{e!s}", f"{e!r}", repr(e)


@whole
def init_without_super(x, log):
    try:
        raise Lonely(1, 2)
    except Lonely as e:
        return x + 1, e.pair, e.args, str(e)


@whole
def property_of_an_exception(x, log):
    try:
        raise Ranked(4)
    except Coded as e:
        return x + e.level, e.rank


@whole
def attributes_written(x, log):
    try:
        e = Plain("w")
        e.note = [1]
        e.args = (1, 2)
        raise e
    except Plain as caught:
        caught.note.append(2)
        return x + 1, caught.note, caught.args


@whole
def same_object(x, log):
    e = Plain("same")
    try:
        raise e
    except Plain as caught:
        return x + 1, caught is e, caught.args is e.args


@whole
def is_instance(x, log):
    try:
        raise Ranked(1)
    except Exception as e:
        return x + 1, isinstance(e, Coded), isinstance(e, KeyError), type(e) is Ranked, type(e).__name__


@whole
def array_in_args(x, log):
    try:
        raise Plain(x * 2)
    except Plain as e:
        return e.args[0] + 1


@whole
def in_callee(x, log):
    try:
        y = through(3, 2)
    except Coded as e:
        y = e.code
    return x + y


@whole
def handled_in_callee(x, log):
    def safe(v):
        try:
            return check(v, 2)
        except ValueError:
            return -1

    return x + safe(1) + safe(5)


@whole
def finally_in_callee(x, log):
    def tidy(v):
        try:
            return check(v, 2)
        finally:
            log.append(v)

    try:
        tidy(1)
        tidy(9)
    except Coded as e:
        return x + e.code


@whole
def unrolled_loop(x, log):
    for k in range(5):
        try:
            if k % 2:
                raise Plain(k)
            log.append(k)
        except Plain as e:
            x = x + e.args[0]
            continue
        x = x * 2
    return x + 1


@whole
def break_out_of_try(x, log):
    for k in range(4):
        try:
            if k == 2:
                break
            log.append(k)
        finally:
            log.append("f")
    return x + k


@whole
def continue_in_finally_loop(x, log):
    for k in range(3):
        try:
            continue
        finally:
            log.append(k)
    return x + 1


@whole
def while_with_handlers(x, log):
    n = 0
    while True:
        try:
            n += 1
            if n < 3:
                continue
            if n == 5:
                break
            raise KeyError(n)
        except KeyError as e:
            x = x + e.args[0]
        else:
            log.append("never")
    return x + 1, n


@whole
def return_in_try(x, log):
    try:
        return x + 1
    finally:
        log.append("f")
        x = x * 100


@whole
def return_in_finally(x, log):
    try:
        raise Plain
    finally:
        return x + 2


@whole
def return_in_handler(x, log):
    try:
        raise Plain(4)
    except Plain as e:
        return x + e.args[0]
    finally:
        log.append("f")


@whole
def nested(x, log):
    try:
        try:
            raise KeyError("inner")
        except IndexError:
            log.append("wrong")
        finally:
            log.append("finally")
    except KeyError as e:
        log.append(e.args)
    return x + 1


@whole
def raised_in_handler(x, log):
    try:
        try:
            raise KeyError("inner")
        except KeyError:
            raise ValueError("outer")
    except ValueError as e:
        return x + 1, e.__context__.args, e.__cause__, e.__suppress_context__


@whole
def raised_in_finally(x, log):
    try:
        try:
            raise KeyError("inner")
        finally:
            raise ValueError("outer")
    except ValueError as e:
        return x + 1, type(e.__context__).__name__


@whole
def raise_from(x, log):
    try:
        try:
            raise KeyError("inner")
        except KeyError as k:
            raise ValueError("outer") from k
    except ValueError as e:
        return x + 1, e.__cause__.args, e.__context__ is e.__cause__, e.__suppress_context__


@whole
def raise_from_none(x, log):
    try:
        try:
            raise KeyError("inner")
        except KeyError:
            raise ValueError("outer") from None
    except ValueError as e:
        return x + 1, e.__cause__, type(e.__context__).__name__, e.__suppress_context__


@whole
def raise_from_a_class(x, log):
    try:
        raise ValueError("outer") from KeyError
    except ValueError as e:
        return x + 1, type(e.__cause__).__name__, e.__cause__.args


@whole
def bare_raise(x, log):
    try:
        try:
            raise KeyError("again")
        except KeyError:
            log.append(1)
            raise
    except LookupError as e:
        return x + 1, e.args


@whole
def bare_raise_in_a_callee(x, log):
    def again():
        raise

    try:
        try:
            raise Plain(8)
        except Plain:
            again()
    except Plain as e:
        return x + e.args[0]


@broken
def raised_again_by_name(x, log):
    try:
        try:
            raise Plain(8)
        except Plain as e:
            raise e
    except Plain as e:
        return x + 1, e.args, e.__context__


@whole
def context_chain(x, log):
    try:
        try:
            try:
                raise KeyError(1)
            except KeyError:
                raise ValueError(2)
        except ValueError:
            raise TypeError(3)
    except TypeError as e:
        return x + 1, e.__context__.args, e.__context__.__context__.args


@broken
def handling_ends(x, log):
    try:
        raise KeyError(1)
    except KeyError:
        pass
    try:
        try:
            raise ValueError(2)
        except ValueError:
            raise TypeError(3)
    except TypeError as e:
        return x + 1, e.__context__.args, e.__context__.__context__ is None


@whole
def asserts(x, log):
    try:
        assert len(x) == 99, "length"
    except AssertionError as e:
        log.append(e.args)
    try:
        assert not len(x)
    except AssertionError as e:
        log.append(e.args)
    assert len(x) > 1
    return x + 1


@whole
def not_an_exception(x, log):
    try:
        raise 5
    except TypeError as e:
        return x + 1, str(e)


@whole
def not_a_class_to_catch(x, log):
    try:
        try:
            raise Plain
        except 5:
            pass
    except TypeError as e:
        return x + 1, str(e), type(e.__context__).__name__


@whole
def bad_cause(x, log):
    try:
        raise Plain from 5
    except TypeError as e:
        return x + 1, str(e)


@whole
def text_of_computed_numbers(x, log):
    total = 0.5
    for k in range(3):
        total = total + k
        try:
            raise Plain("total", total, x.shape[0] * 2)
        except Plain as e:
            log.append((str(e), repr(e)))
    return x + 1


@whole
def asks_what_is_handled(x, log):
    def inner():
        return sys.exc_info()[1], sys.exception()

    try:
        raise Coded(3)
    except Coded as e:
        a, b = inner()
        log.append((sys.exc_info()[0] is Coded, a is e, b is e))
    return x + 1


@whole
def nested_tuple_of_classes(x, log):
    kinds = (KeyError, (Plain, ValueError))
    try:
        try:
            raise Plain
        except kinds:
            log.append("wrong")
    except TypeError as e:
        return x + 1, str(e)

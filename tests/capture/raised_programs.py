"""Programs that raise, catch and clean up: functions of an array and a list that they may write to.

``WHOLE`` are captured without a graph break, ``BROKEN`` need not be. Not a test module.
"""

# ruff: noqa: B007, B012, B016, B017, B018, B020, B023, B030, B904, C408, E722, E731, E741, F821, F841, RET503
# ruff: noqa: RET504, RET505, RET506, RET507, RET508, SIM105, SIM114, SIM115, SIM117, UP028
from __future__ import annotations

import contextlib
import re
import sys
import threading
import traceback
from typing import Any

import numpy as np

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
        except (IndexError, (KeyError, ZeroDivisionError)):
            log.append("lookup")
        except OSError:
            log.append("os")
    return x


@whole
def first_match_wins(x, log):
    try:
        raise IndexError(1)
    except LookupError:
        log.append(1)
    except IndexError:
        log.append(2)
    return x


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
        return x, str(u)


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
        return x, str(e), f"{e}", f"{e!s}", f"{e!r}", repr(e)


@whole
def init_without_super(x, log):
    try:
        raise Lonely(1, 2)
    except Lonely as e:
        return x, e.pair, e.args, str(e)


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
        return x, caught.note, caught.args


@whole
def same_object(x, log):
    e = Plain("same")
    try:
        raise e
    except Plain as caught:
        return x, caught is e, caught.args is e.args


@whole
def is_instance(x, log):
    try:
        raise Ranked(1)
    except Exception as e:
        return x, isinstance(e, Coded), isinstance(e, KeyError), type(e) is Ranked, type(e).__name__


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
    return x


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
    return x


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
    return x, n


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
    return x


@whole
def raised_in_handler(x, log):
    try:
        try:
            raise KeyError("inner")
        except KeyError:
            raise ValueError("outer")
    except ValueError as e:
        return x, e.__context__.args, e.__cause__, e.__suppress_context__


@whole
def raised_in_finally(x, log):
    try:
        try:
            raise KeyError("inner")
        finally:
            raise ValueError("outer")
    except ValueError as e:
        return x, type(e.__context__).__name__


@whole
def raise_from(x, log):
    try:
        try:
            raise KeyError("inner")
        except KeyError as k:
            raise ValueError("outer") from k
    except ValueError as e:
        return x, e.__cause__.args, e.__context__ is e.__cause__, e.__suppress_context__


@whole
def raise_from_none(x, log):
    try:
        try:
            raise KeyError("inner")
        except KeyError:
            raise ValueError("outer") from None
    except ValueError as e:
        return x, e.__cause__, type(e.__context__).__name__, e.__suppress_context__


@whole
def raise_from_a_class(x, log):
    try:
        raise ValueError("outer") from KeyError
    except ValueError as e:
        return x, type(e.__cause__).__name__, e.__cause__.args


@whole
def bare_raise(x, log):
    try:
        try:
            raise KeyError("again")
        except KeyError:
            log.append(1)
            raise
    except LookupError as e:
        return x, e.args


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
        return x, e.args, e.__context__


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
        return x, e.__context__.args, e.__context__.__context__.args


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
        return x, e.__context__.args, e.__context__.__context__ is None


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
    return x


@whole
def not_an_exception(x, log):
    try:
        raise 5
    except TypeError as e:
        return x, str(e)


@whole
def not_a_class_to_catch(x, log):
    try:
        try:
            raise Plain
        except 5:
            pass
    except TypeError as e:
        return x, str(e), type(e.__context__).__name__


@whole
def bad_cause(x, log):
    try:
        raise Plain from 5
    except TypeError as e:
        return x, str(e)


@whole
def text_of_computed_numbers(x, log):
    total = 0.5
    for k in range(3):
        total = total + k
        try:
            raise Plain("total", total, x.shape[0] * 2)
        except Plain as e:
            log.append((str(e), repr(e)))
    return x


# -- raised by operations ---------------------------------------------------------------------------
@whole
def missing_key(x, log):
    d = {"a": 1}
    try:
        return x + d["b"]
    except KeyError as e:
        return x, e.args


@whole
def missing_key_deleted(x, log):
    d = {"a": 1}
    try:
        del d["b"]
    except KeyError as e:
        log.append(e.args[0])
    try:
        d.pop("c")
    except KeyError as e:
        log.append(e.args[0])
    return x


@whole
def index_out_of_range(x, log):
    items = [1, 2]
    for attempt in range(4):
        try:
            if attempt == 0:
                items[5]
            elif attempt == 1:
                (1, 2)[-3]
            elif attempt == 2:
                items[9] = 1
            else:
                "ab"[7]
        except IndexError as e:
            log.append(str(e))
    return x


@whole
def list_methods(x, log):
    for attempt in range(4):
        try:
            if attempt == 0:
                [].pop()
            elif attempt == 1:
                [1].pop(4)
            elif attempt == 2:
                [1].remove(2)
            else:
                [1].index(3)
        except (IndexError, ValueError) as e:
            log.append((type(e).__name__, str(e)))
    return x


@whole
def division_by_zero(x, log):
    for op in (lambda a: 1 / a, lambda a: 1 // a, lambda a: 1 % a, lambda a: divmod(1, a)):
        try:
            op(0)
        except ZeroDivisionError as e:
            log.append(str(e))
    return x


@whole
def conversions(x, log):
    for text in ("1", "x", "2"):
        try:
            x = x + parse(text)
        except ValueError as e:
            log.append(str(e))
    return x


@whole
def stop_iteration(x, log):
    it = iter([1])
    next(it)
    try:
        next(it)
    except StopIteration as e:
        return x, e.value, e.args


@whole
def unbound_local(x, log):
    if len(x) > 100:
        y = 1
    try:
        return x + y
    except NameError as e:
        return x, str(e), type(e).__name__


@whole
def unknown_global(x, log):
    try:
        return x + surely_not_defined_anywhere
    except NameError as e:
        return x, str(e)


@whole
def wrong_number_to_unpack(x, log):
    for values in ((1,), (1, 2, 3)):
        try:
            a, b = values
        except ValueError as e:
            log.append(str(e))
    try:
        a, *b, c = (1,)
    except ValueError as e:
        log.append(str(e))
    return x


@whole
def missing_attribute(x, log):
    m = Manager(log)
    try:
        m.nothing
    except AttributeError as e:
        return x, str(e)


@whole
def mixed_types(x, log):
    for op in (lambda: 1 + "a", lambda: "a" < 1, lambda: len(5)):
        try:
            op()
        except TypeError as e:
            log.append(str(e))
    return x


@whole
def in_place_message(x, log):
    n = 1
    try:
        n += "a"
    except TypeError as e:
        return x, str(e)


@whole
def wrong_arguments(x, log):
    def f(a, b, *, c=1):
        return a

    calls = [((), {}), ((1, 2, 3), {}), ((1, 2), {"d": 3}), ((1, 2), {"a": 3}), ((1,), {})]
    for args, keywords in calls:
        try:
            f(*args, **keywords)
        except TypeError as e:
            log.append(str(e))
    return x


@whole
def empty_range_step(x, log):
    try:
        range(0, 1, 0)
    except ValueError as e:
        return x, str(e)


@whole
def empty_extremes(x, log):
    for f in (min, max):
        try:
            f([])
        except ValueError as e:
            log.append(str(e))
    return x


# -- generators, comprehensions -----------------------------------------------------------------------
@whole
def generator_raises(x, log):
    def steps():
        yield 1
        raise Plain("g")

    total = 0
    try:
        for v in steps():
            total += v
    except Plain:
        total += 10
    return x + total


@whole
def generator_catches(x, log):
    def steps():
        for k in range(4):
            try:
                if k == 2:
                    raise Plain(k)
                yield k
            except Plain:
                yield 100

    return x + sum(list(steps()))


@whole
def stop_iteration_inside_generator(x, log):
    def steps():
        yield 1
        raise StopIteration("no")

    try:
        for v in steps():
            x = x + v
    except RuntimeError as e:
        return x, str(e), type(e.__cause__).__name__


@whole
def comprehension_raises(x, log):
    try:
        return [1 // k for k in (1, 0)]
    except ZeroDivisionError:
        return x


@whole
def comprehension_variable_survives(x, log):
    k = 7
    try:
        y = [1 // k for k in (1, 0)]
    except ZeroDivisionError:
        y = [k]
    return x + y[0]


@whole
def sort_key_raises(x, log):
    def key(v):
        if v == 2:
            raise Plain(v)
        return v

    try:
        return x + sorted([3, 2, 1], key=key)[0]
    except Plain as e:
        return x + e.args[0]


@broken
def extend_half_way(x, log):
    def steps():
        yield 1
        raise Plain("g")

    try:
        log.extend(steps())
    except Plain:
        log.append("caught")
    return x + 1


# -- with -----------------------------------------------------------------------------------------------
@whole
def with_normal(x, log):
    with Manager(log) as m:
        y = x + 1
    return y, m.name


@whole
def with_swallowed(x, log):
    with Manager(log, swallow=True):
        y = x + 1
        raise Plain("in")
    return y * 2


@whole
def with_passed_on(x, log):
    try:
        with Manager(log):
            y = x + 1
            raise Plain("in")
    except Plain as e:
        return y, e.args


@whole
def with_nested(x, log):
    with Manager(log, swallow=True, name="outer"):
        with Manager(log, name="inner"):
            raise KeyError(1)
    return x + 1


@whole
def with_two_items(x, log):
    with Manager(log, swallow=True, name="a") as a, Manager(log, name="b") as b:
        log.append((a.name, b.name))
        raise KeyError(1)
    return x + 1


@whole
def with_return(x, log):
    with Manager(log):
        return x + 1


@whole
def with_break_and_continue(x, log):
    for k in range(4):
        with Manager(log, name=k):
            if k == 0:
                continue
            if k == 2:
                break
            x = x + k
    return x


@whole
def with_raise_in_enter(x, log):
    try:
        with Failing(log, "enter"):
            log.append("body")
    except Plain as e:
        return x, e.args


@whole
def with_raise_in_exit(x, log):
    try:
        with Failing(log, "exit"):
            raise KeyError(5)
    except Plain as e:
        return x, e.args, e.__context__.args


@whole
def with_raise_in_exit_after_normal(x, log):
    try:
        with Failing(log, "exit"):
            x = x + 1
    except Plain as e:
        return x, e.args


@whole
def with_in_callee(x, log):
    def work(v):
        with Manager(log):
            return check(v, 2)

    try:
        return x + work(1) + work(5)
    except Coded as e:
        return x - e.code


@whole
def errstate_inside(x, log):
    try:
        with np.errstate(all="ignore"):
            y = x * 2
            with Manager(log):
                raise Plain("e")
    except Plain:
        return y


@broken
def suppress(x, log):
    with contextlib.suppress(KeyError, IndexError):
        x = x + 1
        {}["missing"]
        x = x + 100
    return x * 2


@broken
def suppress_other(x, log):
    try:
        with contextlib.suppress(KeyError):
            x = x + 1
            raise Plain
    except Plain:
        return x * 2


@broken
def nullcontext(x, log):
    with contextlib.nullcontext(3) as k:
        x = x + k
    return x


@broken
def closing(x, log):
    class Door:
        def close(self):
            log.append("closed")

    try:
        with contextlib.closing(Door()):
            x = x + 1
            raise Plain
    except Plain:
        return x * 2


@broken
def exit_stack(x, log):
    with contextlib.ExitStack() as stack:
        stack.callback(log.append, 1)
        stack.enter_context(Manager(log, swallow=True))
        x = x + 1
        raise Plain("stack")
    return x * 2


@contextlib.contextmanager
def managed(log, swallow=False):
    log.append("in")
    try:
        yield 5
    except Plain as e:
        log.append(e.args)
        if not swallow:
            raise
    finally:
        log.append("out")


@broken
def contextmanager_normal(x, log):
    with managed(log) as v:
        x = x + v
    return x * 2


@broken
def contextmanager_swallows(x, log):
    with managed(log, swallow=True) as v:
        x = x + v
        raise Plain("cm")
    return x * 2


@broken
def contextmanager_raises(x, log):
    try:
        with managed(log) as v:
            x = x + v
            raise Plain("cm")
    except Plain as e:
        return x * 2, e.args


@broken
def open_file(x, log):
    with open("/dev/null") as file:
        y = x + 1
        log.append(file.read())
        y = y * 2
    return y, file.closed


@broken
def open_file_and_raise(x, log):
    try:
        with open("/dev/null") as file:
            y = x + 1
            raise Plain("file")
    except Plain:
        y = y * 3
    return y + 1, file.closed


@broken
def held_lock(x, log):
    lock = threading.Lock()
    try:
        with lock:
            y = x + 1
            log.append(lock.locked())
            raise Plain("lock")
    except Plain:
        y = y * 3
    return y + 1, lock.locked()


# -- breaks around handlers -------------------------------------------------------------------------------
@broken
def print_in_handler(x, log):
    y = x + 1
    try:
        raise Plain("p")
    except Plain as e:
        print("handling", e, sys.exc_info()[0])
        y = y * 2
    print(sys.exc_info())
    return y + 1


@broken
def print_in_finally(x, log):
    y = x + 1
    try:
        y = y * 2
    finally:
        print("finally", sys.exc_info())
        y = y + 1
    return y * 3


@broken
def print_in_finally_while_raising(x, log):
    y = x + 1
    try:
        try:
            raise Plain("p")
        finally:
            print("finally", sys.exc_info()[0])
            y = y + 1
    except Plain:
        y = y * 3
    return y


@broken
def stored_exception(x, log):
    kept = None
    try:
        raise Plain("kept")
    except Plain as e:
        kept = e
    y = x + 1
    return y, repr(kept), [f.name for f in traceback.extract_tb(kept.__traceback__)]


@broken
def exception_in_a_list(x, log):
    for k in range(3):
        try:
            check(k, 1)
        except Coded as e:
            log.append(e)
    return x + len(log)


@broken
def returned_exception(x, log):
    e = Coded(3, "made")
    e.extra = 1
    return x + 1, e


@broken
def format_exception(x, log):
    try:
        through(3, 2)
    except Coded:
        text = traceback.format_exc()
    return x + 1, "in through" in text, "in check" in text, text.count("check(v, limit)")


@broken
def opaque_call_raises(x, log):
    y = x * 2
    try:
        v = re.compile("(").groups
    except re.error:
        v = 7
    z = y + v
    return z * 3


@broken
def opaque_call_in_a_loop(x, log):
    for text in ("a", "(", "(b)"):
        try:
            v = re.compile(text).groups
        except re.error as e:
            log.append(str(e))
            continue
        finally:
            x = x + 1
        x = x + v
    return x * 2


@broken
def opaque_call_in_a_long_loop(x, log):
    t = x
    for k in range(40):
        try:
            v = len(re.compile("(" if k % 10 == 3 else "a").pattern)
        except re.error:
            v = 100
        t = t + v
    return t * 2


@broken
def loop_inside_try(x, log):
    t = x
    try:
        for k in range(40):
            t = t + k
            if k == 35:
                t = t.reshape(9, 9)
    except ValueError:
        t = t * 2
    return t + 100


@broken
def unsure_local_behind_a_handler(x, log):
    try:
        re.compile("(")
        w = 3
    except re.error:
        pass
    z = x + 1
    try:
        return z + w
    except UnboundLocalError:
        return z * 5


@broken
def opaque_with_swallow(x, log):
    y = x + 1
    with Manager(log, swallow=True):
        re.compile("(")
        y = y + 5
    z = y * 2
    return z - 1


@broken
def handler_in_callee_breaks(x, log):
    def careful(v):
        try:
            n = re.compile("(").groups
        except re.error:
            print("in handler", sys.exc_info()[0])
            n = 7
        return v * n

    y = x + 1
    z = careful(y)
    return z + y


@broken
def break_then_raise_then_break(x, log):
    print("one")
    try:
        y = x + 1
        print("two")
        raise Plain(2)
    except Plain as e:
        y = y + e.args[0]
    print("three")
    return y * 2


@broken
def exception_groups(x, log):
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError(2), TypeError(3)])
    except* ValueError as e:
        log.append(len(e.exceptions))
    except* (KeyError, TypeError) as e:
        log.append([type(one).__name__ for one in e.exceptions])
    return x + len(log)


@broken
def naked_in_a_group(x, log):
    try:
        raise ValueError(1)
    except* ValueError as e:
        log.append(type(e).__name__)
    return x


@broken
def no_active_exception(x, log):
    try:
        raise
    except RuntimeError as e:
        return x, str(e)


@broken
def with_traceback(x, log):
    try:
        raise Plain("t").with_traceback(None)
    except Plain as e:
        return x + 1, e.__traceback__ is not None


@broken
def notes(x, log):
    try:
        try:
            raise Plain("t")
        except Plain as e:
            e.add_note("noted")
            raise
    except Plain as e:
        return x, e.__notes__


@broken
def os_errors(x, log):
    try:
        open("/nowhere/at/all")
    except FileNotFoundError as e:
        log.append((e.errno, e.filename))
    try:
        raise OSError(2, "text")
    except FileNotFoundError as e:
        log.append(e.errno)
    return x


@broken
def getattr_raises(x, log):
    class Odd:
        def __getattr__(self, name):
            raise AttributeError(f"no {name}")

    odd = Odd()
    log.append(getattr(odd, "a", 5))
    log.append(hasattr(odd, "b"))
    try:
        odd.c
    except AttributeError as e:
        log.append(str(e))
    return x


# -- what leaves the function ---------------------------------------------------------------------------
@broken
def leaves(x, log):
    y = x + 1
    raise Coded(1, "left")


@broken
def leaves_from_callee(x, log):
    y = x + 1
    z = through(3, 2)
    return y + z


@broken
def leaves_through_finally(x, log):
    try:
        x = x + 1
        z = through(3, 2)
    finally:
        log.append("f")
    return z


@broken
def leaves_through_with(x, log):
    with Manager(log):
        x = x + 1
        through(3, 2)
    return x


@broken
def leaves_wrong_handler(x, log):
    try:
        through(3, 2)
    except KeyError:
        log.append("wrong")
    return x


@broken
def leaves_from_handler(x, log):
    try:
        through(3, 2)
    except ValueError as e:
        raise RuntimeError("outer") from e
    return x


@broken
def leaves_with_context(x, log):
    try:
        through(3, 2)
    except ValueError:
        return {}["missing"]
    return x


@broken
def leaves_after_break(x, log):
    y = x + 1
    print("q")
    z = y * 2
    return z.reshape(3, 3)


def prints_and_fails(v):
    w = v + 1
    print("p")
    return w.reshape(7, 7)


def calls_what_prints(v):
    a = v * 2
    b = prints_and_fails(a)
    return b + 1


@broken
def leaves_from_break_in_callee(x, log):
    y = x + 1
    z = calls_what_prints(y)
    return z


@broken
def leaves_from_loop(x, log):
    t = x
    for k in range(40):
        t = t + k
        if k == 33:
            t = t.reshape(9, 9)
    return t


@broken
def leaves_from_loop_with_break(x, log):
    t = x
    for k in range(3):
        t = t + k
        print("k", k)
        if k == 1:
            raise KeyError(k)
    return t


def looping(v):
    for k in range(40):
        v = v + 1
        if k == 35:
            v = v.reshape(9, 9)
    return v


@broken
def leaves_from_loop_in_callee(x, log):
    y = x * 2
    z = looping(y)
    return z + 1


@broken
def leaves_from_comprehension(x, log):
    return [x.reshape(k, 2) for k in (2, 3)]


def steps_that_fail(x):
    yield x
    yield x.reshape(5, 5)


@broken
def leaves_from_generator(x, log):
    for v in steps_that_fail(x):
        log.append(v.shape)
    return x


@broken
def leaves_from_c(x, log):
    y = x + 1
    return y, len(5)


@broken
def leaves_from_graph(x, log):
    y = x + 1
    i = np.array([1, 900])
    return (y * 2)[i] + 1


def recursive(x, n):
    y = x + 1
    if n == 0:
        raise ValueError("deep")
    print("r", n)
    return recursive(y, n - 1) + 1


@broken
def leaves_from_recursion(x, log):
    return recursive(x, 4)


class Machine:
    def __init__(self, x):
        self.x = x

    def run(self, k):
        self.x = self.x + k
        return self.step(k)

    def step(self, k):
        if k > 1:
            raise Coded(k, "step")
        return self.x

    def __call__(self, k):
        return self.run(k)

    @property
    def bad(self):
        return {}["bad"]


@broken
def leaves_from_method(x, log):
    m = Machine(x)
    m.run(1)
    return m(2)


@broken
def leaves_from_property(x, log):
    m = Machine(x)
    y = x * 2
    return y, m.bad


@broken
def leaves_from_nested_function(x, log):
    y = x + 1

    def inner(v):
        log.append(1)
        return v / 0

    return y + inner(2)


@broken
def leaves_from_lambda(x, log):
    f = lambda v: v["a"]
    return x + f({})


@broken
def leaves_from_exit(x, log):
    with Failing(log, "exit"):
        x = x + 1
    return x


@broken
def leaves_from_init(x, log):
    class Made:
        def __init__(self, v):
            self.v = v
            raise Plain("init")

    return Made(x).v


@broken
def leaves_wrong_arguments(x, log):
    y = x + 1
    return through(y)


@broken
def keyboard_interrupt(x, log):
    try:
        raise KeyboardInterrupt
    except Exception:
        log.append("wrong")
    finally:
        log.append("f")
    return x


@broken
def system_exit(x, log):
    try:
        raise SystemExit(3)
    except SystemExit as e:
        return x, e.code

"""The frame hook: replacement in place, exceptions, generators, recursion, tracing, threads, fork."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import sysconfig
import textwrap
import threading

import numpy as np
import pytest

from dyncomp.capture.guards.guard import ArrayFacts, Guard, Kind, compile_guards
from dyncomp.capture.guards.source import CellSource, LocalSource
from dyncomp.hook import _hook

X = LocalSource("x", 0)


@contextlib.contextmanager
def hooked(table, should_capture=None):
    """The hook on, with ``table``: code -> entry, or a callable that makes one."""

    def on_miss(func, bound, config):
        found = table.get(func.__code__)
        return found(func, bound, config) if callable(found) else found

    def wanted(code):
        return code in table

    config = _hook.HookConfig(on_miss, should_capture or wanted)
    previous = _hook.set_active(config)
    try:
        yield config
    finally:
        _hook.set_active(previous)
        _hook.clear_all()


def replace(replacement, guards=None):
    return _hook.Entry(guards, replacement.__code__)


def test_replacement_is_run():
    def f(x):
        return ("original", x)

    def g(x):
        return ("replaced", x)

    def caller(x):
        return [f(x) for _ in range(3)]

    _hook.reset_stats()
    with hooked({f.__code__: replace(g)}):
        assert _hook.hook_installed()
        assert caller(1) == [("replaced", 1)] * 3
        assert list(map(f, [1])) == [("replaced", 1)]
    assert not _hook.hook_installed()
    assert f(1) == ("original", 1)
    stats = _hook.stats()
    assert stats["patched"] == 4
    assert stats["vectorcalled"] == 0


SIGNATURES = {
    "x": ((1,), {}),
    "x, y=2": ((1,), {}),
    "x, *rest": ((1, 2, 3), {}),
    "x, *, k=1": ((1,), {"k": 5}),
    "x, /, y, *rest, k, **kw": ((1, 2, 3), {"k": 5, "z": 6}),
    "**kw": ((), {"z": 6}),
    "*rest": ((), {}),
    "": ((), {}),
}


@pytest.mark.parametrize("style", ["code", "target", "none", "raises", "code raises"])
@pytest.mark.parametrize("signature", SIGNATURES)
def test_signatures_and_styles(signature, style):
    args, kwargs = SIGNATURES[signature]
    namespace = {}
    body = f"""
    def f({signature}):
        return dict(locals())

    def big({signature}):
        values = dict(locals())
        {"; ".join(f"v{i} = {i}" for i in range(60))}
        return ("big", values, [v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v59])

    def fails({signature}):
        v0 = v1 = v2 = 0
        raise KeyError("from replacement")
    """
    exec(textwrap.dedent(body), namespace)
    f, big, fails = namespace["f"], namespace["big"], namespace["fails"]
    expected = f(*args, **kwargs)
    names = f.__code__.co_varnames

    def raises(*values):
        raise KeyError("from target")

    entry = {
        "code": replace(big),
        "target": _hook.Entry(None, target=lambda *values: values),
        "none": _hook.Entry(None),
        "raises": _hook.Entry(None, target=raises),
        "code raises": replace(fails),
    }[style]

    def call():
        return f(*args, **kwargs)

    with hooked({f.__code__: entry}):
        for _ in range(5):
            if "raises" in style:
                with pytest.raises(KeyError):
                    call()
                continue
            result = call()
            if style == "code":
                assert result == ("big", expected, [*range(16), 59])
            elif style == "target":
                assert dict(zip(names, result)) == expected
            else:
                assert result == expected


def test_closures_and_cells():
    def outer(n):
        total = 0

        def f(x):
            nonlocal total
            total += x
            return (n, total, [x for _ in range(2)])

        return f

    def outer2(n):
        total = 0

        def f(x):
            nonlocal total
            total += 100 * x
            inner = lambda: x + n  # noqa: E731
            return ("new", n, total, inner())

        return f

    f, g = outer(1), outer2(0)
    guards = compile_guards([Guard(CellSource("n", 0), Kind.EQUALS, 1)])
    with hooked({f.__code__: _hook.Entry(guards, g.__code__)}):
        assert f(1) == ("new", 1, 100, 2)
        assert outer(2)(1) == (2, 1, [1, 1])
        assert f(1) == ("new", 1, 200, 2)


def test_guards_choose_and_recompile():
    def f(x):
        return "original"

    made = []

    def on_miss(func, bound, config):
        shape = bound[0].shape
        made.append(shape)
        facts = ArrayFacts.of(bound[0])
        return _hook.Entry(compile_guards([Guard(X, Kind.ARRAY, facts)]), target=lambda x: shape)

    arrays = [np.ones(n) for n in (1, 2, 3)]
    with hooked({f.__code__: on_miss}):
        for _ in range(3):
            assert [f(a) for a in arrays] == [(1,), (2,), (3,)]
    assert made == [(1,), (2,), (3,)]


def test_should_capture_is_asked_once():
    def f(x):
        return ("original", x)

    def h(x):
        return f(x)

    asked = []

    def wanted(code):
        asked.append(code)
        return code is h.__code__

    with hooked({}, wanted):
        h(1)
        h(2)
    assert asked.count(f.__code__) == 1
    assert _hook.get_mark(f.__code__) == "skip"
    assert _hook.get_mark(h.__code__) is None

    def raises(code):
        raise LookupError("should_capture")

    def fresh(x):
        return x

    with hooked({}, raises), pytest.raises(LookupError):
        fresh(1)


def test_on_miss_exception_reaches_the_caller():
    def f(x, y=(1, 2)):
        return x

    def fails(func, bound, config):
        raise LookupError("on_miss")

    with hooked({f.__code__: fails}):
        for _ in range(20):
            with pytest.raises(LookupError):
                f([1, 2])
            with pytest.raises(LookupError):
                list(map(f, [1]))


def test_exceptions_through_patched_frames():
    def f(x):
        return x

    def g(x):
        try:
            raise ValueError(x)
        except ValueError as error:
            raise KeyError("again") from error
        finally:
            x = None

    def caller(x):
        try:
            return f(x)
        except KeyError as error:
            return error

    with hooked({f.__code__: replace(g)}):
        for _ in range(3):
            error = caller(1)
            assert isinstance(error.__cause__, ValueError)
            names = []
            trace = error.__traceback__
            while trace is not None:
                names.append(trace.tb_frame.f_code.co_name)
                trace = trace.tb_next
            assert names == ["caller", "g"]


def test_replacement_sees_its_frame():
    def f(x, y=1):
        return x

    def g(x, y=1):
        z = 5
        frame = sys._getframe()
        return frame.f_locals.copy(), frame.f_code.co_name, frame.f_back.f_code.co_name, locals().copy(), z

    def caller():
        return f(1)

    with hooked({f.__code__: replace(g)}):
        seen, name, back, inside, _ = caller()
    assert (name, back) == ("g", "caller")
    assert seen["x"] == inside["x"] == 1
    assert seen["z"] == 5


def test_frames_outlive_the_call():
    def f(x):
        return x

    def g(x):
        a, b, c = [1], [2], [3]
        return sys._getframe(), (a, b, c)

    with hooked({f.__code__: replace(g)}):
        frames = [f(i)[0] for i in range(10)]
        gc.collect()
        assert [frame.f_locals["x"] for frame in frames] == list(range(10))
        for frame in frames:
            frame.clear()


def test_generators_and_coroutines_are_left_alone():
    def numbers(n):
        for i in range(n):
            yield helper(i)

    def helper(x):
        return x

    def helper2(x):
        return x + 100

    async def coroutine(n):
        return helper(n)

    def drive(c):
        try:
            c.send(None)
        except StopIteration as stop:
            return stop.value

    def thrown():
        try:
            yield 1
        except KeyError:
            yield helper(2)

    seen = []

    def wanted(code):
        seen.append(code.co_name)
        return code is helper.__code__

    with hooked({helper.__code__: replace(helper2)}, wanted):
        assert list(numbers(3)) == [100, 101, 102]
        assert drive(coroutine(1)) == 101
        g = thrown()
        assert next(g) == 1
        assert g.throw(KeyError) == 102
        g.close()
        assert sum(helper(i) for i in range(3)) == 303
    assert "numbers" not in seen
    assert "coroutine" not in seen


def test_module_and_class_bodies_are_left_alone():
    with hooked({}, lambda code: True):
        namespace = {}
        exec("class A:\n    x = 1\n    def m(self): return self.x\nvalue = A().m()", namespace)
        assert namespace["value"] == 1
        assert eval("(lambda: 5)()") == 5


def test_tracing_runs_the_original():
    def f(x):
        return "original"

    def g(x):
        return "replaced"

    with hooked({f.__code__: replace(g)}):
        assert f(1) == "replaced"
        for as_written, expected in ((False, "replaced"), (True, "original")):
            before = _hook.set_profiled_as_written(as_written)
            sys.setprofile(lambda *_: None)
            try:
                assert f(1) == expected
            finally:
                sys.setprofile(None)
                _hook.set_profiled_as_written(before)
        previous = sys.gettrace()
        sys.settrace(lambda *_: None)
        try:
            assert f(1) == "original"
        finally:
            sys.settrace(previous)
        if hasattr(sys, "monitoring"):
            monitoring = sys.monitoring
            starts, lines = monitoring.events.PY_START, monitoring.events.LINE
            for tool, events, expected in (
                (4, starts, "replaced"),
                (4, starts | lines, "original"),
                (1, starts, "original"),
            ):
                monitoring.use_tool_id(tool, "test")
                monitoring.set_events(tool, events)
                try:
                    assert f(1) == expected
                finally:
                    monitoring.set_events(tool, 0)
                    monitoring.free_tool_id(tool)
        assert f(1) == "replaced"


def test_needs_hook_is_only_on_inside():
    def inner(x):
        return ("original", x, _hook.hook_installed())

    def inner2(x):
        return ("replaced", x, _hook.hook_installed())

    def outer(x):
        return None

    inner_code = inner.__code__

    def outer2(x):
        return INNER(x)  # noqa: F821

    globals()["INNER"] = inner

    def on_miss(func, bound, config):
        if func.__code__ is inner_code:
            return replace(inner2)
        if func is outer:
            return _hook.Entry(None, outer2.__code__, needs_hook=True)
        return None

    config = _hook.HookConfig(on_miss)
    compiled = _hook.Dispatcher(outer, config)
    for _ in range(3):
        assert compiled(1) == ("replaced", 1, True)
        assert not _hook.hook_installed()
        assert inner(1) == ("original", 1, False)

    def nested(x):
        with_hook = compiled(x)
        return with_hook, _hook.get_active() is other

    other = _hook.HookConfig(lambda *_: None)
    previous = _hook.set_active(other)
    assert previous is None
    assert nested(1) == (("replaced", 1, True), True)
    assert _hook.set_active(None) is other


def test_original_under_the_hook_is_not_captured_twice():
    def f(x):
        return "original"

    misses = []

    def on_miss(func, bound, config):
        misses.append(func)

    config = _hook.HookConfig(on_miss)
    compiled = _hook.Dispatcher(f, config)
    with hooked({}, lambda code: code is f.__code__):
        _hook.set_active(config)
        assert compiled(1) == "original"
        assert misses == [f]
        assert f(1) == "original"
        assert misses == [f, f]


def test_original_with_hook():
    def helper(x):
        return "original"

    def helper2(x):
        return "replaced"

    globals()["HELPER"] = helper

    def f(x):
        return HELPER(x)  # noqa: F821

    def on_miss(func, bound, config):
        if func is f:
            return _hook.Entry(None, needs_hook=True)
        return replace(helper2) if func is helper else None

    compiled = _hook.Dispatcher(f, _hook.HookConfig(on_miss))
    assert compiled(1) == "replaced"
    assert compiled(1) == "replaced"


# -- recursion --------------------------------------------------------------------------------
def count(n):
    return 0 if n == 0 else 1 + count(n - 1)


@pytest.mark.parametrize("depth", [900, 50000])
def test_recursion_under_the_hook(depth):
    """The original and a replacement recurse as deep as plain Python does."""

    def f(n):
        return 0 if n == 0 else 1 + F(n - 1)  # noqa: F821

    def g(n):
        m = n
        return 0 if m == 0 else 1 + F(n - 1)  # noqa: F821

    globals()["F"] = f
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, depth + 1000))
    try:
        with hooked({f.__code__: replace(g)}):
            assert f(depth) == depth
        with hooked({}):
            assert count(depth) == depth
            assert _hook.hook_installed()
    finally:
        sys.setrecursionlimit(limit)


def test_runaway_recursion_raises():
    def f(x):
        return F(x)  # noqa: F821

    globals()["F"] = f
    with hooked({f.__code__: _hook.Entry(None)}), pytest.raises(RecursionError):
        f(1)
    compiled = _hook.Dispatcher(f, _hook.HookConfig(lambda *_: _hook.Entry(None, f.__code__)))
    globals()["F"] = compiled
    with pytest.raises(RecursionError):
        compiled(1)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10**6)
    try:
        with pytest.raises(RecursionError):
            compiled(1)
    finally:
        sys.setrecursionlimit(limit)
    assert not _hook.hook_installed()


def test_dispatcher_recursion_reaches_the_python_limit():
    def f(n):
        return 0 if n == 0 else 1 + F(n - 1)  # noqa: F821

    compiled = _hook.Dispatcher(f, _hook.HookConfig(lambda *_: _hook.Entry(None, f.__code__)))
    globals()["F"] = compiled
    assert compiled(900) == 900
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(9000)
    try:
        assert compiled(4000) == 4000
    finally:
        sys.setrecursionlimit(limit)


def test_recursion_in_a_small_thread():
    def f(n):
        return 0 if n == 0 else 1 + F(n - 1)  # noqa: F821

    globals()["F"] = f
    answers = []

    def run():
        with hooked({f.__code__: _hook.Entry(None)}):
            answers.append(f(900))
            with contextlib.suppress(RecursionError):
                f(10**5)
            answers.append("alive")

    old = threading.stack_size(1 << 20)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(old)
    assert answers == [900, "alive"]


# -- threads, processes -----------------------------------------------------------------------
def test_the_hook_is_per_thread():
    def f(x):
        return "original"

    def g(x):
        return "replaced"

    seen = {}

    def other():
        seen["other"] = f(1)
        seen["active"] = _hook.get_active()

    with hooked({f.__code__: replace(g)}):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert f(1) == "replaced"
    assert seen == {"other": "original", "active": None}


def test_threads_hammering():
    def f(x, y=0):
        return ("original", x)

    def g(x, y=0):
        a = b = c = d = x
        return ("replaced", a if b is c else d)

    globals()["F"] = f
    arrays = [np.ones(n + 1) for n in range(6)]
    errors = []

    def on_miss(func, bound, config):
        if func is not f:
            return None
        if bound[0].size == 6:
            return None
        program = compile_guards([Guard(X, Kind.ARRAY, ArrayFacts.of(bound[0]))])
        if bound[0].size % 2:
            return _hook.Entry(program, g.__code__)
        return _hook.Entry(program, target=lambda x, y: ("target", x))

    config = _hook.HookConfig(on_miss, lambda code: code is f.__code__)
    compiled = _hook.Dispatcher(f, config)
    stop = threading.Event()

    def work(seed):
        expected = {6: "original"}
        try:
            previous = _hook.set_active(config if seed % 2 else None)
            for i in range(4000):
                array = arrays[(i * 7 + seed) % 6]
                call = f if seed % 2 else compiled
                word, same = call(array)
                assert same is array
                assert word == expected.get(array.size, "replaced" if array.size % 2 else "target")
                if i % 500 == 0 and seed == 0:
                    _hook.clear(f.__code__)
            _hook.set_active(previous)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)
            _hook.set_active(None)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
        stop.set()
    assert errors == []
    assert not _hook.hook_installed()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork():
    def f(x):
        return "original"

    def g(x):
        return "replaced"

    ready, done = threading.Event(), threading.Event()

    def busy():
        with hooked({}):
            ready.set()
            done.wait()

    thread = threading.Thread(target=busy)
    thread.start()
    ready.wait()
    with hooked({f.__code__: replace(g)}):
        pid = os.fork()
        if pid == 0:
            good = f(1) == "replaced"
            _hook.set_active(None)
            good = good and f(1) == "original" and not _hook.hook_installed()
            os._exit(0 if good else 1)
        _, status = os.waitpid(pid, 0)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0


def run_script(text, *options):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    environment = dict(os.environ, PYTHONPATH=root)
    return subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
    )


def test_subinterpreters_are_refused():
    name = "_interpreters" if sysconfig.get_python_version() == "3.13" else "_xxsubinterpreters"
    script = f"""
    import {name} as interpreters
    from dyncomp.hook import _hook
    i = interpreters.create()
    code = "try:\\n    import dyncomp.hook._hook\\nexcept ImportError:\\n    pass\\n"
    code += "else:\\n    raise SystemError('imported')"
    problem = interpreters.{"exec" if name == "_interpreters" else "run_string"}(i, code)
    assert problem is None, problem
    """
    result = run_script(script)
    assert result.returncode == 0, result.stderr


def test_exit_with_the_hook_on():
    script = """
    import sys, threading, atexit, time
    from dyncomp.hook import _hook
    def f(x): return x
    def g(x): return [x]
    config = _hook.HookConfig(lambda fn, b, c: _hook.Entry(None, g.__code__) if fn is f else None)
    _hook.set_active(config)
    assert f(1) == [1]
    compiled = _hook.Dispatcher(f, config)
    atexit.register(lambda: print(f(2), compiled(3)))
    class Late:
        def __del__(self): f(4)
    sys.late = Late()
    def forever():
        _hook.set_active(config)
        while True:
            f(1)
    threading.Thread(target=forever, daemon=True).start()
    time.sleep(0.05)
    """
    for options in ((), ("-X", "dev")):
        result = run_script(script, *options)
        assert result.returncode == 0, result.stderr
        assert result.stdout == "[2] [3]\n"


def test_no_leaks_through_frames():
    import tracemalloc

    def f(x, *rest, **kw):
        return x

    def g(x, *rest, **kw):
        lists = [1], [2], [3]
        return x if lists else None

    entries = {
        "code": replace(g),
        "target": _hook.Entry(None, target=lambda x, rest, kw: x),
        "original": None,
    }
    value = object()
    for entry in entries.values():
        with hooked({f.__code__: entry}):

            def run(n):
                for _ in range(n):
                    assert f(value, 1, 2, z=3) is value

            run(100)
            references = sys.getrefcount(value), sys.getrefcount(f), sys.getrefcount(f.__code__)
            tracemalloc.start()
            run(50)
            before = tracemalloc.get_traced_memory()[0]
            run(1000)
            after = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
            assert after - before < 10_000  # other threads of the test run allocate, too
            found = sys.getrefcount(value), sys.getrefcount(f), sys.getrefcount(f.__code__)
            assert found == references


def test_large_replacement_on_a_full_stack_chunk():
    """Frames at every position of the data stack, so that some do not have room for the replacement."""

    def f(n, x):
        return (x, F(n - 1, x))[0] if n else x  # noqa: F821

    names = "\n".join(f"    v{i} = x" for i in range(300))
    namespace = globals()
    exec(f"def LARGE(n, x):\n{names}\n    return (v7, F(n - 1, x))[0] if n else v299", namespace)
    namespace["F"] = f
    for entry_made_late in (False, True):
        for depth in range(1, 60, 3):
            made = []

            def on_miss(func, bound, config, depth=depth, made=made, late=entry_made_late):
                if late and bound[0] > depth // 2:
                    return None
                made.append(1)
                return replace(namespace["LARGE"])

            code = f.__code__.replace()
            fresh = type(f)(code, namespace, "f")
            namespace["F"] = fresh
            with hooked({code: on_miss}):
                assert fresh(depth, "value") == "value"
            assert len(made) == 1

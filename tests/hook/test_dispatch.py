"""The dispatcher: binding as CPython does, entries, misses, marks, methods, lifetime."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pickle
import sys
import tracemalloc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dyncomp.capture.guards.guard import ArrayFacts, Guard, Kind, compile_guards
from dyncomp.capture.guards.source import AttrSource, CellSource, ConstSource, LocalSource
from dyncomp.hook import _hook

X = LocalSource("x", 0)
Y = LocalSource("y", 1)


def entry_for(x, **kwargs):
    return _hook.Entry(compile_guards([Guard(X, Kind.EQUALS, x)]), **kwargs)


def dispatcher(func, on_miss):
    return _hook.Dispatcher(func, _hook.HookConfig(on_miss))


def pickled(x):
    return x


pickled = _hook.Dispatcher(pickled, _hook.HookConfig())


# -- binding ----------------------------------------------------------------------------------
NAMES = ["a", "b", "c", "d", "e", "f"]


@st.composite
def signatures(draw):
    """A function that returns its locals, by random signature."""
    posonly = draw(st.integers(0, 2))
    positional = draw(st.integers(0, 2))
    kwonly = draw(st.integers(0, 2))
    defaults = draw(st.integers(0, posonly + positional))
    varargs, varkw = draw(st.booleans()), draw(st.booleans())
    names = iter(NAMES)
    parts = []
    for i in range(posonly + positional):
        name = next(names)
        parts.append(f"{name}={i * 10}" if i >= posonly + positional - defaults else name)
        if i + 1 == posonly:
            parts.append("/")
    if varargs:
        parts.append("*rest")
    elif kwonly:
        parts.append("*")
    for i in range(kwonly):
        parts.append(f"{next(names)}={i}" if draw(st.booleans()) else next(names))
    if varkw:
        parts.append("**extra")
    namespace = {}
    exec(f"def f({', '.join(parts)}):\n    return dict(locals())", namespace)
    return namespace["f"]


CALLS = st.tuples(
    st.lists(st.integers(), max_size=6),
    st.dictionaries(st.sampled_from([*NAMES, "rest", "extra", "other"]), st.integers(), max_size=5),
)


@settings(max_examples=300, deadline=None)
@given(signatures(), CALLS)
def test_binding_equals_python(func, call):
    args, kwargs = call
    seen = []

    def on_miss(f, bound, config):
        seen.append(bound)
        return _hook.Entry(None, target=lambda *values: values)

    compiled = dispatcher(func, on_miss)
    try:
        expected = func(*args, **kwargs)
    except TypeError as error:
        with pytest.raises(TypeError) as caught:
            compiled(*args, **kwargs)
        assert str(caught.value) == str(error)
        assert not seen
        return
    names = func.__code__.co_varnames
    for _ in range(2):
        values = compiled(*args, **kwargs)
        assert dict(zip(names, values)) == expected
        assert list(map(repr, values)) == [repr(expected[name]) for name in names[: len(values)]]
    assert len(seen) == 1
    replaced = dispatcher(func, lambda *_: _hook.Entry(None, func.__code__.replace(co_name="other")))
    assert replaced(*args, **kwargs) == expected


def test_many_arguments():
    names = [f"a{i}" for i in range(200)]
    namespace = {}
    exec(f"def f({', '.join(names)}, *, k=5): return ({', '.join(names)}, k)", namespace)
    compiled = dispatcher(namespace["f"], lambda *_: _hook.Entry(None, target=lambda *v: v))
    assert compiled(*range(200)) == (*range(200), 5)
    assert compiled(*range(100), **{f"a{i}": i for i in range(100, 200)}, k=1) == (*range(200), 1)
    with pytest.raises(TypeError):
        compiled(*range(199))


def test_defaults_are_read_at_call_time():
    def f(x, y=1):
        return x, y

    def g(x, y=1):
        return "new", x, y

    compiled = dispatcher(f, lambda *_: _hook.Entry(None, g.__code__))
    assert compiled(0) == ("new", 0, 1)
    f.__defaults__ = (7,)
    assert compiled(0) == ("new", 0, 7)
    f.__defaults__ = None
    with pytest.raises(TypeError):
        compiled(0)


def test_odd_keyword_names():
    class Name(str):
        pass

    def f(x, **kw):
        return x, kw

    compiled = dispatcher(f, lambda *_: _hook.Entry(None, target=lambda x, kw: ("target", x, kw)))
    assert compiled(1, y=2) == ("target", 1, {"y": 2})
    assert compiled(**{Name("x"): 1}) == (1, {})


# -- entries ----------------------------------------------------------------------------------
def test_hit_miss_and_order():
    def f(x):
        return ("original", x)

    calls = []

    def on_miss(func, bound, config):
        assert func is f
        calls.append(bound)
        if bound[0] > 5:
            return None
        return entry_for(bound[0], target=lambda x, n=bound[0]: ("entry", n, x))

    compiled = dispatcher(f, on_miss)
    for i in (1, 2, 3, 1, 2, 3, 3):
        assert compiled(i) == ("entry", i, i)
    assert calls == [(1,), (2,), (3,)]
    assert compiled(9) == ("original", 9)
    assert compiled(9) == ("original", 9)
    entries = _hook.cache_entries(f.__code__, compiled.config)
    assert len(entries) == 3
    assert [e.hits for e in entries] == [2, 1, 1]  # the last one used comes first; a fresh run is no hit
    _hook.clear(f.__code__)
    assert _hook.cache_entries(f.__code__, compiled.config) == []
    assert compiled(1) == ("entry", 1, 1)
    _hook.clear_all()
    assert _hook.cache_entries(f.__code__, compiled.config) == []


def test_new_entry_must_hold():
    def f(x):
        return "original"

    _hook.reset_stats()
    compiled = dispatcher(f, lambda *_: entry_for(5, target=lambda x: "entry"))
    assert compiled(1) == "original"
    assert compiled(5) == "entry"
    stats = _hook.stats()
    assert stats["fresh_misses"] == 1
    assert stats["hits"] == 1
    assert stats["fallbacks"] == 1


def test_arg_order_and_outputs():
    def f(x, y, z):
        return None

    class Module:
        pass

    module = Module()
    module.w = np.ones(3)
    order = dispatcher(f, lambda *_: _hook.Entry(None, target=lambda *v: v, arg_order=(2, 0, 0)))
    assert order(1, 2, 3) == (3, 1, 1)
    program = compile_guards([], [AttrSource(X, "w"), Y])
    outputs = dispatcher(f, lambda *_: _hook.Entry(program, target=lambda *v: v))
    assert outputs(module, 2, 3) == (module.w, 2)
    mixed = dispatcher(f, lambda *_: _hook.Entry(program, target=lambda *v: v, arg_order=(-1, 2, -2, 0)))
    assert mixed(module, 2, 3) == (module.w, 3, 2, module)
    none = dispatcher(f, lambda *_: _hook.Entry(None, target=lambda *v: v, arg_order=()))
    assert none(1, 2, 3) == ()
    with pytest.raises(ValueError):
        _hook.Entry(program, target=len, arg_order=(-3,))
    bad = dispatcher(f, lambda *_: _hook.Entry(None, target=lambda *v: v, arg_order=(3,)))
    with pytest.raises(SystemError):
        bad(1, 2, 3)
    many = dispatcher(f, lambda *_: _hook.Entry(None, target=lambda *v: v, arg_order=(0,) * 100))
    assert many(1, 2, 3) == (1,) * 100


def test_many_registers():
    class Box:
        pass

    box = Box()
    guards = []
    for i in range(300):
        setattr(box, f"a{i}", i)
        guards.append(Guard(AttrSource(X, f"a{i}"), Kind.EQUALS, i))
    program = compile_guards(guards, [AttrSource(X, "a299")])
    compiled = dispatcher(lambda x: "original", lambda *_: _hook.Entry(program, target=lambda v: v))
    assert compiled(box) == 299
    box.a150 = None
    assert compiled(box) == "original"


def test_closures_share_code_but_not_cells():
    def outer(n):
        def inner(x):
            return ("original", n, x)

        return inner

    def outer2(n):
        def inner(x):
            return ("entry", n, x)

        return inner

    config = _hook.HookConfig(lambda f, bound, c: _hook.Entry(None, outer2(0).__code__))
    first = _hook.Dispatcher(outer(1), config)
    second = _hook.Dispatcher(outer(2), config)
    for _ in range(3):
        assert first(0) == ("entry", 1, 0)
        assert second(0) == ("entry", 2, 0)
    assert len(_hook.cache_entries(first.__code__, config)) == 1

    def on_miss(f, bound, c):
        n = f.__closure__[0].cell_contents
        return _hook.Entry(
            compile_guards([Guard(CellSource("n", 0), Kind.EQUALS, n)]), target=lambda x: ("cell", n, x)
        )

    guarded = _hook.HookConfig(on_miss)
    assert _hook.Dispatcher(outer(3), guarded)(0) == ("cell", 3, 0)
    assert _hook.Dispatcher(outer(4), guarded)(0) == ("cell", 4, 0)
    assert len(_hook.cache_entries(first.__code__, guarded)) == 2


def test_incompatible_code_is_refused():
    def f(x):
        return x

    for replacement in (
        lambda: 0,
        lambda y: 0,
        lambda x, y: 0,
        lambda *x: 0,
        lambda x, **k: 0,
        lambda x, *, k: 0,
        lambda x, /: 0,
        lambda x: f,
    ):
        compiled = dispatcher(f, lambda *_, r=replacement: _hook.Entry(None, r.__code__))
        with pytest.raises(ValueError, match="replacement"):
            compiled(1)

    def generator(x):
        yield x

    with pytest.raises(ValueError):
        dispatcher(f, lambda *_: _hook.Entry(None, generator.__code__))(1)


def test_errors_propagate():
    def f(x):
        return "original"

    def fails(*_):
        raise LookupError("from on_miss")

    with pytest.raises(LookupError):
        dispatcher(f, fails)(1)
    with pytest.raises(TypeError, match="on_miss returned int"):
        dispatcher(f, lambda *_: 3)(1)

    def target(x):
        raise KeyError(x)

    compiled = dispatcher(f, lambda *_: _hook.Entry(None, target=target, needs_hook=True))
    for _ in range(3):
        with pytest.raises(KeyError):
            compiled(1)
        assert not _hook.hook_installed()
        assert _hook.get_active() is None


def test_no_capture_inside_on_miss():
    seen = []

    def f(x):
        return ("f", x)

    def on_miss(func, bound, config):
        seen.append(bound)
        return _hook.Entry(None, target=lambda x: ("target", compiled(x)))

    def nested(func, bound, config):
        assert compiled(7) == ("f", 7)  # plain Python
        return on_miss(func, bound, config)

    compiled = dispatcher(f, nested)
    compiled.config.on_miss = nested
    assert len(seen) == 0
    entry_target = []
    compiled = dispatcher(f, lambda *a: entry_target.append(compiled(3)) or None)
    assert compiled(1) == ("f", 1)
    assert entry_target == [("f", 3)]


def test_marks():
    def f(x):
        return "original"

    calls = []

    def on_miss(func, bound, config):
        calls.append(bound)
        return entry_for(bound[0], target=lambda x: "entry")

    compiled = dispatcher(f, on_miss)
    config = compiled.config
    assert compiled(1) == "entry"
    _hook.mark(f.__code__, "frozen", config)
    assert _hook.get_mark(f.__code__, config) == "frozen"
    assert compiled(1) == "entry"
    assert compiled(2) == "original"
    _hook.mark(f.__code__, "skip", config)
    assert compiled(1) == "original"
    _hook.mark(f.__code__, None, config)
    assert _hook.get_mark(f.__code__, config) is None
    assert compiled(2) == "entry"
    assert calls == [(1,), (2,)]
    _hook.mark(f.__code__, "skip")
    assert _hook.get_mark(f.__code__) == "skip"
    assert compiled(1) == "entry"  # that mark is for the frame hook only
    for bad in (("frozen",), ("nonsense",)):
        with pytest.raises(ValueError):
            _hook.mark(f.__code__, *bad)


# -- the object -------------------------------------------------------------------------------
def test_looks_like_the_function():
    def f(x: int, y=2) -> int:
        """Doc."""
        return x

    f.tag = "tag"
    compiled = dispatcher(f, None)
    assert (compiled.__name__, compiled.__doc__, compiled.__module__) == ("f", "Doc.", __name__)
    assert compiled.__qualname__ == f.__qualname__
    assert compiled.__wrapped__ is f
    assert compiled.tag == "tag"
    assert compiled.__code__ is f.__code__
    assert compiled.__defaults__ == (2,)
    assert inspect.signature(compiled) == inspect.signature(f)
    assert inspect.unwrap(compiled) is f
    compiled.own = 3
    assert compiled.own == 3
    assert not hasattr(f, "own")
    assert not hasattr(compiled, "nothing")
    assert "f" in repr(compiled)
    assert weakref.ref(compiled)() is compiled
    functools.update_wrapper(compiled, len)
    assert compiled.__name__ == "len"
    assert callable(compiled)
    assert compiled(5) == 5


def test_methods():
    class A:
        def __init__(self):
            self.n = 10

        def method(self, x, y=1):
            return ("original", self.n, x, y)

        def replacement(self, x, y=1):
            return ("entry", self.n, x, y)

    original = A.__dict__["method"]
    A.method = dispatcher(original, lambda *_: _hook.Entry(None, A.replacement.__code__))
    a = A()
    assert a.method(1) == ("entry", 10, 1, 1)
    assert a.method(1, y=3) == ("entry", 10, 1, 3)
    assert A.method(a, 1) == ("entry", 10, 1, 1)
    bound = a.method
    assert bound(2) == ("entry", 10, 2, 1)
    assert bound.__self__ is a
    assert bound.__func__ is A.__dict__["method"]
    assert list(map(a.method, [1])) == [("entry", 10, 1, 1)]


def test_pickle_by_reference():
    assert pickle.loads(pickle.dumps(pickled)) is pickled
    assert copy.copy(pickled) is pickled


def test_bad_construction():
    config = _hook.HookConfig()
    for args in ((len, config), (lambda: 0, 3), (3, config), ()):
        with pytest.raises(TypeError):
            _hook.Dispatcher(*args)
    for args in ((3,), (None, 3), (None, None, 3), ()):
        with pytest.raises(TypeError):
            _hook.Entry(*args)
    empty = _hook.Dispatcher.__new__(_hook.Dispatcher)
    with pytest.raises(RuntimeError):
        empty()
    repr(empty)
    with pytest.raises(AttributeError):
        empty.something  # noqa: B018
    resume = _hook.ResumeFunction.__new__(_hook.ResumeFunction)
    with pytest.raises(RuntimeError):
        resume.bind(())


# -- continuations ----------------------------------------------------------------------------
def test_resume_without_cells():
    def rest(a, b):
        return a - b

    def compiled_rest(a, b):
        return ("compiled", a - b)

    config = _hook.HookConfig(lambda *_: _hook.Entry(None, compiled_rest.__code__))
    resume = _hook.ResumeFunction(rest.__code__, globals(), "f", "outer.f", config)
    assert resume(5, 3) == ("compiled", 2)
    assert (resume.__name__, resume.__qualname__) == ("f", "outer.f")
    assert isinstance(resume, _hook.Dispatcher)
    assert resume.bind(())(5, 3) == ("compiled", 2)
    assert _hook.get_mark(rest.__code__) == "skip"


def test_resume_with_cells():
    def outer():
        n = 1

        def rest(a):
            nonlocal n
            n += a
            return n

        return rest

    rest = outer()
    config = _hook.HookConfig(lambda *_: None)
    resume = _hook.ResumeFunction(rest.__code__, globals(), "rest", "rest", config)
    with pytest.raises(TypeError, match="bind"):
        resume(1)
    assert resume.bind(rest.__closure__)(4) == 5
    assert rest(1) == 6
    for bad in ((), (1,), None, (rest.__closure__[0],) * 2):
        with pytest.raises(TypeError):
            resume.bind(bad)


# -- lifetime ---------------------------------------------------------------------------------
def test_everything_is_collected():
    def make():
        def f(x):
            return x

        config = _hook.HookConfig()

        def on_miss(func, bound, c):
            program = compile_guards([Guard(ConstSource(config, "config"), Kind.IS, config)])
            return _hook.Entry(program, func.__code__.replace(co_name="g"), payload=compiled)

        config.on_miss = on_miss
        compiled = _hook.Dispatcher(f, config)
        assert compiled(1) == 1
        return weakref.ref(compiled), weakref.ref(config)

    refs = [make() for _ in range(3)]
    gc.collect()
    assert all(ref() is None for pair in refs for ref in pair)


def test_dispatcher_may_vanish_while_running():
    holder = {}

    def f(x):
        return x

    def target(x):
        holder.clear()
        gc.collect()
        return "survived"

    def on_miss(func, bound, config):
        return _hook.Entry(None, target=target)

    holder["f"] = dispatcher(f, on_miss)
    assert holder["f"](1) == "survived"

    def clears(func, bound, config):
        holder.clear()
        _hook.clear_all()
        gc.collect()
        return _hook.Entry(None, target=lambda x: "fresh")

    holder["f"] = dispatcher(f, clears)
    assert holder["f"](1) == "fresh"


def test_cache_cleared_by_a_check():
    from dyncomp.capture.guards.fact_kinds import CustomCheck

    def f(x):
        return "original"

    def check(value, expected):
        _hook.clear_all()
        gc.collect()
        return True

    program = compile_guards([Guard(X, Kind.CUSTOM_ARRAY, CustomCheck(check, 0))])
    compiled = dispatcher(f, lambda *_: _hook.Entry(program, target=lambda x: "entry"))
    for _ in range(5):
        assert compiled(1) == "entry"


@pytest.mark.parametrize("style", ["target", "code", "none", "keywords", "miss"])
def test_no_leaks(style):
    def f(x, *rest, k=1, **kw):
        return x

    array = np.ones(3)
    facts = ArrayFacts.of(array)
    program = compile_guards([Guard(X, Kind.ARRAY, facts)])
    replacement = f.__code__.replace(co_name="g")
    entries = {
        "target": _hook.Entry(program, target=lambda *v: v[0]),
        "code": _hook.Entry(program, replacement),
        "none": _hook.Entry(program),
        "keywords": _hook.Entry(program, target=lambda *v: v[0]),
        "miss": None,
    }
    compiled = dispatcher(f, lambda *_: entries[style])

    def run(n):
        for _ in range(n):
            if style == "keywords":
                assert compiled(array, 1, 2, k=3, z=4) is array
            else:
                assert compiled(array) is array

    run(100)
    references = sys.getrefcount(array), sys.getrefcount(None), sys.getrefcount(compiled)
    tracemalloc.start()
    run(100)
    before = tracemalloc.get_traced_memory()[0]
    run(2000)
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert after - before < 2000
    assert sys.getrefcount(array) == references[0]
    assert abs(sys.getrefcount(None) - references[1]) < 200
    assert sys.getrefcount(compiled) == references[2]

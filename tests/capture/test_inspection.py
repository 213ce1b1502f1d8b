"""``inspect``: signatures and static attributes of what is traced; unions of types, proxies of dicts."""

from __future__ import annotations

import collections
import functools
import inspect
import types
from typing import Any

import numpy as np
import pytest

import dyncomp


class Base:
    attribute = 1

    def method(self, first: int, second: Any = None) -> int:
        return first

    @property
    def value(self) -> int:
        raise AssertionError("a static look-up runs nothing")


class Slotted:
    __slots__ = ("held",)


def target(a, /, b: int, *args, c=3, d: str = "x", **rest) -> float:
    return a


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


WRAPPED = decorated(target)


def validated(function):
    """As libraries check their arguments by name."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        signature = inspect.signature(function)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        ignored = [p.name for p in signature.parameters.values() if p.kind == p.VAR_KEYWORD]
        for name, given in bound.arguments.items():
            if name not in ignored and given is None:
                raise ValueError(f"{name} must be given")
        return function(*args, **kwargs)

    return wrapper


@validated
def scaled(x, factor=2.0, **options):
    return x * factor


def bound_arguments(x):
    bound = inspect.signature(target).bind(x, 2, 7, 8, d="y", extra=3)
    bound.apply_defaults()
    return x * 2, list(bound.arguments), bound.args[1:], sorted(bound.kwargs)


def parameters(x):
    signature = inspect.signature(WRAPPED)
    found = [(p.name, p.kind, p.default, p.annotation) for p in signature.parameters.values()]
    return x + 1, found, signature.return_annotation, signature == inspect.signature(target)


def given_back(x):
    outer = inspect.signature(WRAPPED, follow_wrapped=False)
    return x + 1, inspect.signature(target), inspect.signature(Base().method).parameters, outer


def argument_specification(x):
    return x - 1, inspect.getfullargspec(target), inspect.getfullargspec(Base.method)


def missing_arguments(x):
    try:
        inspect.signature(target).bind()
    except TypeError as error:
        return x + 1, str(error)


def of_own_functions(x):
    def inner(p, q=x, *, r: int = 2):
        return p

    signature = inspect.signature(inner)
    return x + 1, signature.parameters["q"].default is x, [*signature.parameters]


def validates(x):
    return scaled(x) + scaled(x, factor=3.0, other=None)


def static_attributes(x):
    missing = object()
    made = Base()
    made.own = 4
    slotted = Slotted()
    found = []
    for value in (x, made, slotted, Base, 3, "text", [1], {}, (1,), None, np.float64(3)):
        for name in ("shape", "attribute", "own", "held", "method", "value", "append", "mro", "nothing"):
            found.append(inspect.getattr_static(value, name, missing) is missing)
    return x * 2, found, inspect.getattr_static(made, "own"), inspect.getattr_static(Base, "attribute")


def static_attribute_missing(x):
    try:
        return inspect.getattr_static(x, "nothing")
    except AttributeError as error:
        return x + 1, str(error)


def kinds(x):
    flags = [inspect.isclass(Base), inspect.isfunction(target), inspect.ismethod(Base().method)]
    return x + 1, flags, inspect.ismodule(np), inspect.isbuiltin(len), inspect.isclass(x)


def proxies(x):
    entries = {"a": 1}
    proxy = types.MappingProxyType(entries)
    entries["b"] = 2
    return (
        x + 1,
        proxy,
        len(proxy),
        proxy["b"],
        proxy.get("c", 5),
        list(proxy.items()),
        "a" in proxy,
        [*proxy],
    )


def unions(x):
    return (
        x + 1,
        isinstance(x, type | np.dtype | np.ndarray),
        isinstance(np.int8, type | np.dtype),
        int | None,
    )


def of_the_library(x):
    return x + 1, "equal_nan" in inspect.signature(np.unique).parameters


PROGRAMS = [
    of_the_library,
    bound_arguments,
    parameters,
    given_back,
    argument_specification,
    missing_arguments,
    of_own_functions,
    validates,
    static_attributes,
    static_attribute_missing,
    kinds,
    proxies,
    unions,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_is_captured_whole(program):
    x = np.arange(4.0)
    compiled = dyncomp.compile(program, backend="eager", fullgraph=True)
    for _ in range(2):
        assert repr(compiled(x)) == repr(program(x))
    dyncomp.reset()


def test_a_changed_default_is_seen():
    def changing(x, factor=2):
        return x

    def program(x):
        return x * inspect.signature(changing).parameters["factor"].default

    compiled = dyncomp.compile(program, backend="eager", fullgraph=True)
    x = np.arange(3.0)
    assert compiled(x).tolist() == [0, 2, 4]
    changing.__defaults__ = (5,)
    assert compiled(x).tolist() == [0, 5, 10]


def test_static_attributes_are_guarded():
    class Known:
        pass

    def program(x, known):
        return x + 1 if inspect.getattr_static(known, "flag", None) is None else x - 1

    compiled = dyncomp.compile(program, backend="eager", fullgraph=True)
    x = np.zeros(2)
    known = Known()
    assert compiled(x, known).tolist() == [1, 1]
    known.flag = True
    assert compiled(x, known).tolist() == [-1, -1]
    del known.flag
    Known.flag = True
    assert compiled(x, known).tolist() == [-1, -1]


def test_refusals_break():
    class Shadowing:
        __slots__ = ("__dict__",)

    def program(x, obj):
        return x + 1, inspect.getattr_static(obj, "name", None)

    x = np.zeros(2)
    shadowing = Shadowing()
    shadowing.name = 3
    for obj in (shadowing, np, functools.partial(target)):
        compiled = dyncomp.compile(program, backend="eager")
        for _ in range(2):
            assert repr(compiled(x, obj)) == repr(program(x, obj))


def test_a_union_made_anew_is_known_by_its_parts():
    def program(x, union):
        return x + isinstance(x, union)

    dyncomp.reset()
    x = np.zeros(2)
    compiled = dyncomp.compile(program, backend="eager")
    for _ in range(12):
        assert compiled(x, int | np.ndarray).tolist() == [1, 1]
    assert dyncomp.stats()["recompiles"] == 0
    assert compiled(x, int | str).tolist() == [0, 0]


def by_its_signature(function):
    """As libraries look for an argument by name: the signature is made once, outside."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return function(*args, **kwargs) * bound.arguments["factor"]

    return wrapper


@by_its_signature
def shifted(x, shift=1.0, *, factor=2.0):
    return x + shift


def test_a_signature_from_outside_binds():
    compiled = dyncomp.compile(lambda x, **how: shifted(x, **how), backend="eager", fullgraph=True)
    x = np.arange(3.0)
    for _ in range(2):
        assert compiled(x).tolist() == [2, 4, 6]
        assert compiled(x, factor=3.0, shift=0.0).tolist() == [0, 3, 6]


@pytest.mark.parametrize("kind", [dict, collections.OrderedDict])
def test_a_proxy_from_outside_shows_its_mapping(kind):
    def program(x, proxy):
        total = x
        for name, value in proxy.items():
            total = total + value if name != "left" else total
        return total, proxy, proxy.get("c"), "a" in proxy

    compiled = dyncomp.compile(program, backend="eager", fullgraph=True)
    x = np.zeros(2)
    entries = kind(a=1, left=7)
    proxy = types.MappingProxyType(entries)
    for change in ({}, {"a": 2}, {"c": np.ones(2)}, {"a": np.full(2, 5.0)}):
        entries.update(change)
        for _ in range(2):
            found, expected = compiled(x, proxy), program(x, proxy)
            assert repr(found) == repr(expected)
            assert found[1] is proxy


def test_a_proxy_and_a_write_to_its_mapping():
    def program(x, proxy, entries):
        before = proxy["a"]
        entries["a"] = before + 1
        return x + proxy["a"]

    compiled = dyncomp.compile(program, backend="eager")
    x, entries = np.zeros(2), {"a": 1}
    for expected in (2, 3, 4):
        assert compiled(x, types.MappingProxyType(entries), entries).tolist() == [expected] * 2
        assert entries == {"a": expected}


def test_the_namespace_of_a_class_is_not_such_a_mapping():
    class Changing:
        flag = 1

    def program(x, proxy):
        Changing.flag += 1
        return x + proxy["flag"]

    compiled = dyncomp.compile(program, backend="eager")
    for expected in (2, 3, 4):
        assert compiled(np.zeros(2), vars(Changing)).tolist() == [expected] * 2

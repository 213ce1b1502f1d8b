"""Dictionaries of names that hold keys of the program's own, which only the program's look-ups may meet."""

from __future__ import annotations

import types
import warnings

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import check

OPTIONS = {"capture_plain": True}
SEEN: list[str] = []


class Key:
    """As a key it is met by who looks up ``name``."""

    def __init__(self, name):
        self.name = name

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        SEEN.append(f"{self.name} beside {other}")
        return False


class Changing(Key):
    """Changes the class it is a key of when it is met."""

    def __eq__(self, other):
        self.cls.__bases__ = (Second,)
        return False


class First:
    one = two = "first"


class Second:
    one = two = "second"


class Plain:
    pass


def seen():
    found = list(SEEN)
    SEEN.clear()
    return found


def make_class(key, *bases, **members):
    with warnings.catch_warnings():  # 3.13 warns of such keys
        warnings.simplefilter("ignore")
        return type("Made", bases, {key: 5, **members})


def class_that_changes(x):
    key = Changing("one")
    key.cls = make_class(key, First)
    return x + 1, key.cls.one, key.cls.two


def members_of_a_class(x):
    cls = make_class(Key("two"), First, method=lambda self, n: n + 1)
    obj = cls()
    obj.own = 3
    found = x + obj.method(obj.own), obj.two, cls.one, hasattr(obj, "three")
    return found, seen()


def class_from_outside(x, obj):
    return x + 1, obj.two, obj.one, seen()


def instance_from_outside(x, obj):
    first = obj.one
    obj.two = first + 1
    return x + first, getattr(obj, "three", None), seen()


def members_of_a_module(x, module):
    return x + module.one, hasattr(module, "two"), seen()


def reads_globals(x):
    return x + one + len(str(two))  # noqa: F821 - of the namespace that the test gives it


def odd_instance():
    obj = Plain()
    obj.one = 1
    vars(obj)[Key("one")] = 2
    vars(obj)[Key("three")] = 2
    return obj


def odd_module():
    module = types.ModuleType("odd_module")
    module.one = 1
    vars(module)[Key("one")] = 2
    return module


def test_a_class_that_changes_when_it_is_asked():
    records = check(class_that_changes, lambda: (np.arange(3.0),), options=OPTIONS)
    assert not records.internal_errors


def test_members_of_classes():
    seen()
    records = check(members_of_a_class, lambda: (np.arange(3.0),), options=OPTIONS)
    assert not records.internal_errors


@pytest.mark.parametrize(
    ("function", "make"),
    [
        (class_from_outside, lambda: make_class(Key("two"), First)()),
        (instance_from_outside, odd_instance),
        (members_of_a_module, odd_module),
    ],
)
def test_from_outside(function, make):
    compiled = dyncomp.compile(function, backend="eager", options=OPTIONS)
    x = np.arange(3.0)
    for _ in range(3):
        made, again = make(), make()
        seen()
        expected = function(x, made)
        found = compiled(x, again)
        assert np.array_equal(found[0], expected[0])
        assert found[1:] == expected[1:]


def test_globals():
    names = {"one": 1, "two": 2, Key("one"): 3, "str": str, "len": len}
    function = types.FunctionType(reads_globals.__code__, names)
    compiled = dyncomp.compile(function, backend="eager", options=OPTIONS)
    x = np.arange(3.0)
    seen()
    expected, looked_up = function(x), seen()
    for _ in range(3):
        assert np.array_equal(compiled(x), expected)
        assert seen() == looked_up


def asks_for_one_and_three(x, obj):
    return x + obj.one, getattr(obj, "three", None)


def test_guards_meet_no_key_either():
    """An instance that has such keys comes to code that was compiled for one that has none."""
    compiled = dyncomp.compile(asks_for_one_and_three, backend="eager", options=OPTIONS)
    x, obj = np.arange(3.0), Plain()
    obj.one = 1
    compiled(x, obj)
    other = odd_instance()
    seen()
    plainly, looked_up = asks_for_one_and_three(x, other), seen()
    for _ in range(3):
        found = compiled(x, other)
        assert np.array_equal(found[0], plainly[0]) and found[1] is plainly[1]
        assert seen() == looked_up


# -- methods ------------------------------------------------------------------------------------------------
class Owner:
    def method(self, n=1):
        """Says something."""
        return self, n


Owner.method.mark = "marked"


def what_methods_say(x, a, b):
    found = a.method
    names = found.__name__, found.__qualname__, found.__doc__, found.mark, found.__defaults__
    bound = found.__get__(b, Owner)
    called = found.__call__(5)
    return x + 1, names, bound()[0] is a, bound()[0] is b, called[0] is a, called[1]


def what_methods_in_c_say(x, items):
    found = items.append
    found.__call__(x)
    return len(items), found.__name__, found.__qualname__, found.__self__ is items


def test_methods_look_in_their_own_type_first():
    """``method.__get__`` is the method's own since 3.13, the function's before."""
    assert not check(
        what_methods_say, lambda: (np.arange(3.0), Owner(), Owner()), options=OPTIONS
    ).internal_errors
    assert not check(what_methods_in_c_say, lambda: (np.arange(3.0), [1]), options=OPTIONS).internal_errors

"""Capture runs no code of the program that plain Python would not run."""

from __future__ import annotations

import builtins
import enum

import numpy as np

import dyncomp
from dyncomp.hook import _hook
from tests.capture.comparing import check


class Loud(enum.Enum):
    ONE = 1

    def __repr__(self):
        raise RuntimeError("asked for its text")


class Watched:
    """Tells what is read of it."""

    def __init__(self):
        self.seen = []
        self.number = 3

    def __getattribute__(self, name):
        if name not in ("seen", "__class__"):
            self.seen.append(name)
        return super().__getattribute__(name)


def set_on_a_member(member):
    try:
        member.colour = 3
    except AttributeError as error:
        return type(error)
    return member.colour


def read_under_a_hook(make):
    obj = make()
    first = obj.number
    print("break")
    obj.number = first + 1
    return obj.number, sorted(vars(obj)), list(obj.seen)


def read_of_an_object(made):
    (obj,) = made
    first = obj.number
    print("break")
    return first, obj.number, list(obj.seen)


def names_of(obj):
    return sorted(set(dir(obj)) - set(dir(object)))


def test_text_of_an_enum_member():
    check(set_on_a_member, lambda: (Loud.ONE,), options={"capture_plain": True})


def test_attribute_hook():
    check(read_under_a_hook, lambda: (Watched,), options={"capture_plain": True})
    compiled = dyncomp.compile(read_of_an_object, backend="eager", options={"capture_plain": True})
    assert compiled([Watched()]) == read_of_an_object([Watched()])


def test_namespace_under_an_attribute_hook():
    """``dir`` asks for ``__dict__`` through the hook, which is captured, too."""
    compiled = dyncomp.compile(names_of, backend="eager", options={"capture_plain": True})
    compiled.config.should_capture = lambda code: code.co_filename == __file__
    expected = names_of(Watched())
    before = _hook.set_active(compiled.config)
    try:
        assert compiled(Watched()) == expected
    finally:
        _hook.set_active(before)


class Nameless(type):
    @property
    def __module__(cls):
        raise RuntimeError("asked for its module")


def make_one(cls):
    obj = cls()
    print("break")
    obj.x = 3
    return type(obj) is cls, obj.x, isinstance(obj, cls)


def test_class_whose_metaclass_names_it():
    cls = Nameless("cls", (), {})
    check(make_one, lambda: (cls,), options={"capture_plain": True})


def call_with_another_len():
    first = len([1, 2])
    own = builtins.len
    builtins.len = lambda items: 7
    try:
        second = len([1, 2])
    finally:
        builtins.len = own
    return first, second, len([1, 2])


def test_builtins_replaced_behind_a_break():
    check(call_with_another_len, lambda: (), options={"capture_plain": True})


class Named(type):
    """A metaclass that answers for the names of its classes, and tells what it is asked."""

    asked: list[str] = []

    def __getattribute__(cls, name):
        Named.asked.append(name)
        return 3 if name == "__qualname__" else super().__getattribute__(name)


class Misnamed(metaclass=Named):
    pass


def is_one(obj, x):
    return isinstance(obj, tuple), obj is None, x * 2


def test_names_of_a_class():
    obj = Misnamed()
    compiled = dyncomp.compile(is_one, backend="eager")
    before = dyncomp.stats()["internal_errors"]
    Named.asked.clear()
    assert is_one(obj, 3) == compiled(obj, 3) == compiled(obj, 4.5)[:2] + (6,)
    assert "__qualname__" not in Named.asked
    assert dyncomp.stats()["internal_errors"] == before


def test_namespaces_of_metaclasses_are_not_asked():
    """``vars`` of a class asks its metaclass, whose ``__dict__`` may be the program's."""
    asked = []

    class Meta(type):
        @property
        def __dict__(self):
            asked.append(self)

    class Thing(metaclass=Meta):
        def __init__(self):
            self.factor = 3.0

    thing = Thing()

    def program(x):
        return x * thing.factor + Thing().factor

    compiled = dyncomp.compile(program, backend="eager", options={"strict": True})
    for _ in range(2):
        assert compiled(np.ones(2)).tolist() == [6.0, 6.0]
    assert not asked

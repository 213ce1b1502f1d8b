"""Partial methods, classes while they are made, descriptors of metaclasses."""

from __future__ import annotations

import functools

import numpy as np

from tests.capture.comparing import check


class Partly:
    def method(self, a, b):
        return self, a, b

    part = functools.partialmethod(method, 1)


def bound_part(x):
    found = Partly().part
    owner, a, b = found(2)
    return x + a, b, found.__self__ is owner, functools.partial(found, 3)()[1:]


def test_partial_methods_know_their_object():
    assert not check(bound_part, lambda: (np.arange(3.0),)).internal_errors


class Meta(type):
    __hash__ = None

    def mro(cls):
        reach.append(cls.__mro__ is None)
        return super().mro()


reach: list = []


def made_by_the_metaclass(x):
    made = Meta("Made", (), {"size": 3})
    return x + made.size, reach[-1]


def test_unhashable_classes_and_those_being_made():
    records = check(made_by_the_metaclass, lambda: (np.arange(3.0),), options={"capture_plain": True})
    assert not records.internal_errors


class OnlySet:
    def __set__(self, obj, value):
        raise AssertionError


class Watching(type):
    pass


class Watched(metaclass=Watching):
    level = 42


Watching.level = OnlySet()


def level_of_a_class(x):
    return x + Watched.level


def test_descriptors_of_metaclasses_that_only_set():
    check(level_of_a_class, lambda: (np.arange(3.0),))

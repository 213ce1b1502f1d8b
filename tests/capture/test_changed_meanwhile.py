"""Containers that the program's methods or functions change, or look at, while C goes through them."""

from __future__ import annotations

import functools
from collections import deque

import pytest

from tests.capture import in_turn_library_programs, in_turn_programs
from tests.capture.comparing import check


class Emptying:
    def __init__(self, target, answer=NotImplemented):
        self.target = target
        self.answer = answer

    def __eq__(self, other):
        self.target.clear()
        return self.answer


class Turning:
    def __init__(self, target):
        self.target = target

    def __eq__(self, other):
        self.target.rotate(1)
        self.target.rotate(-1)
        return False


class Odd:
    def __lt__(self, other):
        return "less"


def filled(make, cls=Emptying):
    target = make()
    target.extend([cls(target), 5, 5])
    return target


def lists_equal():
    first, second = [], []
    first.append(Emptying(second))
    second.append(Emptying(first))
    third = []
    third.append(Emptying(third))
    return first == second, third == [1], third


def list_less():
    return filled(list) < [1, 2], [Odd()] < [Odd()], (Odd(),) < (Odd(),)


def list_contains():
    target = filled(list)
    return 5 in target, target


def list_count():
    return filled(list).count(5)


def list_index():
    return filled(list).index(5)


def list_remove():
    filled(list).remove(5)


def deque_contains():
    return 5 in filled(deque)


def deque_contains_turning():
    return 5 in filled(deque, Turning)


def deque_count():
    return filled(deque).count(5)


def deque_index():
    return filled(deque).index(5)


def deques_equal():
    return filled(deque) == deque([1, 2, 3])


def dicts_equal():
    target = {}
    target[1] = Emptying(target)
    target[2] = 3
    return target == {1: 2, 2: 3}


def dict_values():
    target = {}
    target[1] = Emptying(target)
    target[2] = 3
    return 3 in target.values()


def sort_sees_nothing():
    items = [3, 1, 2]
    seen = []

    def key(item):
        seen.append(len(items))
        return item

    items.sort(key=key)
    return items, seen


def sort_with_changes():
    items = [3, 1, 2]

    def key(item):
        items.append(item)
        return item

    try:
        items.sort(key=key)
    except ValueError as error:
        return items, str(error)


def sort_that_raises():
    items = [3, 1, 2]

    def key(item):
        if item == 2:
            raise KeyError(item)
        return item

    try:
        items.sort(key=key)
    except KeyError:
        return items


def extended_by_its_length(make):
    target = make()

    def size(_):
        return len(target)

    target.extend(map(size, range(4)))
    target += map(size, range(4))
    return target


def list_extended():
    return extended_by_its_length(list)


def deque_extended():
    return extended_by_its_length(deque)


def extended_until_an_exception():
    target = []

    def picky(number):
        if number == 2:
            raise KeyError(number)
        return number

    try:
        target += map(picky, range(4))
    except KeyError:
        return target


def outdated_iterators():
    full, empty = deque("abc"), deque()
    elements = {1, 2, 3}
    iterators = [iter(full), reversed(empty), iter(elements)]
    elements.discard(2)
    full.pop()
    empty.append(1)
    print("a break")
    return iterators


def next_of_outdated():
    seen = []
    for iterator in outdated_iterators():
        try:
            next(iterator)
        except RuntimeError as error:
            seen.append(str(error))
    return seen


def greatest_of_growing():
    items = [1, 2, 3]

    def key(item):
        if len(items) < 6:
            items.append(item * 5)
        return item

    return max(items, key=key), items


def reduced_while_growing():
    items = [1, 2]

    def add(a, b):
        if len(items) < 5:
            items.append(b)
        return a + b

    return functools.reduce(add, items)


def in_turn():
    order = []

    def noted(number):
        order.append(number)
        return number

    def add(a, b):
        order.append("+")
        return a + b

    functools.reduce(add, map(noted, range(3)))
    max(map(noted, range(3)), key=noted)
    return order


def dict_updated():
    target = {}
    target.update((number, len(target)) for number in range(3))
    target |= ((-number, len(target)) for number in range(3))
    return target


class Growing:
    def __init__(self, items):
        self.items = items

    def __radd__(self, other):
        if len(self.items) < 5:
            self.items.append(Growing(self.items))
        return other + 1


def sum_of_growing():
    items = []
    items.append(Growing(items))
    return sum(items)


PROGRAMS = [
    greatest_of_growing,
    reduced_while_growing,
    in_turn,
    dict_updated,
    sum_of_growing,
    lists_equal,
    list_less,
    list_contains,
    list_count,
    list_index,
    list_remove,
    deque_contains,
    deque_contains_turning,
    deque_count,
    deque_index,
    deques_equal,
    dicts_equal,
    dict_values,
    sort_sees_nothing,
    sort_with_changes,
    sort_that_raises,
    list_extended,
    deque_extended,
    extended_until_an_exception,
    next_of_outdated,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_changed_meanwhile(program):
    check(program, lambda: (), options={"capture_plain": True})


IN_TURN = [*in_turn_programs.PROGRAMS, *in_turn_library_programs.PROGRAMS]


@pytest.mark.parametrize("program", IN_TURN, ids=lambda program: program.__name__)
def test_in_turn(program):
    check(program, lambda: (), options={"capture_plain": True})

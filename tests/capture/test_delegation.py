"""``yield from`` an object of the program: its values, what is sent to it, and the value it returns."""

from __future__ import annotations

import pytest

from tests.capture.comparing import break_ids, check


class Counter:
    def __init__(self, start):
        self.left = start

    def __iter__(self):
        return self

    def __next__(self):
        if not self.left:
            raise StopIteration(42)
        self.left -= 1
        return self.left


class Silent(Counter):
    def __next__(self):
        if not self.left:
            raise StopIteration
        self.left -= 1
        return self.left


class Answering(Counter):
    def send(self, value):
        return value * 2


def value_of_yield_from(cls):
    out = []

    def generate():
        out.append((yield from cls(3)))

    out.extend(generate())
    return out


def send_through(cls):
    def generate():
        yield (yield from cls(3))

    steps = generate()
    found = [next(steps), steps.send(None)]
    try:
        found.append(steps.send(5))
    except AttributeError as error:
        found.append(str(error))
    return found


@pytest.mark.parametrize("cls", [Counter, Silent, Answering])
def test_delegation(cls):
    records = check(value_of_yield_from, lambda: (cls,), options={"capture_plain": True})
    assert not break_ids(records)
    check(send_through, lambda: (cls,), options={"capture_plain": True})

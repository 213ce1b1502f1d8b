"""Tuples that the program makes are new ones; ``hash()`` and ``ascii()`` of what special methods return."""

from __future__ import annotations

import pytest

import dyncomp
from tests.capture.comparing import check


def pair(a, b):
    return a, b


def make():
    return pair(1, 2)


def made_twice():
    return pair(1, 2) is pair(1, 2), pair(1, (3, 4))[1] is pair(1, (3, 4))[1]


class Hashed:
    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return self.number


def hash_of(number):
    return hash(Hashed(number))


def test_new_at_each_call():
    compiled = dyncomp.compile(make, backend="eager", options={"capture_plain": True})
    first = compiled()
    assert first == compiled() == (1, 2)
    assert first is not compiled()


def test_new_at_each_place():
    check(made_twice, lambda: (), options={"capture_plain": True})


@pytest.mark.parametrize("number", [0, -1, -2, 2**61 - 1, 2**61, -(2**63), 2**63 - 1, 2**63, -(2**70), 7**40])
def test_hash(number):
    check(hash_of, lambda: (number,), options={"capture_plain": True})


class Shown:
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def ascii_of(text):
    return ascii(Shown(text)), f"{Shown(text)!a}", repr(Shown(text))


@pytest.mark.parametrize("text", ["plain", "'quoted'", "\xe9", "\u20ac", "<\U0001f40d>"])
def test_ascii(text):
    check(ascii_of, lambda: (text,), options={"capture_plain": True})

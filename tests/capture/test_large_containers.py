"""Large containers from outside are not looked into item by item."""

from __future__ import annotations

import collections
from types import SimpleNamespace

import pytest

import dyncomp
from tests.capture.comparing import break_ids, check


def drain(queue):
    total = 0
    while queue:
        total += queue.popleft()
    return total


def test_large_deque_breaks():
    records = check(drain, lambda: (collections.deque(range(600)),), options={"capture_plain": True})
    assert "unsupported-operation" in break_ids(records)


def test_forms_of_a_loop_over_a_deque_are_few():
    compiled = dyncomp.compile(drain, backend="eager", options={"capture_plain": True})
    assert compiled(collections.deque(range(5000))) == sum(range(5000))
    assert len(compiled.config.records.entries) < 20


def sum_of(items, scale):
    total = 0
    for item in items:
        total += item
    return total * scale


def is_member(items, item):
    return item in items, len(items)


@pytest.mark.parametrize("make", [tuple, list, set, frozenset, collections.deque, dict.fromkeys])
def test_large_container_breaks(make):
    items = make(range(3000))
    records = check(is_member, lambda: (items, 7), lambda: (items, -1), options={"capture_plain": True})
    assert break_ids(records) or records.skipped
    assert max(len(entry.guards) for entry in records.entries) < 50
    records = check(sum_of, lambda: (items, 2), options={"capture_plain": True})
    assert max(len(entry.guards) for entry in records.entries) < 50


def test_large_tuple_as_an_attribute_and_a_variable():
    def inner(table, i):
        return table[i] + len(holder.table)

    holder = SimpleNamespace(table=tuple(range(5000)))
    records = check(inner, lambda: (holder.table, 4000), options={"capture_plain": True})
    assert max(len(entry.guards) for entry in records.entries) < 50

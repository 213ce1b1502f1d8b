"""Large containers from outside are not looked into item by item."""

from __future__ import annotations

import collections

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

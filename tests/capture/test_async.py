"""Coroutines and asynchronous generators: they run as plain Python, whoever is compiled."""

from __future__ import annotations

import asyncio
import inspect

import numpy as np
import pytest

import dyncomp
from tests.capture.comparing import check
from tests.capture.programs import vec


def work(x):
    y = x * 2 + 1
    return y.sum()


async def awaits(x):
    await asyncio.sleep(0)
    return work(x)


async def yields(x):
    for i in range(3):
        yield x * i
        await asyncio.sleep(0)


class Manager:
    async def __aenter__(self):
        return 3

    async def __aexit__(self, *error):
        return False


async def everything(x):
    total = 0
    async for v in yields(x):
        total = total + v
    async with Manager() as k:
        total = total * k
    found = [v async for v in yields(x) if v is not None]
    both = await asyncio.gather(awaits(x), awaits(x + 1))
    return total, found, both, sum([v.sum() async for v in yields(x)])


def compiled(function):
    return dyncomp.compile(function, backend="eager", options={"debug_verify": True})


@pytest.mark.parametrize("function", [awaits, everything])
def test_compiled_coroutine_functions(function):
    ours = compiled(function)
    assert inspect.iscoroutinefunction(ours)
    assert str(asyncio.run(ours(vec()))) == str(asyncio.run(function(vec())))
    assert "coroutine" in ours.config.records.skipped[0][2]


def test_compiled_asynchronous_generator_functions():
    async def consume(function):
        return [v async for v in function(vec())]

    ours = compiled(yields)
    assert np.array_equal(asyncio.run(consume(ours)), asyncio.run(consume(yields)))


def runs(x):
    return asyncio.run(everything(x))


def closes(x):
    c = awaits(x)
    y = x + 1
    c.close()
    return y * 2


def steps(x):
    c = awaits(x)
    y = x * 3
    try:
        while True:
            c.send(None)
    except StopIteration as stop:
        return stop.value, y


def nested(x):
    async def inner(i):
        await asyncio.sleep(0)
        return x * i

    y = x + 1
    return asyncio.run(inner(3)) + y


@pytest.mark.parametrize("function", [runs, closes, steps, nested])
def test_functions_that_use_coroutines(function):
    records = check(function, lambda: (vec(),))
    assert records.counters["internal_errors"] == 0


def test_functions_called_from_coroutines_are_captured():
    ours = compiled(work)

    async def calls():
        await asyncio.sleep(0)
        return ours(vec()), ours(vec() + 1)

    assert asyncio.run(calls()) == (work(vec()), work(vec() + 1))
    assert len(ours.config.records.entries) == 1


def test_tasks_interleave():
    ours = compiled(work)

    async def many(n):
        found = []
        for i in range(5):
            found.append(ours(vec(n) + i))
            await asyncio.sleep(0)
        return found

    async def all_of_them():
        return await asyncio.gather(*(many(n) for n in (3, 4, 5)))

    expected = [[work(vec(n) + i) for i in range(5)] for n in (3, 4, 5)]
    assert np.allclose(asyncio.run(all_of_them()), expected)

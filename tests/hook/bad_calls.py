"""Calls everything that ``_hook`` shows to Python with arguments of all kinds:
``python -m tests.hook.bad_calls SEED [COUNT]``.

Each call must return or raise; the test looks at the exit status of the process."""

from __future__ import annotations

import contextlib
import copy
import gc
import io
import random
import sys
import types
from typing import Any

import numpy as np

from dyncomp.hook import _hook


class Shifting:
    """An index that is another one each time."""

    def __init__(self, *answers: int) -> None:
        self.answers = list(answers)

    def __index__(self) -> int:
        self.answers.append(self.answers.pop(0))
        return self.answers[0]


class Meddling:
    """A key that equals any other, and lets go of everything when compared."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        _hook.clear_all()
        return self.name == other


class Config(_hook.HookConfig):
    """A config of the user's own."""


def one(x, y=1, *rest, z=2, **more):
    return x


def with_cells():
    held, other = 1, 2

    def inner(x):
        return x, held, other

    return inner


def small(x):
    return x


def bigger(x):
    a, b, c, d = x, x, x, x
    return [a, b, [c, [d, [x, [a, b, c, d]]]]]


def generator(x):
    yield x


async def coroutine(x):
    return x


FUNCTIONS = [one, with_cells(), with_cells, small, bigger, generator, coroutine, lambda: 1, lambda *a, **k: a]


def deep_tuple(depth: int) -> Any:
    made: Any = ()
    for _ in range(depth):
        made = (made,)
    return made


class Fuzz:
    """Makes arguments and keeps what calls gave, to be used as arguments later."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.made: list[Any] = [_hook.HookConfig(), Config(), _hook.Entry(None), _hook.GuardProgram([], 0)]
        self.made += [_hook.Dispatcher(small, self.made[0]), _hook.later(small, 1)]
        for kind in (_hook.Dispatcher, _hook.ResumeFunction, Config):
            self.made.append(kind.__new__(kind))

    def value(self, depth: int = 0) -> Any:
        rng = self.rng
        kind = rng.randrange(12)
        if kind < 3:
            return rng.choice(self.made)
        if kind < 5:
            return rng.choice(FUNCTIONS)
        if kind == 5:
            return rng.choice(FUNCTIONS).__code__
        if kind == 6:
            return rng.choice(
                [None, True, 0, 1, -1, 5, 2**31, -(2**63), 2**70, 1.5, "skip", "disable", "x", b"x"]
            )
        if kind == 7:
            return rng.choice(
                [Shifting(0, 500), Shifting(-1, 3), Meddling("x"), {Meddling("a"): 1}, object(), int]
            )
        if kind == 8:
            cell = types.CellType(1)
            return rng.choice([(cell,), (cell, cell), (), (1,), [cell], types.CellType()])
        if kind == 9:
            return rng.choice(
                [np.ones(3), np.dtype(float), np.float64(1), {}, globals(), frozenset({1}), {1, 2}]
            )
        if kind == 10 and depth < 2:
            return [self.value(depth + 1) for _ in range(rng.randrange(4))]
        if kind == 11 and depth < 2:
            return tuple(self.value(depth + 1) for _ in range(rng.randrange(4)))
        return rng.choice([deep_tuple(3), "a", {}, slice(1, 2)])

    def config(self) -> Any:
        return self.rng.choice([m for m in self.made if isinstance(m, _hook.HookConfig)])

    def entry(self, code: Any = None) -> _hook.Entry:
        """An entry, mostly one that suits ``code``."""
        rng = self.rng
        guards = rng.choice([None, None, *(m for m in self.made if isinstance(m, _hook.GuardProgram))])
        replacement = rng.choice([None, code, code, rng.choice(FUNCTIONS).__code__])
        target = None
        if rng.random() < 0.3:
            target = rng.choice([small, len, print, *(m for m in self.made if callable(m))])
        order = None
        if rng.random() < 0.2:
            order = rng.choice([(), (0,), (-1,), (70000,), (Shifting(0, 40),), (5, 0)])
        return _hook.Entry(
            guards, replacement, target, rng.random() < 0.3, order, None, rng.choice([-1, 0, 0, 3])
        )

    def program(self) -> _hook.GuardProgram:
        rng = self.rng
        names = sorted(_hook.OPS)
        instructions = []
        for index in range(rng.randrange(5)):
            numbers = [rng.choice([0, 0, 1, 2, -1, 2**31 - 1, Shifting(0, 900)]) for _ in range(3)]
            obj = rng.choice(
                ["x", (), (0, 0), ((0,), (Shifting(0, 99),)), ((0, True), (0,)), int, None, self.value()]
            )
            instructions.append((_hook.OPS[rng.choice(names)], *numbers, obj, index))
        return _hook.GuardProgram(
            instructions, rng.randrange(4), (), rng.choice([(), (0,), [Shifting(0, 7)]])
        )

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        named = {"config": self.value, "code": self.value, "x": self.value, "on_miss": self.value}
        words = {k: make() for k, make in named.items() if self.rng.random() < 0.05}
        return [self.value() for _ in range(self.rng.randrange(5))], words

    def on_miss(self) -> Any:
        """What configs do on a miss: entries of all kinds, and meddling with whoever asks."""

        def answer(func, bound, config):
            act = self.rng.randrange(5)
            if act == 0:
                _hook.clear_all()
            elif act == 1:
                gc.collect()
            elif act == 2:
                return self.value()
            return self.entry(func.__code__)

        return answer

    def step(self) -> None:
        rng = self.rng
        kind = rng.randrange(9)
        if kind == 0:
            self.made.append(self.entry())
        elif kind == 1:
            self.made.append(self.program())
        elif kind == 2:
            code = rng.choice(FUNCTIONS).__code__
            _hook.add_entry(code, self.config(), self.entry(code))
        elif kind == 3:
            config = rng.choice([_hook.HookConfig, Config])(
                self.on_miss(), rng.choice([None, bool, self.value()])
            )
            self.made += [config, _hook.Dispatcher(rng.choice(FUNCTIONS), config)]
        elif kind == 4:
            code = rng.choice(FUNCTIONS).__code__
            self.made.append(_hook.ResumeFunction(code, globals(), "name", "qualified", self.config()))
        elif kind == 5:
            target = rng.choice(self.made)
            name = rng.choice(
                [n for n in dir(target) if n not in ("__class__", "__reduce_ex__", "__init_subclass__")]
            )
            self.call(getattr(target, name))
        elif kind == 6:
            made = [m for m in self.made if callable(m)]
            for _ in range(8):
                positional = [self.value() for _ in range(rng.choice([1, 1, 1, 0, 2, 3]))]
                with contextlib.suppress(Exception):
                    found = rng.choice(made)(*positional, **rng.choice([{}, {}, {}, {"x": 1}, {"z": 3}]))
                    self.keep(found)
        elif kind == 7:
            target = rng.choice(self.made)
            name = rng.choice([*dir(target), "__name__", "hits", "on_miss", "payload"])
            rng.choice([lambda: setattr(target, name, self.value()), lambda: delattr(target, name)])()
        else:
            names = [n for n in dir(_hook) if callable(getattr(_hook, n))]
            self.call(getattr(_hook, rng.choice(names)))
        if rng.random() < 0.05:
            copy.copy(rng.choice(self.made))
            del self.made[rng.randrange(8, max(9, len(self.made))) :]

    def call(self, what: Any) -> None:
        if not callable(what):
            return
        positional, words = self.arguments()
        self.keep(what(*positional, **words))

    def keep(self, found: Any) -> None:
        if isinstance(found, (_hook.HookConfig, _hook.Entry, _hook.GuardProgram, _hook.Dispatcher)):
            self.made.append(found)
        if type(found).__name__ in ("TailCall", "generator", "coroutine"):
            self.made.append(found)


def run(seed: int, count: int) -> int:
    fuzz = Fuzz(seed)
    raised = 0
    for _ in range(count):
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                fuzz.step()
        except Exception:
            raised += 1
        _hook.set_active(None)
        _hook.set_stance(0, False)
        _hook.set_stance(-1, True)
    return raised


if __name__ == "__main__":
    sys.setrecursionlimit(400)
    import warnings

    warnings.simplefilter("ignore")
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
    print("raised", run(int(sys.argv[1]), steps), "of", steps, file=sys.__stdout__)

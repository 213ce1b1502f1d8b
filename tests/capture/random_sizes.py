"""Random programs that combine arrays whose sizes depend on the data.

A line is kept if it runs in plain Python for every one of the inputs: arrays that are combined have one size
because they come from the same data, or else each line would fail for some of them.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

N = 30
FLOATS, INTS, MASKS, INDICES, FLAGS = "f", "i", "m", "k", "s"

# result's kind, template; {f} a float array, {i} small ints of N elements, {m} a mask of N, {k} indices into N,
# {s} a mask of some float array
_SIZED = (
    (FLOATS, "{x}[{m}]"),
    (FLOATS, "np.compress({m}, {x})"),
    (FLOATS, "np.extract({m}, {x})"),
    (FLOATS, "{x}[np.nonzero({m})]"),
    (FLOATS, "{x}[np.where({m})[0]]"),
    (FLOATS, "np.sort({x}[{m}])"),
    (FLOATS, "np.unique({i}) * 1.5"),
    (FLOATS, "np.unique({i}, return_counts=True)[1] / 2"),
    (FLOATS, "np.bincount({i}) + 0.5"),
    (FLOATS, "np.bincount({i}, weights={x})"),
    (FLOATS, "np.bincount({i}, minlength=3) * 1.0"),
    (FLOATS, "np.repeat({x}, {i})"),
    (FLOATS, "np.arange({m}.sum()) * 0.5"),
    (FLOATS, "np.zeros(int({m}.sum()))"),
    (FLOATS, "np.ones(np.count_nonzero({m}))"),
    (FLOATS, "np.ones({k}.size) * 2"),
    (FLOATS, "np.delete({x}, np.flatnonzero({m}))"),
    (FLOATS, "np.setdiff1d({i}, {i}[{m}]) * 1.0"),
    (FLOATS, "np.union1d({i}, {i}[{m}]) * 1.0"),
    (FLOATS, "np.intersect1d({i}, {i}[{m}]) * 1.0"),
    (INDICES, "np.flatnonzero({m})"),
    (INDICES, "np.nonzero({m})[0]"),
    (INDICES, "np.argwhere({m})[:, 0]"),
    (INDICES, "np.where({m})[0]"),
    (INDICES, "np.unique({i}, return_index=True)[1]"),
    (MASKS, "{x} > {c}"),
    (MASKS, "{m} & ({x} < {c})"),
    (MASKS, "~{m}"),
    (MASKS, "{i} > {d}"),
)
_COMBINED = (
    (FLAGS, "{f} > {c}"),
    (FLAGS, "{f} < {f}"),
    (FLAGS, "{s} & {s}"),
    (FLAGS, "~{s}"),
    (FLOATS, "{f}[{s}]"),
    (FLOATS, "{f}[{s}]"),
    (FLOATS, "{f}[{s}] / ({f}[{s}] + 9.0)"),
    (FLOATS, "{f}[np.flatnonzero({s})]"),
    (FLOATS, "np.compress({s}, {f})"),
    (FLOATS, "np.where({s}, {f}, {f})"),
    (FLOATS, "np.arange({s}.sum()) + {f}[{s}]"),
    (INDICES, "np.flatnonzero({s})"),
    (FLOATS, "{f} + {f}"),
    (FLOATS, "{f} * {f} - {f}"),
    (FLOATS, "{f} + {f}.sum()"),
    (FLOATS, "np.concatenate([{f}, {f}])"),
    (FLOATS, "{f}[{f} > {c}]"),
    (FLOATS, "{x}[{k}] * {f}"),
    (FLOATS, "{x}[{k}]"),
    (FLOATS, "np.where({f} > {f}, {f}, 0.0)"),
    (FLOATS, "np.cumsum({f})"),
    (FLOATS, "{f}[1:] - {f}[:-1]"),
    (FLOATS, "{f}[: {k}.size]"),
    (FLOATS, "{f}[:, None].sum(1) + {f}"),
    (FLOATS, "{f}[{f} > 0] / {f}[{f} > 0]"),
    (FLOATS, "np.append({f}, {f})"),
    (FLOATS, "np.stack([{f}, {f}])[0] * 2"),
    (FLOATS, "np.column_stack(({f}, {f}))[:, 1]"),
    (FLOATS, "{f} - {f}.mean()"),
    (FLOATS, "{f} / ({f}.max() + 9.0)"),
    (FLOATS, "{f} - np.median({f})"),
    (FLOATS, "{f}[np.argsort({f})]"),
    (FLOATS, "{f}.reshape(-1, 1)[:, 0] + {f}"),
    (FLOATS, "np.diff({f})"),
    (FLOATS, "np.clip({f}, -1, {f}.std())"),
    (FLOATS, "{f}[: len({f}) // 2]"),
    (INDICES, "{k}[::-1]"),
    (INDICES, "np.concatenate([{k}, {k}])"),
)


class Made:
    """A program: its text, the function, and how to make its arguments."""

    def __init__(self, seed: int, lines: int, few: bool = False) -> None:
        """``few``: masks may select nothing or one element, too."""
        self.seed = seed
        self.few = few
        self.random = random.Random(seed)
        self.names: dict[str, list[str]] = {FLOATS: ["x", "y"], INTS: ["i", "j"], MASKS: ["m"], INDICES: [], FLAGS: []}
        self.body: list[str] = []
        self.worlds = [self._world(number) for number in range(4)]
        made = 0
        for _ in range(lines * 6):
            made += self._add_line(f"v{made}")
            if made == lines:
                break
        results = [name for kind in (FLOATS, INDICES) for name in self.names[kind] if name.startswith("v")]
        self.body.append(f"return {', '.join(results)}," if results else "return x.sum(), m.sum()")
        self.text = "def program(x, y, i, j, m):\n" + "\n".join(f"    {line}" for line in self.body)
        namespace: dict[str, Any] = {"np": np}
        exec(compile(self.text, f"<random sizes {seed}>", "exec"), namespace)
        self.function: Callable[..., Any] = namespace["program"]

    def arguments(self, number: int) -> tuple[Any, ...]:
        rng = np.random.default_rng((self.seed, number))
        i, j = rng.integers(0, 6, N), rng.integers(0, 9, N)
        share = 0.5 if not self.few else (0.0, 0.04, 0.5, 1.0)[number % 4]
        return rng.standard_normal(N), rng.standard_normal(N), i, j, rng.random(N) < share

    def _world(self, number: int) -> dict[str, Any]:
        return {"np": np, **dict(zip("xyijm", self.arguments(number)))}

    def _add_line(self, name: str) -> bool:
        kind, template = self.random.choice(_SIZED if self.random.random() < 0.4 else _COMBINED)
        text = template
        for mark in "fiksmxcd":
            while f"{{{mark}}}" in text:
                found = self._operand(mark)
                if found is None:
                    return False
                text = text.replace(f"{{{mark}}}", found, 1)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for world in self.worlds:
                    world[name] = eval(text, world)
        except Exception:
            for world in self.worlds:
                world.pop(name, None)
            return False
        self.names[kind].append(name)
        self.body.append(f"{name} = {text}")
        return True

    def _operand(self, mark: str) -> str | None:
        if mark == "c":
            return self.random.choice(("0.0", "0.5", "-0.3"))
        if mark == "d":
            return self.random.choice("123")
        if mark == "x":
            return self.random.choice("xy")
        names = self.names[mark]
        return self.random.choice(names) if names else None

"""Expressions over inputs in many memory layouts: everything that a program can see of the results.

``Sweep.check(text, layout)`` runs an expression plainly and compiled, alone and with a write into the
result (or its ``reshape``) behind it, and says what differs: values, dtypes, shapes, strides, what is
the same object as what, which memory results share with inputs and with each other, and exceptions.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import dyncomp


class Sweep:
    """Expressions of one library. ``make()``: arguments by name; ``layouts``: names, and what gives an array
    these values in that layout."""

    def __init__(
        self,
        names: dict[str, Any],
        make: Callable[[], dict[str, Any]],
        layouts: dict[str, Callable[[Any], Any]],
        array: tuple[type, ...],
        facts: Callable[[Any], Any],
        memory: Callable[[Any], tuple[int, int, int]],
        close: Callable[[Any, Any], bool],
        fill: str,
        **settings: Any,
    ) -> None:
        self.names, self.make, self.layouts, self.array = names, make, layouts, array
        self.facts, self.memory, self.close, self.fill = facts, memory, close, fill
        self.settings = settings

    def arguments(self, used: list[str], layout: str) -> list[Any]:
        values = self.make()
        return [self.layouts[layout](values[name]) for name in used]

    def check(self, text: str, layout: str) -> list[str]:
        """What differs; empty where nothing does."""
        used = [name for name in self.make() if re.search(rf"(?<![\w.'\"]){name}\b(?!\s*=[^=])", text)]
        found = self._compare(text, used, layout, f"    return {text}\n", "")
        path = self._first(text, used, layout)
        if path is None:
            return found
        fill = self.fill.format(f"r{path}.reshape(-1)")
        return found + self._compare(
            text, used, layout, f"    r = {text}\n    {fill}\n    return r\n", "write: "
        )

    def _first(self, text: str, used: list[str], layout: str) -> str | None:
        """Where in the result the first array is."""
        space = {**self.names, **dict(zip(used, self.arguments(used, layout)))}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = eval(text, space)
        except Exception:
            return None
        if type(result) in self.array:
            return ""
        inside = isinstance(result, (tuple, list)) and len(result) and type(result[0]) in self.array
        return "[0]" if inside else None

    def _compare(self, text: str, used: list[str], layout: str, body: str, what: str) -> list[str]:
        space = dict(self.names)
        exec(compile(f"def f({', '.join(used)}):\n{body}", f"<{text}>", "exec"), space)
        f = space["f"]
        plain, mine = self.arguments(used, layout), self.arguments(used, layout)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = _outcome(f, plain)
            before = dyncomp.stats()
            got = _outcome(dyncomp.compile(f, **self.settings), mine)
            after = dyncomp.stats()
        errors = ["internal error"] * (after["internal_errors"] - before["internal_errors"])
        dyncomp.reset()
        return [
            f"{layout}: {what}{line}" for line in errors + list(self._differences(wanted, got, plain, mine))
        ]

    def _differences(self, wanted: Any, got: Any, plain: list[Any], mine: list[Any]) -> Iterator[str]:
        if isinstance(wanted, Exception) or isinstance(got, Exception):
            if type(wanted) is not type(got):
                yield f"{got!r:.200} instead of {wanted!r:.200}"
            return
        a, b = list(_leaves(wanted)), list(_leaves(got))
        if len(a) != len(b) or _structure(wanted) != _structure(got):
            yield f"structure {_structure(got)} instead of {_structure(wanted)}"
            return
        for k, (x, y) in enumerate(zip(a + plain, b + mine)):
            name = f"result {k}" if k < len(a) else f"input {k - len(a)}"
            if type(x) not in self.array:
                if not (x == y or x != x):
                    yield f"{name}: {y!r:.80} instead of {x!r:.80}"
                continue
            if self.facts(x) != self.facts(y):
                yield f"{name}: {self.facts(y)} instead of {self.facts(x)}"
            elif not self.close(x, y):
                yield f"{name}: other values"
        one, two = self._sharing(a, plain), self._sharing(b, mine)
        if one != two:
            yield f"memory {two} instead of {one}"

    def _sharing(self, results: list[Any], inputs: list[Any]) -> list[Any]:
        """Which earlier object or memory each result is or shares, and where in it it begins."""
        seen: list[Any] = [x for x in inputs if type(x) in self.array]
        places = [self.memory(x) for x in seen]
        found: list[Any] = []
        for result in results:
            if type(result) not in self.array or not min((*result.shape, 1)):
                continue
            low, high, start = place = self.memory(result)
            same = [k for k, x in enumerate(seen) if x is result]
            near = [(k, start - p[2]) for k, p in enumerate(places) if low < p[1] and p[0] < high]
            found.append((same[:1], near[:1]))
            seen.append(result)
            places.append(place)
        return found


def _outcome(f: Callable[..., Any], arguments: list[Any]) -> Any:
    try:
        return f(*arguments)
    except Exception as error:
        return error.with_traceback(None)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def _structure(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value), [_structure(part) for part in value]
    return type(value)

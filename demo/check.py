"""Whether two runs of a program gave the same: types, dtypes, shapes, values, mutated arguments, aliases."""

from __future__ import annotations

from typing import Any

import numpy as np

from .catalog import Program


class Comparison:
    """Collects the largest relative error and every difference that is not allowed."""

    def __init__(self, rtol: float, differing: float) -> None:
        self.rtol = rtol
        self.differing = differing
        self.error = 0.0
        self.problems: list[str] = []

    def same(self, expected: Any, found: Any, where: str) -> None:
        """Compare two values; ``where`` names them in a complaint."""
        if type(expected) is not type(found):
            self._complain(where, f"type {type(found).__name__}, not {type(expected).__name__}")
        elif isinstance(expected, np.ndarray | np.generic):
            self._arrays(np.asarray(expected), np.asarray(found), where)
        elif isinstance(expected, list | tuple):
            self._sequences(expected, found, where)
        elif isinstance(expected, dict):
            self._sequences(list(expected.items()), list(found.items()), where)
        elif isinstance(expected, float | complex):
            self._arrays(np.asarray(expected), np.asarray(found), where)
        elif isinstance(expected, np.random.Generator):
            self.same(expected.bit_generator.state, found.bit_generator.state, f"{where}.state")
        elif hasattr(expected, "__dict__"):
            self.same(vars(expected), vars(found), f"vars({where})")
        elif expected != found:
            self._complain(where, f"{found!r}, not {expected!r}")

    def _sequences(self, expected: Any, found: Any, where: str) -> None:
        if len(expected) != len(found):
            self._complain(where, f"{len(found)} items, not {len(expected)}")
            return
        for i, (a, b) in enumerate(zip(expected, found)):
            self.same(a, b, f"{where}[{i}]")

    def _arrays(self, expected: np.ndarray, found: np.ndarray, where: str) -> None:
        if expected.dtype != found.dtype:
            self._complain(where, f"dtype {found.dtype}, not {expected.dtype}")
        elif expected.shape != found.shape:
            self._complain(where, f"shape {found.shape}, not {expected.shape}")
        elif expected.size and expected.dtype.kind in "fc":
            self._floats(expected, found, where)
        elif expected.size:
            fraction = float(np.mean(expected != found))
            if fraction > self.differing:
                self._complain(where, f"{fraction:.2%} of the entries differ")

    def _floats(self, expected: np.ndarray, found: np.ndarray, where: str) -> None:
        finite = np.isfinite(expected)
        if not np.array_equal(expected[~finite], found[~finite], equal_nan=True):
            self._complain(where, "NaN or infinity in other places")
            return
        if not finite.any():
            return
        scale = float(np.abs(expected[finite]).max())
        difference = float(np.abs(expected[finite] - found[finite]).max())
        error = difference / scale if scale else difference
        # a NaN found where a number belongs gives a NaN error, which must not pass
        if not error <= self.rtol:
            self._complain(where, f"relative error {error:.2e} is over {self.rtol:.0e}")
        if not error <= self.error:
            self.error = error

    def _complain(self, where: str, text: str) -> None:
        self.problems.append(f"{where}: {text}")


def _aliases(result: Any, arguments: tuple[Any, ...]) -> list[tuple[int, int]]:
    """Which parts of the result are which argument, by identity."""
    parts = result if isinstance(result, list | tuple) else [result]
    return [
        (i, j)
        for i, part in enumerate(parts)
        for j, argument in enumerate(arguments)
        if part is argument and isinstance(part, np.ndarray)
    ]


def compare(
    program: Program,
    expected: Any,
    expected_arguments: tuple[Any, ...],
    found: Any,
    found_arguments: tuple[Any, ...],
) -> Comparison:
    """Compare results, and the arguments as the calls left them."""
    comparison = Comparison(program.rtol, program.differing)
    comparison.same(expected, found, "result")
    comparison.same(expected_arguments, found_arguments, "arguments after the call")
    if _aliases(expected, expected_arguments) != _aliases(found, found_arguments):
        comparison.problems.append("result: shares other arguments than with NumPy")
    return comparison

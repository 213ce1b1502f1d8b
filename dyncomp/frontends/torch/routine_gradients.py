"""Gradients of torch's own routines: the routine runs again, under autograd.

A gradient is a routine as well, of the arguments and of cotangents of the results; so is its gradient.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from .autocast import Modes, set_to
from .library import torch
from .owner import OWNER


class Recorded(Protocol):
    """A routine of tensors and integers."""

    @property
    def modes(self) -> Modes:
        """Of autocast, that the routine finds on."""
        ...

    def needs(self, number: int) -> bool:
        """Whether gradients by this tensor may be asked for."""
        ...

    def recorded(self, tensors: Sequence[Any], numbers: Sequence[int]) -> tuple[Any, ...]:
        """The results as autograd records them."""
        ...


def is_inexact(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating_point or tensor.dtype.is_complex)


@dataclasses.dataclass(eq=False)
class Gradient:
    """The gradients of a routine by its tensors ``by``: called with the routine's ``count`` tensors and
    cotangents of its results of inexact dtypes, in C order."""

    call: Recorded
    by: tuple[int, ...]
    count: int

    @property
    def modes(self) -> Modes:
        return self.call.modes

    def needs(self, number: int) -> bool:
        return number >= self.count or self.call.needs(number)

    def gradient(self, tensors: Iterable[int], count: int) -> Gradient:
        """The gradient of this routine of ``count`` tensors, by those of ``tensors`` it may be asked for."""
        return Gradient(self, tuple(filter(self.needs, tensors)), count)

    def recorded(self, tensors: Sequence[Any], numbers: Sequence[int], again: bool = True) -> tuple[Any, ...]:
        """``again``: the gradients are recorded, too."""
        results = [r for r in self.call.recorded(tensors[: self.count], numbers) if is_inexact(r)]
        pairs = [pair for pair in zip(results, tensors[self.count :], strict=True) if pair[0].requires_grad]
        by = [tensors[k] for k in self.by]
        if not pairs:
            return tuple(map(torch.zeros_like, by))
        outputs, cotangents = zip(*pairs)
        found = torch.autograd.grad(outputs, by, cotangents, allow_unused=True, create_graph=again)
        return tuple(torch.zeros_like(x) if g is None else g for x, g in zip(by, found))

    def _results(self, tensors: Sequence[Any], numbers: Sequence[int]) -> tuple[Any, ...]:
        with torch.enable_grad(), set_to(self.modes):
            given = [
                t.detach().requires_grad_(k < self.count and is_inexact(t) and self.call.needs(k))
                for k, t in enumerate(tensors)
            ]
            found = self.recorded(given, numbers, again=False)
        return tuple(map(_plain, found))

    def on_device(self, tensors: tuple[Any, ...], numbers: tuple[int, ...]) -> tuple[Any, ...]:
        return self._results(tensors, numbers)

    def to_tensors(self, arrays: tuple[Any, ...], numbers: tuple[int, ...]) -> tuple[Any, ...]:
        return self._results([OWNER.from_numpy(a) for a in arrays], numbers)

    def __call__(self, arrays: tuple[Any, ...], numbers: tuple[int, ...]) -> tuple[Any, ...]:
        return tuple(map(OWNER.to_numpy, self.to_tensors(arrays, numbers)))


def _plain(gradient: Any) -> Any:
    """In C order, with all its numbers in memory: autograd has tensors of zeros that have none."""
    if gradient._is_zerotensor():
        return torch.zeros(gradient.shape, dtype=gradient.dtype, device=gradient.device)
    return gradient.detach().resolve_conj().resolve_neg().contiguous()


def differentiated(call: Recorded, examples: Sequence[Any], numbers: Sequence[int]) -> tuple[bool, ...]:
    """Which results of a call have gradients by the examples that it may be asked by. Raises what torch
    raises where it has none."""
    with torch.enable_grad(), set_to(call.modes):
        given = [e.requires_grad_() if call.needs(k) else e for k, e in enumerate(examples)]
        results = call.recorded(given, numbers)
        live = [r for r in results if r.requires_grad]
        if live:
            by = [e for k, e in enumerate(given) if call.needs(k)]
            torch.autograd.grad(live, by, [torch.zeros_like(r) for r in live], allow_unused=True)
    return tuple(bool(r.requires_grad) for r in results)

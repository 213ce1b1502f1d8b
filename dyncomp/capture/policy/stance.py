"""What compiled functions do when they are called: ``dyncomp.set_stance``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ...hook import _hook

# by the numbers that C uses (csrc/hook.h)
STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile")
F = TypeVar("F", bound=Callable[..., Any])
_AS_PROCESS = -1


class set_stance:
    """Choose what compiled functions do when they are called, until further notice or for a while.

    A plain call, ``set_stance("force_eager")``, holds for the process from then on. ``with
    set_stance(...):`` and ``@set_stance(...)`` hold for the calling thread within the block or function;
    they nest, and go before what the process says.

    - ``"default"``: use compiled code, compile where there is none that fits.
    - ``"force_eager"``: run the original code; nothing compiled is used or made.
    - ``"eager_on_recompile"``: use compiled code that fits; run the original where a function that has been
      compiled would have to be compiled again. First compilations take place.
    - ``"fail_on_recompile"``: the same, but raise :class:`~dyncomp.errors.RecompileError`, which names the
      guard that fails and both values.
    - ``"eager_then_compile"``: run a function's first call as it is, and compile at the second, with the
      sizes and numbers symbolic that differ between the two.

    Raises ``ValueError`` for any other name.
    """

    def __init__(self, stance: str) -> None:
        if stance not in STANCES:
            raise ValueError(f"unknown stance {stance!r}; known: {', '.join(STANCES)}")
        self.stance = stance
        self._number = STANCES.index(stance)
        self._published = False
        self._previous = [_hook.set_stance(self._number, True)]

    def __del__(self) -> None:
        # Neither entered nor used as a decorator: it was a plain call. Only now, so that ``with`` never
        # shows, for a moment, in other threads.
        if hasattr(self, "_previous") and not self._published:
            self._restore()
            _hook.set_stance(self._number, False)

    def _restore(self) -> None:
        if not self._published:
            self._published = True
            _hook.set_stance(self._previous.pop(), True)

    def __enter__(self) -> set_stance:
        self._restore()
        self._previous.append(_hook.set_stance(self._number, True))
        return self

    def __exit__(self, *exception: object) -> None:
        _hook.set_stance(self._previous.pop(), True)

    def __call__(self, function: F) -> F:
        self._restore()
        stance = self.stance

        @functools.wraps(function)
        def under_stance(*args: object, **kwargs: object) -> Any:
            with set_stance(stance):
                return function(*args, **kwargs)

        return under_stance  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"set_stance({self.stance!r})"


def current_stance() -> str:
    """The stance in force in this thread."""
    return STANCES[_hook.get_stance()]

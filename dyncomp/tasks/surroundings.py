"""What holds in the thread that forks, put up in the thread that runs the task."""

from __future__ import annotations

import contextlib
import contextvars
import sys
from collections.abc import Iterator

import numpy as np

from ..capture.policy.stance import current_stance, set_stance


class Surroundings:
    """Context variables, NumPy's error state, dyncomp's stance and PyTorch's modes of the thread that makes
    this."""

    def __init__(self) -> None:
        self.context = contextvars.copy_context()
        self._errors = np.geterr()
        self._stance = current_stance()
        self._modes: contextlib.AbstractContextManager[None] | None = None
        if "torch" in sys.modules:
            from ..frontends.torch.thread_modes import modes_here

            self._modes = modes_here()

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """To be entered once, inside of ``context``."""
        with contextlib.ExitStack() as stack:
            # NumPy before 2.0 keeps the error state by thread, later ones in a context variable
            stack.enter_context(np.errstate(**self._errors))
            if self._stance != current_stance():
                stack.enter_context(set_stance(self._stance))
            if self._modes is not None:
                stack.enter_context(self._modes)
            yield

"""``np.r_[…]`` and ``np.c_[…]``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..breaks import Break
from ..polyfills.concatenators import concatenated
from ..values.base import Tracer, Value
from ..values.obj import InstanceValue
from ..values.seq import TupleValue
from .registry import builtin

_OWNER: Any = type(np.r_).__mro__[1]


@builtin(_OWNER.__getitem__)
def _join(tracer: Tracer, self: Value, key: Value) -> Value:
    parts = key.contents(tracer) if isinstance(key, TupleValue) else [key]
    texts = any(tracer.realize(part).pytype is str for part in parts)
    known = isinstance(self, InstanceValue) and self.obj in (np.r_, np.c_)
    if texts or not known:
        raise Break("unsupported-call", "numpy.r_ or numpy.c_ with a text, or one like them")
    found: Value = tracer.call_value(tracer.child_or_constant(concatenated, None), [self, key], {})
    return found

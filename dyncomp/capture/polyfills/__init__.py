"""C functions of the standard library written in Python, to be traced.

They give the same results, effects and exceptions. A break inside one is not resumed there: the C function
itself is then called.
"""

from __future__ import annotations

import types
from typing import Any

from . import bisection, converters, heaps, operations

POLYFILLS: dict[Any, types.FunctionType] = {
    **operations.FUNCTIONS,
    **heaps.FUNCTIONS,
    **bisection.FUNCTIONS,
    **converters.FUNCTIONS,
}

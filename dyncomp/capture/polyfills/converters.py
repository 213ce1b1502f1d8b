"""``_array_converter`` of NumPy, which its functions written in Python use, of plain arrays and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

_CORE: Any = getattr(np, "_core", None)
_CONVERTER = getattr(getattr(_CORE, "_multiarray_umath", None), "_array_converter", None)


class Converter:
    """Arguments as arrays, and a result as what belongs to them."""

    def __init__(self, given: tuple[Any, ...]) -> None:
        self.arrays = tuple([np.asanyarray(part) for part in given])
        self.scalar_input = tuple([not isinstance(part, np.ndarray) and np.ndim(part) == 0 for part in given])

    def __len__(self) -> int:
        return len(self.arrays)

    def __getitem__(self, index: Any) -> Any:
        return self.arrays[index]

    def as_arrays(self, *, subok: bool = True, pyscalars: str = "convert_if_no_array") -> Any:
        return self.arrays

    def wrap(self, arr: Any, /, *, to_scalar: Any = None) -> Any:
        if to_scalar is None:
            to_scalar = all(self.scalar_input)
        return arr[()] if to_scalar and np.ndim(arr) == 0 else arr


def converted(*given: object) -> Any:
    return Converter(given)


FUNCTIONS: dict[Any, Any] = {} if _CONVERTER is None else {_CONVERTER: converted}

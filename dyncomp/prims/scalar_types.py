"""Row types of the scalar table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..dataclass import dataclass, field
from ..dtypes import DType

# One letter per dtype kind: bool, int, uint, float, complex.
KINDS = "biufc"
KIND_LETTER = {"bool": "b", "int": "i", "uint": "u", "float": "f", "complex": "c"}


@dataclass(frozen=True)
class ScalarOp:
    """The scalar function of a pointwise row, which says its ``name`` and ``arity``, and unless they are
    given here its ``kinds``, ``numpy`` and ``result``.

    ``kinds``: letters of the dtype kinds it takes. ``result``: ``"same"`` (as the principal argument),
    ``"bool"``, ``"real"`` (the component type of a complex argument) or ``"complex"``.
    ``numpy``: its definition on arrays. ``cpp`` and ``triton``: spellings by kind letters or dtype
    name, such as ``{"iu": "...", "f": "..."}``; ``{0}`` ``{1}`` ``{2}`` are the arguments, ``{T}`` the C type
    of the principal argument, ``{U}`` an unsigned type of at least its width and ``int``'s, ``{t}`` its short
    name (``f32``, ``i64``…), ``{fsuffix}`` the suffix of C's float functions. ``decomp(s, *args)``:
    what a target without a spelling does. ``mixed``: arguments may differ in dtype. ``cost``: rough number of
    machine operations, for the cost model.
    """

    name: str = ""
    arity: int = 0
    kinds: str = ""
    numpy: Callable[..., Any] = field(default=None)  # type: ignore[assignment]
    result: str = "same"
    cpp: Mapping[str, str] = field(default_factory=dict)
    triton: Mapping[str, str] = field(default_factory=dict)
    decomp: Callable[..., Any] | None = None
    mixed: bool = False
    cost: int = 1

    @property
    def kind_names(self) -> tuple[str, ...]:
        """The dtype kinds it takes, as in ``DType.kind``."""
        return tuple(kind for kind, letter in KIND_LETTER.items() if letter in self.kinds)

    def spelling(self, target: str, dtype: DType) -> str | None:
        """The spelling for a principal argument of ``dtype``, or ``None``."""
        column: Mapping[str, str] = getattr(self, target)
        if dtype.name in column:
            return column[dtype.name]
        letter = KIND_LETTER[dtype.kind]
        for letters, text in column.items():
            if letter in letters and set(letters) <= set(KINDS):
                return text
        return None


@dataclass(frozen=True)
class Reducer:
    """A reduction's combining function.

    ``combine``: the row of the scalar table that combines two values (empty where ``position`` is set:
    the result is then the int64 position of the first extreme value; NaN wins). ``identity(dtype)``: a
    Python scalar. ``kinds``: letters of the dtype kinds it takes.
    """

    name: str
    combine: str
    identity: Callable[[DType], Any]
    kinds: str
    position: bool = False

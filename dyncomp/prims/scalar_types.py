"""Row types of the scalar table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..dataclass import dataclass, field
from ..dtypes import DType

# One letter per dtype kind: bool, int, uint, float, complex.
_HELPER = re.compile(r"dc_(\w+)_\{t\}\(")
KINDS = "biufc"
KIND_LETTER = {"bool": "b", "int": "i", "uint": "u", "float": "f", "complex": "c"}


# Where a vector form is infinite for finite arguments, as runtime/csrc/vector_math/module.cpp numbers it: the
# status flags due there are found by a look at the results. "": its own arithmetic raises what is due, as it
# selects arguments rather than results, or it is no function of NumPy's. "logarithm": at a pole, and only
# arguments not above zero raise flags. tests/inductor/test_status_flags.py compares all with NumPy's.
LOOKED_AT = {"": -1, "pole": 1, "zero to a power": 2, "logarithm": 3}


@dataclass(frozen=True)
class Vector:
    """The form of a function in C++ that takes whole vectors, compiled into the runtime: a copy of each
    inlined into a kernel costs the compiler 10 ms.

    ``looked_at``: for which flags its results are looked at (see :data:`LOOKED_AT`). ``guarded``: it covers
    ordinary arguments only; there is a test ``dc_far_NAME`` for the others and a complete form
    ``dc_full_NAME``, which calls the C library.
    """

    looked_at: str = ""
    guarded: bool = False


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
    what a target without a spelling does. ``mixed``: arguments may differ in dtype. ``principal``: the
    position of the principal argument; those before it are bools. ``cost``: rough number of machine
    operations, for the cost model. ``exact_in_half``: of numbers that a half type holds the result is one,
    too. ``ieee``: one correctly rounded instruction of every processor, whose NaNs are the processor's.
    ``vector``: its form for whole vectors. ``beside_one``: C++ has a helper ``dc_NAME_beside_one`` for what
    is only added to numbers of at least one. ``python``: the operator, keyword or builtin of Python for
    single numbers. ``involution``: twice applied it gives back its argument.
    ``commutative``: its two arguments may change places. ``negation``: of a comparison of
    numbers that are not NaN. ``pair``: of complex arguments as pairs, for targets without complex numbers
    (``pairs.py``).
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
    principal: int = 0
    cost: int = 1
    exact_in_half: bool = False
    ieee: bool = False
    vector: Vector | None = None
    beside_one: bool = False
    python: str = ""
    involution: bool = False
    commutative: bool = False
    negation: str = ""
    pair: Callable[..., Any] | None = None

    @property
    def kind_names(self) -> tuple[str, ...]:
        """The dtype kinds it takes, as in ``DType.kind``."""
        return tuple(kind for kind, letter in KIND_LETTER.items() if letter in self.kinds)

    @property
    def helper(self) -> str:
        """NAME of the helper ``dc_NAME`` that its C++ form for floats calls, if it does nothing else."""
        found = _HELPER.match(next((text for key, text in self.cpp.items() if "f" in key), ""))
        return found[1] if found else ""

    def principal_of(self, args: Sequence[Any]) -> Any:
        """The principal one of its arguments."""
        return args[self.principal]

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

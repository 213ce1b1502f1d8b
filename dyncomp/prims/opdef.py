"""What a row of the op table holds (DESIGN §4).

A **prim** is a row with ``lower``, a **composite** a row with ``decomp``. ``lower`` is data: one of the
kinds below; the inductor has one lowering per kind, not per op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..dataclass import dataclass, field
from ..dtypes import ALL, DType
from ..errors import DyncompError, NotDifferentiableError
from .scalar_types import ScalarOp


@dataclass(frozen=True)
class Pointwise:
    """``out[i] = expr(s, *(x[i] for x in inputs), **params)``.

    ``expr`` is written against a scalar builder ``s`` whose methods are the rows of the scalar table
    (``s.add(x, y)``, ``s.where(c, x, y)``, ``s.cast(x, dtype)``, ``s.const(v, dtype)``,
    ``s.index(axis)`` for the position along an output axis, ``s.dtype(x)``); it returns the value of
    the output's dtype. Inputs all have the output's shape, or the expression has none (creation ops).
    """

    expr: Callable[..., Any]


@dataclass(frozen=True)
class Reduce:
    """Combine over ``params["axes"]``; ``combine`` is a name of the scalar table's reducers
    (``sum prod max min any all argmax argmin``); the axes are dropped from the result."""

    combine: str


@dataclass(frozen=True)
class View:
    """``out[i] = in[index_map(i)]``, sharing memory.

    ``index_map(in_type, out_index, **params) -> in_index`` on affine index expressions that support
    ``+``, ``-`` and multiplication by dimensions. ``None`` for a reshape, which is a change of the
    linear index. ``scatter`` names the prim that writes back: ``scatter(base, value, **params)``.
    """

    index_map: Callable[..., Any] | None
    scatter: str


@dataclass(frozen=True)
class Update:
    """``out = base`` with ``out[index_map(i)] = value[i]``: the inverse of the view ``view``."""

    view: str


@dataclass(frozen=True)
class Gather:
    """``out[i] = x[address(i)]`` with integer array inputs giving (some of) the address.

    ``address(s, load, out_index, types, **params) -> in_index``: ``load(k, index)`` is the integer scalar
    of index input number ``k`` (0 is the first after ``x``); ``types`` are the node's input types, ``x``
    first. Entries of ``in_index`` are affine or loaded. Negative indices wrap; an index out of bounds
    makes the whole graph raise before any of its effects.
    """

    address: Callable[..., Any]


@dataclass(frozen=True)
class Scatter:
    """``out = base`` combined at ``address(i)`` with ``value[i]``; ``combine`` is ``set add multiply max
    min``, or empty where the node's ``params["combine"]`` says it. ``address`` as in :class:`Gather`
    (``types[0]`` is the base's, ``out_index`` runs over ``value``).
    Inputs: base, value, then index arrays. Iteration is in C order of ``value``, so that for ``set``
    the last writer wins, as in NumPy."""

    combine: str
    address: Callable[..., Any]


@dataclass(frozen=True)
class Constant:
    """The data of ``params["literal"]``, embedded in the compiled code."""


@dataclass(frozen=True)
class Contract:
    """``dot_general``: batch and contracting dimensions are in the params."""


@dataclass(frozen=True)
class Convolve:
    """``convolution``: by the runtime where it can, else by a library's routine, as :class:`Extern`."""


@dataclass(frozen=True)
class Scan:
    """Inclusive scan along ``params["axis"]``; ``combine`` as in :class:`Reduce`."""

    combine: str


@dataclass(frozen=True)
class Extern:
    """Computed by a library's own routine: the row's ``ref`` is called on arrays. ``pure`` always.

    ``lapack``: the runtime's function for one float64 matrix; ``when``: the params for which there is one;
    ``passed``: those that it takes, before the arrays. ``package``: that of the routine, if dyncomp does not
    need it.
    ``transform``: of a Fourier transform whose rows the runtime shares among threads, whether its input is
    real, whether its result is, and whether it is an inverse transform.
    """

    lapack: str = ""
    when: tuple[tuple[str, object], ...] = ()
    passed: tuple[str, ...] = ()
    transform: tuple[bool, bool, bool] | None = None
    package: str = ""


@dataclass(frozen=True)
class Marker:
    """Replaced by a pass before a graph is lowered (``markers.py``). ``variables(number of inputs,
    **params)``: how many of its last inputs are variables of a derivative or elements of a batch, which
    nothing may write to; ``refusal`` is raised where something does, with ``written`` and the place."""

    variables: Callable[..., int] = lambda count, **params: 0
    refusal: type[DyncompError] = NotDifferentiableError
    written: str = "a function writes into an argument that it is differentiated by"


Lowering = (
    Pointwise
    | Reduce
    | View
    | Update
    | Gather
    | Scatter
    | Constant
    | Contract
    | Convolve
    | Scan
    | Extern
    | Marker
)


@dataclass(frozen=True)
class Sample:
    """One test call of an op: arrays (NumPy) and params."""

    args: tuple[Any, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""


@dataclass(frozen=True)
class Tolerance:
    """Largest difference from the reference, in units of the result dtype's epsilon: ``eps`` relative
    plus ``absolute`` (for functions that cancel). An ``eps`` of 0 means equal, signed zeros included."""

    eps: float = 8.0
    absolute: float = 0.0


# How often the result of a row is rounded (``OpDef.rounds``).
NEVER, ONCE, WHERE_LOSSY = "never", "once", "where lossy"


@dataclass(frozen=True)
class OpDef:
    """One op.

    ``meta(*input_types, **params)`` gives the output's :class:`~dyncomp.graph.ir.ArrayType` (or a
    tuple), raising ``TypeError``/``ValueError``/``IndexError`` for ill-typed calls; strides of fresh
    outputs follow NumPy's K order. ``ref`` is the NumPy reference on arrays: the executable definition.
    ``decomp(ops, *vars, **params)`` writes a composite in other ops. ``vjp(ops, cotangents, inputs,
    outputs, **params)`` and ``jvp(ops, tangents, inputs, outputs, **params)`` are its derivatives.
    ``no_derivative``: why it has none; ``no_derivative_by``: the inputs by which it has none, and why.
    ``batch(operands, **params)`` is its batching rule (of prims, see ``batching/operands.py``);
    ``not_batchable``: why it has none.
    ``scalar``: a pointwise row's scalar function; ``partials``: its partial derivatives, from which ``vjp``
    and ``jvp`` are made (``pointwise/partials.py``).
    ``exact``: every library gives the same bits. ``never_saved``: a backward pass computes it again.
    ``errors``: floating-point errors by NumPy's names that it is likely to raise, ``rare_errors``: that it
    may raise, too. ``free``: it computes nothing (constants, copies). ``closed``: its closed form in ``x``,
    ``y`` and ``z``, as sympy reads it. ``names``: functions of libraries that are this op and have its name
    in no table of a frontend (``"torch.special.i0"``).
    ``defines``: running it gives a value to symbols: ``"sizes"``, those that are sizes of its outputs, or
    ``"value"``, its parameter of that name.
    ``rounds``: for the kinds of numbers (``"f"`` real, ``"c"`` complex) whose results are the same bits in
    every library: they are the exact ones (``NEVER``), are rounded ``ONCE``, to the nearest number, or are
    rounded ``WHERE_LOSSY``, as the target does not hold them (conversions). Nothing is known of kinds that
    are not mentioned (see ``rounding.py``), nor of the libraries in ``rounded_otherwise_by``.
    """

    name: str
    params: tuple[str, ...]
    meta: Callable[..., Any]
    ref: Callable[..., Any]
    lower: Lowering | None = None
    decomp: Callable[..., Any] | None = None
    scalar: ScalarOp | None = None
    partials: Callable[..., Any] | None = None
    vjp: Callable[..., Any] | None = None
    jvp: Callable[..., Any] | None = None
    no_derivative: str = ""
    no_derivative_by: Mapping[int, str] = field(default_factory=dict)
    batch: Callable[..., Any] | None = None
    not_batchable: str = ""
    samples: Callable[[], Iterable[Sample]] | None = None
    dtypes: tuple[DType, ...] = ALL
    tolerance: Tolerance = Tolerance()
    doc: str = ""
    exact: bool = False
    never_saved: bool = False
    errors: tuple[str, ...] = ()
    rare_errors: tuple[str, ...] = ()
    free: bool = False
    closed: str = ""
    names: tuple[str, ...] = ()
    defines: str = ""
    rounds: Mapping[str, str] = field(default_factory=dict)
    rounded_otherwise_by: tuple[str, ...] = ()

    def names_in(self, library: str) -> Iterator[str]:
        """Paths below ``library`` of the functions that are this op."""
        for path in self.names:
            if path.startswith(f"{library}."):
                yield path.removeprefix(f"{library}.")

    @property
    def is_prim(self) -> bool:
        return self.lower is not None and not self.is_marker

    @property
    def is_view(self) -> bool:
        return isinstance(self.lower, View)

    @property
    def is_involution(self) -> bool:
        """Whether twice applied it gives back its argument."""
        return self.scalar is not None and self.scalar.involution

    @property
    def is_commutative(self) -> bool:
        """Whether its two inputs may change places."""
        return self.scalar is not None and self.scalar.commutative

    @property
    def is_idempotent(self) -> bool:
        """Whether it reduces equal elements to that element."""
        return isinstance(self.lower, Reduce) and self.lower.combine in ("all", "any", "max", "min")

    @property
    def is_update(self) -> bool:
        """Whether its value is its first operand with a part replaced."""
        return isinstance(self.lower, (Update, Scatter))

    @property
    def first_position(self) -> int | None:
        """Number of the first input that holds positions."""
        if isinstance(self.lower, Scatter):
            return 2
        return 1 if isinstance(self.lower, Gather) else None

    @property
    def is_marker(self) -> bool:
        return isinstance(self.lower, Marker)

    @property
    def is_extern(self) -> bool:
        return isinstance(self.lower, Extern)

    @property
    def is_repeatable(self) -> bool:
        """Whether it gives the same a second time: a function of the program may not."""
        return "callee" not in self.params

    @property
    def may_raise(self) -> bool:
        """Whether running it can raise: an index out of bounds, or a library routine's own error."""
        return isinstance(self.lower, (Gather, Scatter, Convolve, Extern))


class OpTableBuilder:
    """Collects rows; names are unique. ``prims.table.TABLE`` is the finished, read-only table."""

    def __init__(self) -> None:
        self.rows: dict[str, OpDef] = {}

    def add(self, row: OpDef) -> OpDef:
        if row.name in self.rows:
            raise ValueError(f"op {row.name!r} is defined twice")
        if (row.lower is None) == (row.decomp is None):
            raise ValueError(f"op {row.name!r} needs exactly one of lower and decomp")
        self.rows[row.name] = row
        return row

    def __iter__(self) -> Iterator[OpDef]:
        return iter(self.rows.values())

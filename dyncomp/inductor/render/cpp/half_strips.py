"""Loops over float16 in strips, which are converted as wholes.

Every operation on halves is computed in float32 and rounded. Compilers make no vectors of conversions of
single halves (gcc 12; one takes 13 operations on integers), while x86-64 processors convert 8 or 16 at once
(F16C, AVX-512). So the nodes of a vector loop are put into phases: a phase computes the elements of a strip
in float32, into short arrays, which the compiler keeps in registers; then what must be halves is rounded, a
whole strip at once, and what is stored is narrowed. ``DC_STRIP`` (``csrc/halves.h``) is undefined for other
processors, which run the loop without strips; so do the last elements. All have the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ....dataclass import dataclass
from ....dtypes import float16
from ....prims.scalar import SCALARS
from ..nest import Node, coefficient
from ..walk import Compute, Item
from .ahead import AheadPrinter
from .tails import looks_like_records
from .values import variable

LOADS = ("load", "load_from", "staged")
_OTHERS = ("const", "axis", "symbol", "cast", "store", "accumulate", "save", "fetch", "finish")
# Of these values each phase that reads them makes its own.
_MADE_AGAIN = ("const", "axis", "symbol")
# Lanes of accumulators are strips where they are so many.
LEAST_LANES = 16
# Farther apart, elements are loaded one by one.
MOST_INTERLEAVED = 8


@dataclass(frozen=True)
class Strips:
    """A loop's nodes: ``before`` are the same in all lanes; ``loads`` are converted before the first phase;
    of each phase the nodes, the values rounded behind it, and the stores narrowed behind it. ``held``: values
    in arrays."""

    axis: str
    before: Sequence[Node]
    loads: Sequence[Node]
    phases: Sequence[Phase]
    held: Mapping[str, Node]


@dataclass(frozen=True)
class Phase:
    """See :class:`Strips`."""

    nodes: Sequence[Node]
    rounded: Sequence[Node]
    stores: Sequence[Node]


@dataclass
class HalfPrinter(AheadPrinter):
    """``deferred``: values that are rounded, if at all, with their whole strips."""

    deferred: frozenset[str] = frozenset()

    # -- what is done in strips ---------------------------------------------------------------
    def strips_of(self, items: Iterable[Item], axis: str) -> Strips | None:
        """The phases of a loop along ``axis``; ``None`` where strips cannot be, or are of no use."""
        nodes = [item.node if isinstance(item, Compute) else None for item in items]
        size = self.nest.axes[axis].static
        if size is not None and size < LEAST_LANES:
            return None
        known = [node for node in nodes if node is not None]
        self.dtype_of.update({node.out: node.dtype for node in known if node.out})
        if len(known) < len(nodes) or not all(self._may_be_lane(node) for node in known):
            return None
        inside = [n for n in known if axis in n.axes or not n.out]
        names = {n.out for n in inside if n.out}
        before = [n for n in known if n.out and n.out not in names]
        if any(a in names for n in before for a in n.args) or self._reads_again(inside):
            return None
        loads = [n for n in inside if n.op in LOADS and self._is_strip(n, axis)]
        taken = {n.out for n in loads}
        if any(n.op in LOADS and n.out not in taken and self._is_interleaved(n, axis) for n in inside):
            return None
        if any(a in names for n in inside if n.op in LOADS for a in n.args):
            return None
        rounded = {n.out for n in inside if self.rounds(n)}
        stores = {id(n) for n in inside if n.op == "store" and n.args[0] in names and self._is_strip(n, axis)}
        if looks_like_records([n for n in known if n.out not in taken and id(n) not in stores], axis):
            return None  # what is loaded and stored element by element
        together = any(self._step(n, axis) == 1 for n in loads)
        if not (rounded or stores or together or (loads and any(n.op == "accumulate" for n in inside))):
            return None
        return _phases(axis, before, loads, inside, rounded, stores)

    def _may_be_lane(self, node: Node) -> bool:
        known = node.op in SCALARS or node.op in LOADS or node.op in _OTHERS
        guarded = self.full and self.is_guarded(node)
        return known and not guarded and not node.dtype.is_complex and not self._reads_complex(node)

    def is_guarded(self, node: Node) -> bool:
        """The fast form covers ordinary arguments only."""
        raise NotImplementedError

    def _reads_complex(self, node: Node) -> bool:
        return any(self.dtype_of[name].is_complex for name in node.args)

    def _is_strip(self, node: Node, axis: str) -> bool:
        """Whether a node loads halves, in known steps, or stores those of a strip together."""
        if node.op == "staged":
            return node.dtype is float16 and node.out not in self.raw and node.arg.row == axis
        step = self._step(node, axis)
        together = step == 1 or (node.op != "store" and step is not None and step != 0)
        name = node.args[0] if node.op == "store" else node.out
        return together and self.buffers[node.arg[0]].dtype is float16 and name not in self.raw

    def _is_interleaved(self, node: Node, axis: str) -> bool:
        """Whether compilers load vectors with some elements between those that are wanted, which they do not
        in a strip: the last vector would reach beyond what the strip is known to own."""
        step = self._step(node, axis)
        return step is not None and 2 <= abs(step) <= MOST_INTERLEAVED

    def _step(self, node: Node, axis: str) -> int | None:
        """How far apart the elements are that a node loads or stores; ``None`` where that is not known."""
        if node.op == "staged":
            return 1 if node.arg.row == axis else None
        step = coefficient(node.arg[1], axis)
        return step if isinstance(step, int) else None

    def _reads_again(self, nodes: Sequence[Node]) -> bool:
        """Whether a node reads memory that one before it has written to, but for an element just saved."""
        written: set[str] = set()
        saved = {}
        again = False
        for node in nodes:
            if node.op == "store":
                written |= self.written({node.arg[0]})
            elif node.op == "save":
                saved[node.arg.name] = node.arg
            elif node.op in ("load", "load_from"):
                again = again or node.arg[0] in written
            elif node.op == "fetch":
                again = again or saved.get(node.arg.name, node.arg) != node.arg
        return again

    def written(self, names: set[str]) -> set[str]:
        """Buffers that share memory with those stored to."""
        return (
            names
            | {self.buffers[n].aliases for n in names}
            | {b.name for b in self.buffers.values() if b.aliases in names}
        )

    def rounds(self, node: Node) -> bool:
        """Whether a node's value has to be rounded to float16."""
        if node.dtype is not float16 or node.out in self.unrounded:
            return False
        if node.op == "cast":
            source = self.dtype_of[node.args[0]]
            return source is not float16 and not source.is_bool
        return node.op in SCALARS and not SCALARS[node.op].exact_in_half

    # -- printing -----------------------------------------------------------------------------
    def strip_loop(self, strips: Strips | None, low: str, high: str, heads: Sequence[str] = ("",)) -> str:
        """Print the loop over whole strips from ``low`` on, each once for each of ``heads``; where the rest
        begins."""
        if strips is None:
            return low
        at = f"at_{strips.axis}"
        self.line(f"i64 {at} = {low};")
        self.line("#ifdef DC_STRIP")
        with self.block(f"for (; {at} + DC_STRIP <= {high}; {at} += DC_STRIP)"):
            for head in heads:
                with self.block(""):
                    if head:
                        self.line(head)
                    self.strip(strips, at, "DC_STRIP")
        self.line("#endif")
        return at

    def strips_left(self, strips: Strips | None, base: str, bound: str) -> str:
        """Print the strips that are left over, fewer than lanes of accumulators; the first lane behind."""
        if strips is None:
            return "0"
        self.line("int first = 0;")
        self.line("#ifdef DC_STRIP")
        self.lane = "first + lane"
        with self.block(f"for (; first + DC_STRIP <= {bound} - {base}; first += DC_STRIP)"):
            self.strip(strips, f"{base} + first", "DC_STRIP")
        self.lane = "lane"
        self.line("#endif")
        return "first"

    def strip(self, strips: Strips, base: str, lanes: str) -> None:
        """The strip of ``lanes`` elements from ``base`` on."""
        axis = strips.axis
        self.line(f"const i64 i_{axis} = {base};")
        for node in strips.before:
            self.compute(node)
        for name, node in strips.held.items():
            self.line(f"alignas(64) {self._held_type(node)} {_array(name)}[{lanes}];")
        for node in strips.loads:
            step = self._step(node, axis)
            widen = "dc_widen_f16" if step == 1 else f"dc_widen_step_f16<{step}>"
            self.line(f"{widen}({_array(node.out)}, &{self.read_place(node)});")
        self.deferred = frozenset(n.out for phase in strips.phases for n in phase.rounded)
        for phase in strips.phases:
            if phase.nodes:
                self._lanes(phase, strips, base, lanes)
            for node in phase.rounded:
                self.line(f"dc_reround_f16({_array(node.out)});")
            for node in phase.stores:
                place = self.place_of_store(node)
                self.line(f"dc_narrow_f16(&{place}, {_array(node.args[0])});")
        self.deferred = frozenset()

    def _lanes(self, phase: Phase, strips: Strips, base: str, lanes: str) -> None:
        self.line("#pragma omp simd")
        with self.block(f"for (int lane = 0; lane < {lanes}; ++lane)"):
            self.line(f"const i64 i_{strips.axis} = {base} + lane;")
            made = {node.out for node in phase.nodes}
            needed = dict.fromkeys(a for n in phase.nodes for a in n.args)
            for name in needed:
                if name in strips.held and name not in made:
                    self._take(strips.held[name])
            for node in phase.nodes:
                self.compute(node)
                if node.out in strips.held:
                    self.line(f"{_array(node.out)}[lane] = {self.env[node.out]};")

    def _take(self, node: Node) -> None:
        name = variable(node.out)
        self.env[node.out] = name
        self.exact_products.pop(node.out, None)
        kind = self.kind_of(node.out, node.dtype)
        self.line(f"const {kind} {name} = {_array(node.out)}[lane];")

    def _held_type(self, node: Node) -> str:
        return "unsigned char" if node.dtype.is_bool else self.kind_of(node.out, node.dtype)

    def compute(self, node: Node) -> None:
        """Print a node's statement."""
        raise NotImplementedError

    def place_of_store(self, node: Node) -> str:
        """The element that a node stores to."""
        raise NotImplementedError


def _array(name: str) -> str:
    return f"h_{variable(name)}"


def _phases(
    axis: str,
    before: Sequence[Node],
    loads: Sequence[Node],
    inside: Sequence[Node],
    rounded: set[str],
    stores: set[int],
) -> Strips:
    """Each node in the first phase in which its arguments are known; what is used later alone there."""
    loaded = {n.out for n in loads}
    lanes = [n for n in inside if n.out not in loaded]
    phase = _earliest(lanes, rounded, stores)
    users: dict[str, list[int]] = {}
    for node in reversed(lanes):
        later = users.get(node.out, [])
        if later and node.op not in LOADS and node.op not in ("fetch", "finish") and node.out not in rounded:
            phase[id(node)] = max(phase[id(node)], min(later))
        if id(node) not in stores or node.args[0] not in rounded:
            for name in node.args:
                users.setdefault(name, []).append(phase[id(node)])
    narrowed = {n.args[0] for n in inside if id(n) in stores}
    held: dict[str, Node] = {}
    for node in inside:
        crossing = any(at != phase.get(id(node)) for at in users.get(node.out, ()))
        kept = node.out in loaded or node.out in rounded or node.out in narrowed or crossing
        if node.out and kept and (node.op not in _MADE_AGAIN or node.out in narrowed):
            held[node.out] = node
    count = max(phase.values(), default=0) + 1
    found = []
    for number in range(count):
        here = [n for n in lanes if phase[id(n)] == number]
        wanted = {a for n in here for a in n.args}
        again = [n for n in lanes if n.op in _MADE_AGAIN and n.out in wanted and phase[id(n)] != number]
        found.append(
            Phase(
                [*again, *(n for n in here if id(n) not in stores)],
                [n for n in here if n.out in rounded],
                [n for n in here if id(n) in stores],
            )
        )
    return Strips(axis, before, loads, found, held)


def _earliest(lanes: Sequence[Node], rounded: set[str], stores: set[int]) -> dict[int, int]:
    """The first phase in which each node can be computed, by identity; that of a store of a strip is the one
    behind which its value is rounded."""
    phase: dict[int, int] = {}
    known: dict[str, int] = {}
    for node in lanes:
        names = (_saved(node),) if node.op == "fetch" else node.args
        at = max((known.get(name, 0) for name in names), default=0)
        if id(node) in stores and node.args[0] in rounded:
            at -= 1
        phase[id(node)] = at
        known[_saved(node) if node.op == "save" else node.out] = at + (node.out in rounded)
    return phase


def _saved(node: Node) -> str:
    """Stands for what a node saves or fetches."""
    return f"#saved:{node.arg.name}"

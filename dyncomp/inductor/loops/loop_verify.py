"""The rules of the loop IR (see ``loop_ir``), checked."""

from __future__ import annotations

from collections.abc import Sequence

from ... import dtypes
from ...errors import VerifyError
from ...prims.scalar import COMBINERS, REDUCERS, SCALARS, result_dtype
from .loop_ir import Buffer, Index, Kernel, Stmt

EFFECTS = ("store", "scatter", "check")


def verify_kernel(kernel: Kernel) -> Kernel:
    """Return the kernel, or raise :class:`VerifyError` naming the statement that breaks a rule."""
    _Verifier(kernel).run()
    return kernel


class _Verifier:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.axes = [a.name for a in kernel.axes]
        self.parallel = [a.name for a in kernel.axes if a.kind == "parallel"]
        self.reduced = [a.name for a in kernel.axes if a.kind == "reduce"]
        self.buffers = {b.name: b for b in kernel.buffers}
        self.values: dict[str, Stmt] = {}
        self.read_at: dict[str, list[Index | None]] = {}
        self.written_at: dict[str, list[Index | None]] = {}

    def fail(self, number: int, why: str) -> None:
        raise VerifyError(f"kernel {self.kernel.name}, statement {number}: {why}")

    def run(self) -> None:
        self._header()
        for number, stmt in enumerate(self.kernel.body):
            self._stmt(number, stmt)
        for name, buffer in self.buffers.items():
            self._mode(name, buffer)

    def _header(self) -> None:
        if len(set(self.axes)) != len(self.axes) or len(self.buffers) != len(self.kernel.buffers):
            raise VerifyError(f"kernel {self.kernel.name}: axes or buffers of one name")
        if any(a.kind not in ("parallel", "reduce") for a in self.kernel.axes):
            raise VerifyError(f"kernel {self.kernel.name}: unknown kind of axis")

    def _mode(self, name: str, buffer: Buffer) -> None:
        reads, writes = name in self.read_at, name in self.written_at
        scatters = any(s.op == "scatter" and s.arg[0] == name for s in self.kernel.body)
        expected = "inout" if (reads and writes) or scatters else "out" if writes else "in"
        if buffer.mode != expected or not (reads or writes):
            raise VerifyError(f"kernel {self.kernel.name}: buffer {name} is {expected}, not {buffer.mode}")

    def _stmt(self, number: int, stmt: Stmt) -> None:
        if list(stmt.axes) != [a for a in self.axes if a in stmt.axes]:
            self.fail(number, f"axes {stmt.axes} are not in the kernel's order")
        for name in stmt.args:
            if name not in self.values:
                self.fail(number, f"{name} is not defined before it")
        if bool(stmt.out) == (stmt.op in EFFECTS):
            self.fail(number, "effects have no result, all else has one")
        if stmt.out in self.values:
            self.fail(number, f"{stmt.out} is defined twice")
        check = getattr(self, f"_check_{stmt.op}", None)
        if check is not None:
            check(number, stmt)
        else:
            self._check_scalar(number, stmt)
        if stmt.out:
            self.values[stmt.out] = stmt

    def _within(self, number: int, stmt: Stmt, names: Sequence[str], exact: bool = True) -> None:
        found = set(names)
        for a in stmt.args:
            found |= set(self.values[a].axes)
        if found != set(stmt.axes) if exact else not found <= set(stmt.axes):
            self.fail(number, f"depends on {sorted(found)}, declared over {stmt.axes}")

    def _check_scalar(self, number: int, stmt: Stmt) -> None:
        if stmt.op not in SCALARS:
            self.fail(number, f"no scalar op {stmt.op!r}")
        expected = result_dtype(stmt.op, [self.values[a].dtype for a in stmt.args])
        if stmt.dtype is not expected:
            self.fail(number, f"gives {expected}, declared {stmt.dtype}")
        self._within(number, stmt, ())

    def _check_const(self, number: int, stmt: Stmt) -> None:
        self._within(number, stmt, ())

    def _check_cast(self, number: int, stmt: Stmt) -> None:
        # a cast may also spread a value over further axes
        self._within(number, stmt, (), exact=False)

    def _check_symbol(self, number: int, stmt: Stmt) -> None:
        if stmt.dtype is not dtypes.int64:
            self.fail(number, "a symbol is int64")
        self._within(number, stmt, ())

    def _check_axis(self, number: int, stmt: Stmt) -> None:
        if stmt.dtype is not dtypes.int64:
            self.fail(number, "a position is int64")
        self._within(number, stmt, (stmt.arg,))

    def _buffer(self, number: int, stmt: Stmt) -> Index:
        name, index = stmt.arg[:2]
        if name not in self.buffers:
            self.fail(number, f"no buffer {name!r}")
        if self.buffers[name].dtype is not stmt.dtype:
            self.fail(number, f"{name} holds {self.buffers[name].dtype}, not {stmt.dtype}")
        if not {axis for axis, _ in index.terms} <= set(self.axes):
            self.fail(number, "an index over an unknown axis")
        found: Index = index
        return found

    def _check_load(self, number: int, stmt: Stmt) -> None:
        index = self._buffer(number, stmt)
        self._within(number, stmt, [axis for axis, _ in index.terms])
        self._note_read(number, stmt.arg[0], index)

    def _check_gather(self, number: int, stmt: Stmt) -> None:
        index = self._buffer(number, stmt)
        self._positions(number, stmt.args, stmt.arg[2:5])
        self._within(number, stmt, [axis for axis, _ in index.terms])
        self._note_read(number, stmt.arg[0], None)

    def _positions(self, number: int, args: Sequence[str], facts: Sequence[Sequence[object]]) -> None:
        if any(len(f) != len(args) for f in facts) or not args:
            self.fail(number, "one stride, size and wrap per position")
        if any(self.values[a].dtype is not dtypes.int64 for a in args):
            self.fail(number, "positions are int64")

    def _note_read(self, number: int, name: str, index: Index | None) -> None:
        if name in self.written_at:
            self.fail(number, f"{name} is read after it is written")
        self.read_at.setdefault(name, []).append(index)

    def _check_reduce(self, number: int, stmt: Stmt) -> None:
        combiner, axes = stmt.arg
        (value,) = (self.values[a] for a in stmt.args)
        if combiner not in REDUCERS:
            self.fail(number, f"no reducer {combiner!r}")
        if set(axes) != set(self.reduced) or set(value.axes) != set(self.axes):
            self.fail(
                number, f"reduces {axes} of a value over {value.axes}; the kernel reduces {self.reduced}"
            )
        if list(stmt.axes) != self.parallel:
            self.fail(number, "the result of a reduction is over the parallel axes")
        positional = REDUCERS[combiner].position
        if positional and len(axes) != 1:
            self.fail(number, f"{combiner} over several axes")
        if stmt.dtype is not (dtypes.int64 if positional else value.dtype):
            self.fail(number, f"{combiner} of {value.dtype} gives {stmt.dtype}")

    def _check_scan(self, number: int, stmt: Stmt) -> None:
        combiner, axis = stmt.arg
        if combiner not in REDUCERS or [axis] != self.reduced or list(stmt.axes) != self.axes:
            self.fail(number, "a scan is over all axes, along the only reduce axis")
        if any(s.op == "reduce" for s in self.kernel.body):
            self.fail(number, "a scan and a reduction in one kernel")

    def _check_check(self, number: int, stmt: Stmt) -> None:
        self._positions(number, stmt.args, stmt.arg)

    def _check_store(self, number: int, stmt: Stmt) -> None:
        index = self._buffer(number, stmt)
        self._effect_axes(number, stmt)
        if len(stmt.args) != 1 or self.values[stmt.args[0]].dtype is not stmt.dtype:
            self.fail(number, "stores one value of the buffer's dtype")
        name = stmt.arg[0]
        if index in self.written_at.get(name, ()):
            self.fail(number, f"{name} is written twice at one position")
        if any(i != index for i in self.read_at.get(name, ())):
            self.fail(number, f"{name} is read elsewhere than it is written")
        self.written_at.setdefault(name, []).append(index)

    def _check_scatter(self, number: int, stmt: Stmt) -> None:
        self._buffer(number, stmt)
        self._effect_axes(number, stmt)
        self._positions(number, stmt.args[1:], stmt.arg[2:5])
        name = stmt.arg[0]
        if stmt.arg[5] != "set" and stmt.arg[5] not in COMBINERS:
            self.fail(number, f"no combiner {stmt.arg[5]!r}")
        if name in self.read_at:
            self.fail(number, f"{name} is read by the kernel that scatters into it")
        self.written_at.setdefault(name, []).append(None)

    def _effect_axes(self, number: int, stmt: Stmt) -> None:
        if list(stmt.axes) not in (self.axes, self.parallel):
            self.fail(number, f"an effect over {stmt.axes}")
        for a in stmt.args:
            if not set(self.values[a].axes) <= set(stmt.axes):
                self.fail(number, f"{a} varies along axes that {stmt.op} is not over")

"""Loop IR as Python text, and back: ``parse_kernel(kernel_text(k)) == k``."""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes
from ...dtypes import DType
from ...symbolic.integers import Dim, ShapeEnv, SymInt, sym_max, sym_min
from .loop_ir import Axis, Buffer, Index, Kernel, Stmt


def kernel_text(kernel: Kernel) -> str:
    """A kernel as one Python expression that builds it, a statement a line."""
    lines = [f"Kernel({kernel.name!r},"]
    lines.append(f"  axes=[{', '.join(_axis(a) for a in kernel.axes)}],")
    lines.append(f"  buffers=[{', '.join(_buffer(b) for b in kernel.buffers)}],")
    lines.append("  body=[")
    lines += [f"    {_stmt(s)}," for s in kernel.body]
    lines.append(f"  ], origin={list(kernel.origin)!r})")
    return "\n".join(lines)


def _axis(axis: Axis) -> str:
    most = f", {axis.most}" if axis.most else ""
    return f"axis({axis.name!r}, {_dim(axis.size)}, {axis.kind!r}{most})"


def _buffer(buffer: Buffer) -> str:
    alias = f", {buffer.aliases!r}" if buffer.aliases else ""
    return f"buffer({buffer.name!r}, {buffer.dtype!r}, {_dim(buffer.size)}, {buffer.mode!r}{alias})"


def _stmt(stmt: Stmt) -> str:
    parts = [
        repr(stmt.op),
        f"[{', '.join(map(repr, stmt.args))}]",
        repr("".join(f"{a} " for a in stmt.axes).strip()),
    ]
    parts.append(_arg(stmt.arg))
    return f"stmt({stmt.out!r}, {', '.join(parts)}, {stmt.dtype!r})"


def _dim(dim: Dim) -> str:
    return f"({dim})" if isinstance(dim, SymInt) else repr(dim)


def _arg(arg: object) -> str:
    if isinstance(arg, tuple):
        return f"({''.join(_arg(a) + ', ' for a in arg)})"
    if isinstance(arg, Index):
        terms = "".join(f"({name!r}, {_dim(c)}), " for name, c in arg.terms)
        return f"at(({terms}), {_dim(arg.offset)})"
    if isinstance(arg, SymInt):
        return _dim(arg)
    if isinstance(arg, float) and not math.isfinite(arg):
        return _special(arg)
    if isinstance(arg, complex):
        return f"complex({_arg(arg.real)}, {_arg(arg.imag)})"
    return repr(arg)


def _special(value: float) -> str:
    if math.isnan(value):
        return "nan"
    return "inf" if value > 0 else "-inf"


def parse_kernel(text: str, env: ShapeEnv | None = None) -> Kernel:
    """The inverse of :func:`kernel_text`; symbols are those of ``env``."""
    names: dict[str, Any] = {name: env.symbol(name) for name in env.symbols} if env is not None else {}
    names |= {"Kernel": _kernel, "axis": Axis, "buffer": _make_buffer, "stmt": _make_stmt, "at": Index}
    names.update(dtypes=dtypes, nan=math.nan, inf=math.inf, complex=complex, min=sym_min, max=sym_max)
    made = eval(text, {"__builtins__": {}}, names)  # noqa: S307 - our own printed form
    if not isinstance(made, Kernel):
        raise ValueError("not a kernel")
    return made


def _kernel(
    name: str, axes: list[Axis], buffers: list[Buffer], body: list[Stmt], origin: list[str]
) -> Kernel:
    return Kernel(name, tuple(axes), tuple(buffers), tuple(body), tuple(origin))


def _make_buffer(name: str, dtype: DType, size: Dim, mode: str, aliases: str = "") -> Buffer:
    return Buffer(name, dtype, size, mode, aliases)


def _make_stmt(out: str, op: str, args: list[str], axes: str, arg: object, dtype: DType) -> Stmt:
    return Stmt(out, op, tuple(args), tuple(axes.split()), arg, dtype)

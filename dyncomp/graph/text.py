"""Graphs as text: a Python function that runs, and that parses back to the same graph.

::

    def graph(in0, s0):  # functional
        # in0: float64[s1, 4]  array  'x'
        # s0: integer 0, hint 3
        s1 = in0.shape[0]  # hint 7, low 0
        v0 = strided_slice(in0, starts=(s0, 0), sizes=(s1 - s0, 4), steps=(1, 1))  # float64[…]  f.py:3 f
        v1 = exp(v0)  # float64[-s0 + s1, 4]  f.py:3 f
        return v1

:func:`to_function` executes the text with NumPy; :func:`parse` reads it. ``explain()`` shows it.
"""

from __future__ import annotations

import ast
import base64
import re
from collections.abc import Callable, Iterable, Mapping
from keyword import iskeyword
from typing import Any

import numpy as np

from .. import dtypes
from ..comments import in_comment
from ..device import Device
from ..dtypes import DType
from ..errors import VerifyError
from ..symbolic.integers import Dim, ShapeEnv, SymInt, sym_max, sym_min
from . import interp
from .ir import (
    ArrayType,
    Callee,
    Graph,
    GraphInput,
    GraphOutput,
    Literal,
    Loc,
    Node,
    OpTable,
    SymbolBinding,
    Var,
    ViewOf,
    contiguous_strides,
    verify,
)

_INDENT = "    "
_SPELLED_OUT = 32  # literals of up to this many elements are printed element by element


# -- printing ---------------------------------------------------------------------------------
def print_graph(graph: Graph, *, locations: bool = True) -> str:
    """The text of ``graph``. Without ``locations`` the users' lines are left out (for comparing)."""
    lines = [_header(graph)]
    lines += [_INDENT + text for text in _input_lines(graph)]
    lines += [_INDENT + text for text in _symbol_lines(graph)]
    lines += [_INDENT + print_node(node, locations=locations) for node in graph.nodes]
    if graph.mutations:
        pairs = ", ".join(f"({graph.inputs[i].var.name}, {v.name})" for i, v in graph.mutations)
        lines.append(f"{_INDENT}write_back({pairs})")
    outputs = ", ".join(print_output(graph, out) for out in graph.outputs)
    lines.append(f"{_INDENT}return {outputs}{',' if len(graph.outputs) == 1 else ''}".rstrip())
    return "\n".join(lines) + "\n"


def _header(graph: Graph) -> str:
    integers = [s.name for s in graph.symbols if s.kind == "int"]
    parameters = ", ".join([inp.var.name for inp in graph.inputs] + integers)
    name = graph.name if graph.name.isidentifier() and not iskeyword(graph.name) else "graph"
    notes = [f"name {graph.name!r}"] if name != graph.name else []
    notes += ["functional"] if graph.functional else []
    return f"def {name}({parameters}):" + (f"  # {', '.join(notes)}" if notes else "")


def _input_lines(graph: Graph) -> list[str]:
    lines = []
    for inp in graph.inputs:
        label = f"  {inp.label!r}" if inp.label else ""
        kind = " ".join([inp.kind, *["differentiated"] * inp.differentiated, *["spare"] * inp.spare])
        kind += " unheard" * inp.unheard
        lines.append(f"# {inp.var.name}: {print_type(inp.var.type)}  {kind}{label}")
    return lines


def _symbol_lines(graph: Graph) -> list[str]:
    lines = []
    for symbol in graph.symbols:
        facts = _symbol_facts(graph.env, symbol.name)
        if symbol.kind == "int":
            lines.append(f"# {symbol.name}: integer {symbol.index}{facts}")
            continue
        if symbol.kind == "node":
            lines.append(f"# {symbol.name}: computed{facts}")
            continue
        source = graph.inputs[symbol.index].var.name
        if symbol.kind == "dim":
            lines.append(f"{symbol.name} = {source}.shape[{symbol.axis}]  # dim{facts}")
        else:
            lines.append(f"{symbol.name} = stride({source}, {symbol.axis})  # stride{facts}")
    known = {symbol.name for symbol in graph.symbols}
    checked = (guard for guard in graph.env.unbacked_guards() if guard.expr.symbols() <= known)
    return lines + [f"# assumed: {guard.expr} {guard.relation} 0" for guard in checked]


def _symbol_facts(env: ShapeEnv, name: str) -> str:
    info = env.symbols.get(name)
    if info is None:
        return ""
    text = f", hint {info.hint}"
    text += "" if info.low is None else f", low {info.low}"
    return text + ("" if info.high is None else f", high {info.high}")


def print_type(type: ArrayType) -> str:
    """``float64[3, s0]``, with ``{strides}`` where it is not C-contiguous and ``@device`` off the CPU."""
    return str(type)


def print_node(node: Node, *, locations: bool = True) -> str:
    """One node as an assignment with the types, and the user's line, in a comment."""
    arguments = [v.name for v in node.inputs]
    arguments += [f"{name}={print_value(value)}" for name, value in node.params]
    call = f"{node.op}({', '.join(arguments)})"
    if node.outputs:
        targets = ", ".join(v.name for v in node.outputs)
        call = f"{targets} = {call}"
    notes = [" ; ".join(print_type(v.type) for v in node.outputs)] if node.outputs else []
    if locations and node.loc is not None:
        notes.append(in_comment(str(node.loc) + (f" {node.loc.function}" if node.loc.function else "")))
    return call + (f"  # {'  '.join(notes)}" if notes else "")


def print_output(graph: Graph, out: GraphOutput) -> str:
    """How one output is returned: ``v3``, ``scalar(v3)``, ``view(in0, (2,), (1,), 4)``, …"""
    text = out.var.name
    if out.view is not None:
        view = out.view
        inside = ", ".join(map(print_value, (view.shape, view.strides, view.offset)))
        opening = "view(" if view.kind == "input" else f"view_of({view.index}, "
        text = f"{opening}{text}, {inside})"
        text = f"stopped({text})" if view.stopped else text
    if out.kind != "array":
        text = f"{out.kind}({text})"
    if out.readonly:
        text = f"readonly({text})"
    return f"hidden({text})" if out.hidden else text


def print_value(value: object) -> str:
    """A parameter as a Python expression that :func:`parse` evaluates to the same value."""
    if isinstance(value, bool) or value is None or isinstance(value, (int, str, bytes)):
        return repr(value)
    if isinstance(value, (float, complex)):
        return _print_number(value)
    if isinstance(value, SymInt):
        return str(value)
    if isinstance(value, DType):
        return _dtype_name(value)
    if isinstance(value, Device):
        return f"device({str(value)!r})"
    if isinstance(value, Literal):
        return _print_literal(value)
    if isinstance(value, Callee):
        return f"callee({value.name!r})"  # which is of this process: the text does not parse
    if isinstance(value, tuple):
        return f"({', '.join(map(print_value, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(print_value, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{print_value(k)}: {print_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, slice):
        return f"slice({print_value(value.start)}, {print_value(value.stop)}, {print_value(value.step)})"
    raise TypeError(f"a node parameter cannot be a {type(value).__name__}")


def _print_number(value: float | complex) -> str:
    if isinstance(value, float):
        return repr(value)  # nan and inf are names of the namespace
    return f"complex({value.real!r}, {value.imag!r})"


def _dtype_name(dtype: DType) -> str:
    return "bool_" if dtype.name == "bool" else dtype.name


def _print_literal(value: Literal) -> str:
    name = _dtype_name(value.dtype)
    array = value.to_numpy()
    if array.size <= _SPELLED_OUT and value.dtype.name != "bfloat16":
        nested = print_value(array.tolist())
        if _literal(value.dtype, nested_value(nested), value.shape) == value:
            return f"literal({name}, {nested}, {value.shape!r})"
    return f"literal({name}, {base64.b85encode(value.data).decode()!r}, {value.shape!r})"


def nested_value(text: str) -> Any:
    """Evaluate a printed number or nested list of numbers."""
    return eval(text, {"__builtins__": {}, "nan": np.nan, "inf": np.inf, "complex": complex})  # noqa: S307


def _literal(dtype: DType, data: object, shape: tuple[int, ...]) -> Literal:
    if isinstance(data, str):
        return Literal(dtype, shape, base64.b85decode(data))
    return Literal(dtype, shape, np.array(data, dtype.numpy).reshape(shape).tobytes())


# -- running ----------------------------------------------------------------------------------
def _constants() -> dict[str, Any]:
    names: dict[str, Any] = {_dtype_name(d): d for d in dtypes.ALL}
    names.update(device=Device.parse, literal=_literal, complex=complex, slice=slice, nan=np.nan, inf=np.inf)
    return names


def to_function(text: str, table: Mapping[str, Any]) -> Callable[..., Any]:
    """Execute a printed graph: a function on NumPy arrays (and integers) that returns a tuple.

    Types are not enforced and outputs are not made fresh, as the interpreter does it; otherwise equal.
    """
    names = namespace(table)
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    exec(compile(text, "<graph>", "exec"), names)  # noqa: S102 - our own printed form
    return names[function.name]


def namespace(table: Mapping[str, Any]) -> dict[str, Any]:
    """What the names in the text of a graph stand for."""
    names = _constants()
    names.update(
        min=min,
        max=max,
        stride=lambda array, axis: array.strides[axis] // array.itemsize,
        copy_=_copy,
        write_back=_write_back,
        view=interp.strided_window,
        view_of=lambda index, array, shape, strides, offset: interp.strided_window(
            array, shape, strides, offset
        ),
        scalar=lambda array: array[()],
        python=lambda array: array.item(),
        readonly=lambda array: array,
        stopped=lambda array: array,
        hidden=lambda array: array,
    )
    names.update({name: row.ref for name, row in table.items()})
    return names


def _copy(dst: np.ndarray[Any, Any], src: np.ndarray[Any, Any]) -> None:
    dst[...] = src


def _write_back(*pairs: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]) -> None:
    for (target, _), value in zip(pairs, [value.copy() for _, value in pairs]):
        target[...] = value


# -- parsing ----------------------------------------------------------------------------------
_SYMBOL = re.compile(r"\s*(?:# (\w+): (?:integer \d+|computed)|(\w+) = [^#]*  # (?:dim|stride))(.*)$")
_FACT = re.compile(r"(hint|low|high) (-?\d+)")
_TYPE = re.compile(r"(\w+)\[(.*?)\](?:\{(.*?)\})?(?:@(\S+))?$")
_LOC = re.compile(r"(.*):(\d+)(?: (.+))?$")


def parse(text: str, table: OpTable, callees: Iterable[Callee] = ()) -> Graph:
    """The graph that was printed as ``text``, verified. ``callees``: those among the parameters of its nodes,
    in order (:func:`callees_of`). Raises ``VerifyError`` or ``SyntaxError``."""
    return _Parser(text, callees).graph(table)


def callees_of(graph: Graph) -> list[Callee]:
    """The Python functions that nodes call, in the order in which the text has them."""
    return [value for node in graph.nodes for _, value in node.params if type(value) is Callee]


def parse_size(text: str, env: ShapeEnv) -> Dim:
    """A size as it is printed, of the symbols of ``env``."""
    names = {name: env.symbol(name) for name in env.symbols}
    return eval(text, {"min": sym_min, "max": sym_max, "__builtins__": {}, **names})  # type: ignore[no-any-return]  # noqa: S307


class _Parser:
    """Reads one printed graph line by line (the printer puts one node on a line)."""

    def __init__(self, text: str, callees: Iterable[Callee]) -> None:
        self.lines = [line for line in text.splitlines() if line.strip()]
        self.env = ShapeEnv()
        self.vars: dict[str, Var] = {}
        self.inputs: list[GraphInput] = []
        self.symbols: list[SymbolBinding] = []
        self.nodes: list[Node] = []
        self.mutations: list[tuple[int, Var]] = []
        self.outputs: list[GraphOutput] = []
        self.callees = iter(callees)
        self.names = {
            "callee": self._callee,
            **_constants(),
            "min": sym_min,
            "max": sym_max,
            "__builtins__": {},
        }

    def _callee(self, name: str) -> Callee:
        found = next(self.callees, None)
        if found is None or found.name != name:
            raise VerifyError(f"no function {name} is given for the graph")
        return found

    def graph(self, table: OpTable) -> Graph:
        code, _, note = self.lines[0].partition("  # ")
        function = ast.parse(code + " pass").body[0]
        if not isinstance(function, ast.FunctionDef):
            raise VerifyError("a graph's text starts with def")
        self._declare_symbols()
        for line in self.lines[1:]:
            self._line(line)
        named = re.search(r"name ('.*?')(?:, functional)?$", note)
        name = ast.literal_eval(named.group(1)) if named else function.name
        functional = note.endswith("functional")
        graph = Graph(
            name,
            tuple(self.inputs),
            tuple(self.symbols),
            tuple(self.nodes),
            tuple(self.outputs),
            tuple(self.mutations),
            functional,
            self.env,
        )
        return verify(graph, table)

    def _declare_symbols(self) -> None:
        """Symbols first: the types of the inputs, which are printed before them, use them."""
        found = []
        for line in self.lines[1:]:
            match = _SYMBOL.match(line)
            if match:
                facts = {key: int(value) for key, value in _FACT.findall(match.group(3))}
                found.append((match.group(1) or match.group(2), facts))
        for name, facts in found:
            hint = facts.pop("hint", 2)
            self.env.new_symbol(hint, **facts)
            last = list(self.env.symbols)[-1]
            if last != name:
                info = self.env.symbols.pop(last)
                info.name = name
                self.env.symbols[name] = info
        self.names.update({name: self.env.symbol(name) for name in self.env.symbols})

    def _line(self, line: str) -> None:
        stripped = line.strip()
        if stripped.startswith("# "):
            self._declaration(stripped[2:])
            return
        statement = ast.parse(stripped).body[0]
        comment = _comment(stripped)
        if isinstance(statement, ast.Return):
            self._return(statement)
        elif isinstance(statement, ast.Expr) and _called(statement.value) == "write_back":
            self._mutations(statement.value)
        elif isinstance(statement, ast.Assign) and re.match(r"(dim|stride)\b", comment):
            self._symbol(statement, comment)
        elif isinstance(statement, (ast.Assign, ast.Expr)):
            self._node(statement, comment)
        else:
            raise VerifyError(f"not a statement of a graph: {stripped}")

    def _declaration(self, text: str) -> None:
        name, _, rest = text.partition(": ")
        if name == "assumed":
            self._assumption(rest)
            return
        if rest.startswith("integer "):
            index = int(rest.split()[1].rstrip(","))
            self.symbols.append(SymbolBinding(name, "int", index))
            return
        if rest.startswith("computed"):
            self.env.symbols[name].unbacked = True
            self.symbols.append(SymbolBinding(name, "node", 0))
            return
        type_text, kind, *label = rest.split("  ", 2)
        var = self._define(name, self._type(type_text))
        kind, *facts = kind.split(" ")
        text = ast.literal_eval(label[0]) if label else ""
        notes = [note in facts for note in ("differentiated", "spare", "unheard")]
        self.inputs.append(GraphInput(var, kind, text, *notes))

    def _assumption(self, text: str) -> None:
        """What the graph checks of sizes that depend on the data, when they are known."""
        expr, relation, _ = text.rsplit(" ", 2)
        self.env.assume(self._value(ast.parse(expr, mode="eval").body), relation)

    def _symbol(self, statement: ast.Assign, comment: str) -> None:
        (target,) = statement.targets
        assert isinstance(target, ast.Name)
        match = re.match(r"(?:stride\()?(\w+)(?:\.shape\[|, )(\d+)", ast.unparse(statement.value))
        assert match is not None
        index = [inp.var.name for inp in self.inputs].index(match.group(1))
        kind = comment.split(",")[0]
        self.symbols.append(SymbolBinding(target.id, kind, index, int(match.group(2))))

    def _node(self, statement: ast.Assign | ast.Expr, comment: str) -> None:
        call = statement.value
        if not isinstance(call, ast.Call):
            raise VerifyError(f"not a node: {ast.unparse(statement)}")
        inputs = tuple(self._var(argument) for argument in call.args)
        params = tuple((k.arg or "", self._value(k.value)) for k in call.keywords)
        outputs: tuple[Var, ...] = ()
        place = comment
        if isinstance(statement, ast.Assign):
            types, _, place = comment.partition("  ")
            names = [n.id for n in ast.walk(statement.targets[0]) if isinstance(n, ast.Name)]
            typed = zip(names, types.split(" ; "), strict=True)
            outputs = tuple(self._define(name, self._type(text)) for name, text in typed)
        self.nodes.append(Node(_called(call), inputs, params, outputs, _parse_loc(place)))

    def _mutations(self, call: ast.expr) -> None:
        assert isinstance(call, ast.Call)
        names = [inp.var.name for inp in self.inputs]
        for pair in call.args:
            assert isinstance(pair, ast.Tuple)
            target, value = pair.elts
            self.mutations.append((names.index(self._var(target).name), self._var(value)))

    def _return(self, statement: ast.Return) -> None:
        value = statement.value
        items = value.elts if isinstance(value, ast.Tuple) else [] if value is None else [value]
        self.outputs = [self._output(item) for item in items]

    def _output(self, expr: ast.expr) -> GraphOutput:
        hidden, expr = _unwrapped(expr, ("hidden",))
        readonly, expr = _unwrapped(expr, ("readonly",))
        kind, expr = _unwrapped(expr, ("scalar", "python", "host"))
        stopped, expr = _unwrapped(expr, ("stopped",))
        if not isinstance(expr, ast.Call):
            return GraphOutput(self._var(expr), kind or "array", None, bool(hidden), bool(readonly))
        arguments = list(expr.args)
        index = self._value(arguments.pop(0)) if _called(expr) == "view_of" else -1
        var = self._var(arguments[0])
        shape, strides, offset = (self._value(a) for a in arguments[1:])
        if index < 0:
            index = [inp.var.name for inp in self.inputs].index(var.name)
            view = ViewOf("input", index, shape, strides, offset, bool(stopped))
        else:
            view = ViewOf("output", index, shape, strides, offset, bool(stopped))
        return GraphOutput(var, kind or "array", view, bool(hidden), bool(readonly))

    def _define(self, name: str, type: ArrayType) -> Var:
        var = Var(name, type)
        self.vars[name] = var
        return var

    def _var(self, expr: ast.expr) -> Var:
        if not isinstance(expr, ast.Name) or expr.id not in self.vars:
            raise VerifyError(f"{ast.unparse(expr)} is not a value defined before")
        return self.vars[expr.id]

    def _value(self, expr: ast.expr) -> Any:
        code = compile(ast.Expression(expr), "<graph>", "eval")
        return eval(code, self.names)  # noqa: S307 - our own printed form, no builtins

    def _dims(self, text: str) -> tuple[Dim, ...]:
        return self._value(ast.parse(f"({text},)", mode="eval").body) if text else ()

    def _type(self, text: str) -> ArrayType:
        match = _TYPE.match(text.strip())
        if match is None:
            raise VerifyError(f"not a type: {text!r}")
        name, dims, steps, place = match.groups()
        shape = self._dims(dims)
        strides = self._dims(steps) if steps else contiguous_strides(shape)
        return ArrayType(dtypes.BY_NAME[name], shape, strides, Device.parse(place or "cpu"))


def _called(expr: ast.expr) -> str:
    return expr.func.id if isinstance(expr, ast.Call) and isinstance(expr.func, ast.Name) else ""


def _unwrapped(expr: ast.expr, wrappers: tuple[str, ...]) -> tuple[str, ast.expr]:
    """The name of the wrapper around ``expr`` (or "") and what is inside."""
    name = _called(expr)
    if name in wrappers:
        assert isinstance(expr, ast.Call)
        return name, expr.args[0]
    return "", expr


def _comment(line: str) -> str:
    """What follows the last ``  # `` that is not inside the code (string parameters may hold one)."""
    statement = ast.parse(line).body[0]
    code = line.encode()[: statement.end_col_offset].decode()
    return line[len(code) :].strip().removeprefix("# ")


def _parse_loc(text: str) -> Loc | None:
    match = _LOC.match(text)
    if match is None:
        return None
    return Loc(match.group(1), int(match.group(2)), match.group(3) or "")

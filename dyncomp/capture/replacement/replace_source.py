"""From the lines of a :class:`~.codegen.Codegen` to a code object that can stand in for the original."""

from __future__ import annotations

import dataclasses
import functools
import types
from typing import Any

from .._hook import later
from ..breaks import Skip
from ..bytecode import transfers
from ..bytecode.continuation import made_later
from ..bytecode.instr import CO_VARARGS, CO_VARKEYWORDS, CanonicalCode, Loc, make_instr
from ..pyver import decode, encode
from ..values.number import NumberValue
from .codegen import Codegen
from .release import release_dead

_INDENT = "    "
_ON_LOCALS = ("LOAD_FAST", "STORE_FAST", "DELETE_FAST")
Line = tuple[str, Loc]


def build_function(cg: Codegen, graph_call: Any, code: types.CodeType) -> tuple[types.CodeType, str]:
    """The replacement of ``code`` and its source text."""
    if not all(name.isidentifier() for name in code.co_freevars):
        raise Skip("a free variable that source cannot name")
    lines = _function_lines(cg, graph_call, code)
    text = "\n".join(line for line, _ in lines)
    return _compile(cg, lines, code), text


def _function_lines(cg: Codegen, graph_call: Any, code: types.CodeType) -> list[Line]:
    first = transfers.line_loc(code.co_firstlineno)
    lines: list[Line] = [(f"def {_name(code)}({_signature(cg, code)}):", first)]
    if code.co_freevars:
        lines.append((f"{_INDENT}if 0: ({', '.join(code.co_freevars)},)", first))
    call = [_graph_line(cg, graph_call), *_readonly_lines(cg)] if graph_call is not None else []
    conditions = _conditions(cg)
    # rendering the graph's arguments and the conditions may have added loads: they come first
    guarded = [*cg.prelude, *conditions, *call]
    if guarded:
        lines += _all_or_nothing(cg, guarded, code)
        lines += [(_INDENT * 2 + text, place) for text, place in cg.body]
        lines.append((f"{_INDENT}return {_original_call(cg, code)}", first))
    else:
        lines += [(_INDENT + text, place) for text, place in cg.body]
    return lines


def _readonly_lines(cg: Codegen) -> list[str]:
    """What NumPy hands out read-only."""
    refs = [value.ref for value in cg.outputs]
    readonly = [i for i, ref in enumerate(refs) if ref.readonly and not ref.writeable_outside]
    return [f"__g{i}.flags.writeable = False" for i in readonly if refs[i].kind == "array"]


def _name(code: types.CodeType) -> str:
    return code.co_name if code.co_name.isidentifier() else "compiled"


def _graph_line(cg: Codegen, graph_call: Any) -> str:
    args = [_input_text(cg, value) for value in cg.tracer.inputs]
    args += [cg.number(s) if isinstance(s, NumberValue) else cg.load(s) for s in cg.tracer.integers]
    call = f"{_graph_constant(cg, graph_call)}({', '.join(args)})"
    names = [f"__g{i}" for i in range(len(cg.outputs))]
    if not names:
        return call
    target = names[0] if len(names) == 1 else f"({', '.join(names)})"
    return f"{target} = {call}"


def _conditions(cg: Codegen) -> list[str]:
    """Checks of what was assumed of integers that are computed here and of cached results, which guards
    cannot see."""
    tracer = cg.tracer
    stale = cg.constant(Stale)
    lines = []
    for name in tracer.computed_symbols():
        text = cg.symbolic(tracer.env.symbol(name))
        lines.append(f"if not {-(2**63)} <= {text} < {2**63}: raise {stale}")
    for function, args, kwargs, expected in tracer.expected_calls:
        parts = [*map(cg.constant, args), *(f"{name}={cg.constant(v)}" for name, v in kwargs.items())]
        same = f"{cg.constant(same_constant)}({cg.constant(function)}({', '.join(parts)}), {expected!r})"
        lines.append(f"if not {same}: raise {stale}")
    for guard in tracer.env.guards:
        if tracer.is_computed(guard.expr) and not tracer.env.is_unbacked(guard.expr):
            lines.append(f"if not {cg.symbolic(guard.expr)} {guard.relation} 0: raise {stale}")
    return lines


def same_constant(found: Any, expected: Any) -> bool:
    return type(found) is type(expected) and bool(found == expected)


class Stale(Exception):
    """An assumption about an integer that compiled code computed does not hold: the original runs."""


def _input_text(cg: Codegen, value: Any) -> str:
    return cg.load(value.source) if value.source is not None else cg.number(value)


def _graph_constant(cg: Codegen, graph_call: Any) -> str:
    name = "__graph"
    cg.constants[name] = graph_call
    return name


def _all_or_nothing(cg: Codegen, guarded: list[str], code: types.CodeType) -> list[Line]:
    first = transfers.line_loc(code.co_firstlineno)
    lines = [(f"{_INDENT}try:", first)]
    lines += [(_INDENT * 2 + text, first) for text in guarded]
    lines.append((f"{_INDENT}except {cg.constant(Exception)}: pass", first))
    lines.append((f"{_INDENT}else:", first))
    return lines


def _original_call(cg: Codegen, code: types.CodeType) -> str:
    """Run the original from the start, as plain Python."""
    cells = ", ".join(f"(lambda: {name}).__closure__[0]" for name in code.co_freevars)
    closure = f"({cells},)" if cells else "None"
    make = cg.constant(cg.tracer.config.records.plain_function)
    plain = cg.constant(_plain_copy(cg, code))
    function = f"{make}({plain}, {cg.constant(globals)}(), {closure})"
    arguments = cg.arguments_again()
    if "*" in arguments or "=" in arguments:
        return f"{cg.constant(later)}({cg.constant(functools.partial)}({function}, {arguments}))"
    return f"{cg.constant(later)}({function}, {arguments})"


def _plain_copy(cg: Codegen, code: types.CodeType) -> Any:
    """The original's code, by a copy that is never captured, or what gives it."""
    making = made_later(cg.tracer.config, code)
    return code.replace(co_consts=(*code.co_consts, "dyncomp: plain copy")) if making is None else making


def _signature(cg: Codegen, code: types.CodeType) -> str:
    names = list(cg.parameters)
    parts = names[: code.co_argcount]
    if code.co_posonlyargcount:
        parts.insert(code.co_posonlyargcount, "/")
    rest = names[code.co_argcount + code.co_kwonlyargcount :]
    keyword_only = names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    if code.co_flags & CO_VARARGS:
        parts.append(f"*{rest.pop(0)}")
    elif keyword_only:
        parts.append("*")
    parts += keyword_only
    if code.co_flags & CO_VARKEYWORDS:
        parts.append(f"**{rest.pop(0)}")
    return ", ".join(parts)


def _compile(cg: Codegen, lines: list[Line], code: types.CodeType) -> types.CodeType:
    if code.co_freevars:
        top = transfers.line_loc(1)
        head = [("def __outer():", top), (f"{_INDENT}{' = '.join(code.co_freevars)} = None", top)]
        lines = head + [(_INDENT + text, place) for text, place in lines]
    module = compile("\n".join(text for text, _ in lines), code.co_filename, "exec", dont_inherit=True)
    inner = _find_code(module, _name(code))
    made = _place(decode(inner), cg, [place for _, place in lines])
    return encode(_fit(release_dead(made, cg.held), code))


def _place(made: CanonicalCode, cg: Codegen, places: list[Loc]) -> CanonicalCode:
    """Constants for their names, and the places in the user's program that the instructions stand for."""
    constants, originals = cg.constants, cg.originals
    instructions = []
    for op, arg, loc, index in made.instructions:
        if op == "LOAD_GLOBAL" and arg in constants:
            op, arg = "LOAD_CONST", constants[arg]
        elif op == "LOAD_CONST" and originals:  # a literal stands for the program's own object
            arg = originals.get((type(arg), repr(arg)), arg)
        place = loc if loc.line is None else places[loc.line - 1]
        instructions.append(make_instr((op, arg, place, index)))
    return dataclasses.replace(made, instructions=tuple(instructions))


def _find_code(module: types.CodeType, name: str) -> types.CodeType:
    for const in module.co_consts:
        if isinstance(const, types.CodeType):
            return const if const.co_name == name else _find_code(const, name)
    raise AssertionError(f"no function {name} in generated source")


def _fit(made: CanonicalCode, code: types.CodeType) -> CanonicalCode:
    """The original's argument names, free variables and identity."""
    renamed = {old: new for old, new in zip(made.arg_names, code.co_varnames) if old != new}
    instructions = made.instructions
    if renamed:
        instructions = tuple(
            i._replace(arg=renamed[i.arg]) if i.op in _ON_LOCALS and i.arg in renamed else i
            for i in instructions
        )
    return dataclasses.replace(
        made,
        instructions=instructions,
        varnames=tuple(renamed.get(name, name) for name in made.varnames),
        freevars=code.co_freevars,
        name=code.co_name,
        qualname=code.co_qualname,
        filename=code.co_filename,
        firstlineno=code.co_firstlineno,
    )

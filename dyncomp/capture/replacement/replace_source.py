"""From the lines of a :class:`~.codegen.Codegen` to a code object that can stand in for the original."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from typing import Any

from ...frontends.base import ArrayOwner
from ...graph.ir import COPY, GraphOutput
from ...graph.passes.dce import may_raise
from ...hook._hook import later
from ...python_code.continuation import made_later
from ...python_code.instr import CO_VARARGS, CO_VARKEYWORDS
from ...python_code.transfers import line_loc
from ...python_code.versions import encode
from ..breaks import Skip
from ..policy.fallback import Fallback
from ..random.states import put_back
from ..values.drawn import DrawnArrayValue
from ..values.number import NumberValue
from .assembly import assemble_function
from .codegen import Codegen, is_of_numpy
from .reads import read_at_once
from .release import release_dead

_INDENT = "    "
PLAIN_COPY = "dyncomp: plain copy"
_OWN_BACKENDS = ("inductor", "eager")


def build_function(
    cg: Codegen, compiled: Any, code: types.CodeType, fallback: Fallback
) -> tuple[types.CodeType, str]:
    """The replacement of ``code``, with the compiled graph if there is one, and its source text. ``fallback``
    makes the original where the graph raises."""
    graph_call = compiled.call if compiled is not None else None
    if not all(name.isidentifier() for name in code.co_freevars):
        raise Skip("a free variable that source cannot name")
    call = [_graph_line(cg, graph_call), *_output_lines(cg, compiled)] if graph_call is not None else []
    conditions = _conditions(cg)
    cg.make_all_draws()
    puts_back = bool(cg.kept) and (bool(conditions) or _may_fail_after_draw(cg, compiled))
    if puts_back:
        cg.keep_states()
    read_at_once(cg, (*conditions, *call, *(text for text, _ in cg.body)))
    # rendering the graph's arguments and the conditions may have added loads: they come first
    guarded = [*cg.prelude, *conditions, *call]
    if cg.kept and not puts_back:
        rest, guarded = guarded[cg.first_draw + 1 :], guarded[: cg.first_draw + 1]
        cg.body[:0] = [(text, line_loc(code.co_firstlineno)) for text in rest]
    original = [f"return {_original_call(cg, code, fallback)}"] if guarded else []
    if puts_back:
        guarded.insert(0, f"{cg.kept} = []")
        original.insert(0, f"{cg.constant(put_back)}({cg.kept})")
    text = "\n".join(_source(cg, guarded, original, code))
    made = assemble_function(cg, guarded, original, code)
    return encode(release_dead(made, cg.held)), text


def _may_fail_after_draw(cg: Codegen, compiled: Any) -> bool:
    """Whether anything but a lack of memory may keep code behind the first draw from being completed: what is
    drawn is then put back for the original. Else it is not guarded at all."""
    tracer = cg.tracer
    if cg.may_fail_after_draw or tracer.may_raise or tracer.may_raise_before:
        return True
    if tracer.config.options.backend not in _OWN_BACKENDS:
        return True
    if any(isinstance(value, NumberValue) and type(value.hint) is int for value in tracer.inputs):
        return True  # it may be too large for the graph
    if compiled is not None and compiled.gradients is not None and compiled.gradients.written:
        return True  # autograd may not let anybody write there
    nodes = compiled.graph_after.nodes if compiled is not None else ()
    return any(may_raise(node, tracer.config.table) for node in nodes if node.op != COPY)


def _source(cg: Codegen, guarded: list[str], original: list[str], code: types.CodeType) -> Iterator[str]:
    """The lines of the replacement, to be read by people."""
    yield f"def {_name(code)}({_signature(cg, code)}):"
    indent = _INDENT
    if guarded:
        yield f"{_INDENT}try:"
        yield from [_INDENT * 2 + text for text in guarded]
        yield f"{_INDENT}except Exception: pass"
        yield f"{_INDENT}else:"
        indent = _INDENT * 2
    yield from [indent + text for text, _ in cg.body]
    yield from [_INDENT + text for text in original]


def _output_lines(cg: Codegen, compiled: Any) -> list[str]:
    """What NumPy hands out read-only, and what torch detaches from an argument."""
    refs = [value.ref for value in cg.outputs]
    readonly = [i for i, ref in enumerate(refs) if ref.readonly and not ref.writeable_outside]
    lines = [f"__g{i}.flags.writeable = False" for i in readonly if refs[i].kind == "array"]
    if compiled.gradients is None:
        visible = [out for out in compiled.graph_after.outputs if not out.hidden]
        lines += [f"__g{i} = __g{i}.detach()" for i, out in enumerate(visible) if _is_detached(out)]
    return lines


def _is_detached(out: GraphOutput) -> bool:
    view = out.view
    return view is not None and view.stopped and view.kind == "input" and not out.spent


def _name(code: types.CodeType) -> str:
    return code.co_name if code.co_name.isidentifier() else "compiled"


def _graph_line(cg: Codegen, graph_call: object) -> str:
    owner = cg.owner()
    args = [_input_text(cg, value, owner) for value in cg.tracer.inputs]
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


def same_constant(found: object, expected: object) -> bool:
    return type(found) is type(expected) and bool(found == expected)


class Stale(Exception):
    """An assumption about an integer that compiled code computed does not hold: the original runs."""


def _input_text(cg: Codegen, value: Any, owner: ArrayOwner | None) -> str:
    if isinstance(value, DrawnArrayValue):
        return cg.drawn(value.draw)
    if owner is not None and is_of_numpy(value):
        return f"{cg.constant(owner.from_numpy)}({cg.load(value.source)})"
    return cg.load(value.source) if value.source is not None else cg.number(value)


def _graph_constant(cg: Codegen, graph_call: object) -> str:
    name = "__graph"
    cg.constants[name] = graph_call
    return name


def _original_call(cg: Codegen, code: types.CodeType, fallback: Fallback) -> str:
    """Run the original from the start, as plain Python."""
    cells = ", ".join(f"(lambda: {name}).__closure__[0]" for name in code.co_freevars)
    closure = f"({cells},)" if cells else "None"
    make = cg.constant(fallback)
    plain = cg.constant(_plain_copy(cg, code))
    function = f"{make}({plain}, {cg.constant(globals)}(), {closure})"
    arguments = cg.arguments_again()
    if "*" in arguments or "=" in arguments:
        return f"{cg.constant(later)}({cg.constant(functools.partial)}({function}, {arguments}))"
    return f"{cg.constant(later)}({function}, {arguments})"


def _plain_copy(cg: Codegen, code: types.CodeType) -> Any:
    """The original's code, by a copy that is never captured, or what gives it."""
    making = made_later(cg.tracer.config, code)
    return plain_copy(code) if making is None else making


def plain_copy(code: types.CodeType) -> types.CodeType:
    """A copy that the hook never looks at; it is told by its last constant."""
    return code.replace(co_consts=(*code.co_consts, PLAIN_COPY))


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

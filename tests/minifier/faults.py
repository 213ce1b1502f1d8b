"""Faults to plant in dyncomp, and programs of 300 operations that show them.

``python -m tests.minifier.faults NAME FOLDER [OPERATIONS]`` plants one and minifies the program, and prints
what was found as JSON; ``python -m tests.minifier.faults NAME --run SCRIPT`` runs a script with the fault
planted.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import runpy
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

OPERATIONS = int(sys.argv[3]) if sys.argv[3:] and sys.argv[3].isdigit() else 300
MIDDLE = OPERATIONS // 2


def _replace(obj: Any, **changes: Any) -> None:
    """Change a frozen row in place."""
    for name, value in changes.items():
        object.__setattr__(obj, name, value)


def _scalar(name: str) -> Any:
    from dyncomp.prims.scalar import SCALARS

    return SCALARS[name]


def _spelled(name: str, text: str) -> None:
    row = _scalar(name)
    _replace(row, cpp=dict.fromkeys(row.cpp, text), vector=None)


def wrong_spelling() -> None:
    _spelled("arctan", "({0} * {0})")


def crash() -> None:
    _spelled("arctan", "(__builtin_trap(), {0})")


def rejected() -> None:
    _spelled("arctan", "no_such_function({0})")


def hang() -> None:
    _spelled("arctan", "([](auto x) {{ for (volatile int go = 1; go;) ; return x; }}({0}))")


def wrong_rewrite() -> None:
    rules = importlib.import_module("dyncomp.graph.passes.rewrite_rules")
    right = rules._is
    rules._is = lambda value, number: right(value, number) or (number == 1 and value == 1.25)


def wrong_cse() -> None:
    cse = importlib.import_module("dyncomp.graph.passes.cse")
    cse.frozen_key = lambda params: ()


def lost_write() -> None:
    from dyncomp.pipeline import PASSES

    step = next(step for step in PASSES if step.name == "functionalize")
    right = step.run

    def run(graph: Any, table: Any) -> Any:
        made = right(graph, table)
        return dataclasses.replace(made, mutations=made.mutations[:-1])

    _replace(step, run=run)


def wrong_memory() -> None:
    memory = importlib.import_module("dyncomp.inductor.memory")
    right = memory.lifetimes

    def lifetimes(touched: Any) -> Any:
        return [dataclasses.replace(life, last=life.first) for life in right(touched)]

    memory.lifetimes = lifetimes


def wrong_fusion() -> None:
    """Readers join the kernels of what they read wherever they read it."""
    fuse = importlib.import_module("dyncomp.inductor.fusion.fuse")
    fuse._reads_match = lambda inside, mapping: True
    fuse.Fuser._order_allows = lambda self, cluster, root, mapping: True
    fuse.Fuser._earliest = lambda self, root: 0


def wrong_index() -> None:
    """``(i * n + j) % m`` is ``j``, whatever ``m``."""
    index = importlib.import_module("dyncomp.inductor.loops.index")
    right = index._fits
    index._fits = lambda rest, divisor: right(rest, divisor) or (isinstance(divisor, int) and divisor == 6)


def wrong_reduction() -> None:
    from dyncomp.prims.scalar import REDUCERS

    _replace(REDUCERS["max"], identity=lambda dtype: 0)


def wrong_rule() -> None:
    """Capture takes ``np.maximum`` for ``np.minimum``."""
    emit = importlib.import_module("dyncomp.frontends.numpy.ufunc_emit")
    emit._SPECIAL["maximum"] = emit._SPECIAL["minimum"]


def missing_guard() -> None:
    from dyncomp.capture.guards.guard import Kind
    from dyncomp.capture.tracer import Tracer

    right = Tracer.guard

    def guard(self: Any, source: Any, kind: Any, expected: Any = None, why: str = "") -> None:
        if kind not in (Kind.EQUALS, Kind.BOOL):
            right(self, source, kind, expected, why)

    Tracer.guard = guard  # type: ignore[method-assign]


def misordered_effects() -> None:
    """Stores into lists happen in the opposite order."""
    codegen = importlib.import_module("dyncomp.capture.replacement.replace_source")
    right = codegen.assemble_function

    def assemble(cg: Any, guarded: Any, original: Any, code: Any) -> Any:
        stores = [k for k, (text, _) in enumerate(cg.body) if ".append(" in text or "[:] =" in text]
        if len(stores) > 1:
            first, last = stores[0], stores[-1]
            cg.body[first], cg.body[last] = cg.body[last], cg.body[first]
        return right(cg, guarded, original, code)

    codegen.assemble_function = assemble


def wrong_vjp() -> None:
    from dyncomp.prims.table import TABLE

    row = TABLE["tanh"]
    right = row.vjp

    def vjp(ops: Any, *args: Any, **kwargs: Any) -> Any:
        made = right(ops, *args, **kwargs)
        return tuple(None if g is None else ops.negative(g) for g in made)

    _replace(row, vjp=vjp)


# -- programs -----------------------------------------------------------------------------------
def chain(*lines: str) -> Callable[..., Any]:
    """A function of ``x`` and ``y``, arrays of shape (6, 8); ``lines`` are the operations in its middle, of
    the value ``v`` before."""
    usual = ["{v} * 0.75 + y", "np.sin({v})", "{v} - x * 0.5", "np.abs({v}) + 0.25", "{v}[::-1] * 0.9",
             "np.where({v} > 0.5, {v}, y)", "{v} + {v}.mean(axis=0)", "np.sqrt({v} * {v} + 1.0)"]  # fmt: skip
    body = ["def program(x, y):", "    v0 = x + y"]
    special = dict(enumerate(lines, MIDDLE))
    for k in range(1, OPERATIONS):
        text = special.get(k, usual[k % len(usual)])
        body.append(f"    v{k} = " + text.format(v=f"v{k - 1}"))
    body.append(f"    return v{OPERATIONS - 1}")
    return _defined("\n".join(body))


def _defined(text: str, name: str = "program") -> Callable[..., Any]:
    import linecache

    file = "<planted>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"np": np, "__name__": "planted"}
    exec(compile(text, file, "exec"), namespace)
    made: Callable[..., Any] = namespace[name]
    return made


def arrays() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(6, 8)), rng.normal(size=(6, 8))


def writing_program() -> Callable[..., Any]:
    body = ["def program(x, y):", "    v0 = x + y"]
    for k in range(1, OPERATIONS):
        body.append(f"    v{k} = np.sin(v{k - 1}) + y * {k % 5}")
        if k == MIDDLE:
            body.append(f"    y[1:3] += v{k}[1:3]")
    body.append(f"    return v{OPERATIONS - 1}")
    return _defined("\n".join(body))


def listing_program() -> Callable[..., Any]:
    body = ["def program(x, y, log):", "    v0 = x + y"]
    for k in range(1, OPERATIONS):
        body.append(f"    v{k} = np.cos(v{k - 1}) + y * {k % 5}")
        if k in (MIDDLE // 2, MIDDLE + 10):
            body.append(f"    log.append(v{k}.sum())")
    body.append(f"    return v{OPERATIONS - 1}")
    return _defined("\n".join(body))


def numbered_program() -> Callable[..., Any]:
    body = ["def program(x, y, k, flag):", "    v0 = x + y"]
    for k in range(1, OPERATIONS):
        body.append(f"    v{k} = np.sin(v{k - 1}) + y * {k % 5}")
        if k == MIDDLE:
            body.append(f"    v{k} = v{k} * 2.0 if flag else v{k} - 1.0")
    body.append(f"    return v{OPERATIONS - 1}")
    return _defined("\n".join(body))


ARCTAN = "np.arctan({v})"
PRODUCTS = ("({v} @ {v}.T) @ ({v} + 1.0)", "({v} @ y.T) @ {v} * 0.1")
RESHAPED = ("np.abs({v}).T.reshape(6, 8)", "{v} + {v}.T.reshape(6, 8)[::-1]")
MAXIMUM = "{v} + (-np.abs({v}) - 1.0).max(axis=1, keepdims=True)"
BOTH_WAYS = [((*arrays(), 3, True), {}), ((*arrays(), 3, False), {})]
Case = tuple[Callable[[], None], Callable[[], Callable[..., Any]], dict[str, Any]]

# The fault, a program that shows it, and how it is minified.
FAULTS: dict[str, Case] = {
    "wrong spelling": (wrong_spelling, lambda: chain(ARCTAN), {}),
    "crash": (crash, lambda: chain(ARCTAN), {}),
    "rejected": (rejected, lambda: chain(ARCTAN), {}),
    "hang": (hang, lambda: chain(ARCTAN), {}),
    "wrong rewrite": (wrong_rewrite, lambda: chain("{v} * 1.25"), {}),
    "wrong cse": (wrong_cse, lambda: chain("{v}.sum(axis=0) + {v}.sum(axis=1)[:1]"), {}),
    "lost write": (lost_write, writing_program, {}),
    "wrong memory": (wrong_memory, lambda: chain(*PRODUCTS), {}),
    "wrong fusion": (wrong_fusion, lambda: chain("{v} + {v}[::-1] * {v}[:, ::-1]"), {}),
    "wrong index": (wrong_index, lambda: chain(*RESHAPED), {}),
    "wrong reduction": (wrong_reduction, lambda: chain(MAXIMUM), {}),
    "wrong rule": (wrong_rule, lambda: chain("np.maximum({v}, y)"), {}),
    "missing guard": (missing_guard, numbered_program, {"calls": BOTH_WAYS}),
    "misordered effects": (misordered_effects, listing_program, {"args": (*arrays(), [])}),
    "wrong vjp": (wrong_vjp, lambda: chain("np.tanh({v})"), {"check": "gradient"}),
}  # fmt: skip


def main(arguments: list[str]) -> int:
    plant, program, how = FAULTS[arguments[0]]
    plant()
    if arguments[1] == "--run":
        try:
            runpy.run_path(arguments[2], run_name="__main__")
        except SystemExit as ended:
            return int(ended.code or 0)
        return 0
    import dyncomp

    given = {"args": arrays(), **how} if "calls" not in how else how
    found = dyncomp.minify(program(), folder=arguments[1], progress="off", **given)
    if found is None:
        print(json.dumps(None))
        return 0
    print(json.dumps(found.facts()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

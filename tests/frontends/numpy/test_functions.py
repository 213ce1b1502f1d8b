"""Every rule against NumPy: values, dtypes, shapes, memory order, kinds, mutation, aliasing."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest

from .harness import FRONTEND, check
from .programs import LOOSE, MUTATIONS, PROGRAMS, arguments, lines


def _names(code: str) -> list[str]:
    used = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    return [name for name in arguments() if name in used]


def _cases(text: str) -> list[str]:
    """The elements of every line's tuple, one case each."""
    cases = []
    for line in lines(text):
        tree = ast.parse(line, mode="eval").body
        parts = tree.elts if isinstance(tree, ast.Tuple) else [tree]
        cases += [ast.unparse(part) for part in parts]
    return list(dict.fromkeys(cases))


def _program(body: str, names: list[str]) -> Any:
    scope: dict[str, Any] = {}
    exec(f"def program(np, {', '.join(names)}):\n" + body, scope)
    return scope["program"]


@pytest.mark.parametrize("code", _cases(PROGRAMS))
def test_value(code: str) -> None:
    names = _names(code)
    values = arguments()
    check(_program(f"    return {code}", names), *(values[n] for n in names))


@pytest.mark.parametrize("code", _cases(LOOSE))
def test_value_in_other_memory_order(code: str) -> None:
    names = _names(code)
    values = arguments()
    check(_program(f"    return {code}", names), *(values[n] for n in names), strides=False, alias=False)


@pytest.mark.parametrize("code", lines(MUTATIONS))
def test_mutation(code: str) -> None:
    names = _names(code)
    values = arguments()
    body = "".join(f"    {statement.strip()}\n" for statement in code.split(";"))
    returned = [n for n in names if n not in ("s", "k")]
    check(_program(f"{body}    return ({', '.join(returned)},)", names), *(values[n] for n in names))


def test_enough_rules() -> None:
    """The issue asks for at least 150 callables and methods; operators and stubs not counted."""
    rules = FRONTEND.rules
    assert len(rules.functions) + len(rules.methods) + len(rules.attributes) >= 350


def test_harness_notices() -> None:
    """The comparison fails for another value, dtype, kind, layout, aliasing or mutation."""
    x = np.arange(6.0).reshape(2, 3)
    tracing = lambda np: not hasattr(np, "__version__") or np.__class__.__name__ == "Module"  # noqa: E731
    wrong = (
        lambda np, x: x + (1 if tracing(np) else 2),
        lambda np, x: x.astype("f4" if tracing(np) else "f8"),
        lambda np, x: x.sum(keepdims=tracing(np)),
        lambda np, x: np.array(x.sum()) if tracing(np) else x.sum(),
        lambda np, x: np.copy(x.T, order="C" if tracing(np) else "F"),
        lambda np, x: x[1:].copy() if tracing(np) else x[1:],
        lambda np, x: x.__setitem__(0, 1 if tracing(np) else 2),
    )
    for program in wrong:
        with pytest.raises(AssertionError):
            check(program, x)

"""Calls of Python functions with arguments that do not fit: the ``TypeError`` of CPython for them."""

from __future__ import annotations

import inspect
import types
from typing import Any

from ..breaks import Break
from ..values.base import Tracer, Value


def raise_type_error(
    tracer: Tracer,
    code: types.CodeType,
    qualname: str,
    defaults: tuple[int, frozenset[str]],
    args: list[Value],
    kwargs: dict[str, Value],
    problem: Break,
) -> None:
    """Raise what the call raises, by calling a function of the same signature that does nothing.
    ``defaults``: how many arguments have one, and which keyword-only arguments."""
    stand_in = _stand_in(code, qualname, *defaults)
    try:
        stand_in(*[None] * len(args), **dict.fromkeys(kwargs))
    except TypeError as error:
        tracer.raise_exception(TypeError, *error.args)
    raise problem


def _stand_in(code: types.CodeType, qualname: str, defaults: int, keyword_defaults: frozenset[str]) -> Any:
    names = list(code.co_varnames[: code.co_argcount])
    if not all(name.isidentifier() for name in names):
        return lambda *args, **kwargs: None
    if code.co_posonlyargcount:
        names.insert(code.co_posonlyargcount, "/")
    rest = code.co_argcount + code.co_kwonlyargcount
    has_star = bool(code.co_flags & inspect.CO_VARARGS)
    if has_star:
        names.append(f"*{code.co_varnames[rest]}")
    elif code.co_kwonlyargcount:
        names.append("*")
    names += code.co_varnames[code.co_argcount : rest]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        names.append(f"**{code.co_varnames[rest + has_star]}")
    module = compile(f"def f({', '.join(names)}): pass", "<signature>", "exec", dont_inherit=True)
    made = next(c for c in module.co_consts if isinstance(c, types.CodeType))
    function = types.FunctionType(made.replace(co_name=code.co_name), {})
    function.__qualname__ = qualname
    function.__defaults__ = (None,) * defaults
    function.__kwdefaults__ = dict.fromkeys(keyword_defaults)
    return function

"""Functions of the standard library that depend on their arguments only: computed at capture."""

from __future__ import annotations

import inspect
import json
import os
import posixpath
import re
import textwrap
import types
from collections.abc import Callable
from typing import Any

from ..breaks import Break
from ..calls.folding import literal
from ..immutable.values import FrozenValue, from_plain
from ..objects import instance_checks
from ..values.base import Codegen, Tracer, Value
from ..values.number import ConstValue
from .registry import builtin

_PURE: tuple[Any, ...] = (
    *(re.match, re.search, re.fullmatch, re.findall, re.split, re.sub, re.subn, re.escape, re.compile),
    *(posixpath.join, posixpath.split, posixpath.splitext, posixpath.basename, posixpath.dirname),
    *(posixpath.normpath, posixpath.isabs, textwrap.dedent, textwrap.indent, json.loads, json.dumps),
)
_PLAIN = (int, float, bool, str, bytes, type(None), list, tuple, dict)


def _pure(function: Callable[..., Any]) -> Any:
    def handler(tracer: Tracer, *args: Value, **kwargs: Value) -> Value:
        name = f"{function.__module__}.{function.__name__}"
        given = [_constant(tracer, arg, name) for arg in args]
        keywords = {key: _constant(tracer, value, name) for key, value in kwargs.items()}
        if function.__module__ == "re" and _prints([*given, *keywords.values()]):
            raise Break("unsupported-call", f"call of {name}, which prints the pattern")
        result = tracer.fold(lambda: function(*given, **keywords))

        def make(cg: Codegen) -> str:
            parts = [*map(cg.constant, given), *(f"{k}={cg.constant(v)}" for k, v in keywords.items())]
            return f"{cg.constant(function)}({', '.join(parts)})"

        return from_plain(tracer, result, make)

    return handler


def _prints(values: list[Any]) -> bool:
    """Whether a function of ``re`` that is given these prints the pattern."""
    return any(isinstance(value, int) and value & re.DEBUG for value in values)


def _constant(tracer: Tracer, value: Value, name: str) -> Any:
    if isinstance(value, FrozenValue) and type(value.obj) is re.Pattern:
        return value.obj
    try:
        found = literal(tracer, value, f"an argument of {name}")
    except Break as problem:
        raise Break("unsupported-call", f"call of {name}: {problem.reason}") from None
    if type(found) not in _PLAIN and not isinstance(found, re.RegexFlag):
        raise Break("unsupported-call", f"call of {name} with {value.describe()}")
    return found


for _function in _PURE:
    if _function.__module__ != "posixpath" or os.path is posixpath:
        builtin(_function)(_pure(_function))


# -- inspect ----------------------------------------------------------------------------------------------
def _kind_check(cls: type) -> Any:
    def handler(tracer: Tracer, object: Value) -> Value:
        return ConstValue(instance_checks.is_instance(tracer, object, cls))

    return handler


_KINDS: dict[Any, Any] = {
    inspect.isfunction: types.FunctionType,
    inspect.isclass: type,
    inspect.ismethod: types.MethodType,
    inspect.isbuiltin: types.BuiltinFunctionType,
    inspect.isgenerator: types.GeneratorType,
    inspect.ismodule: types.ModuleType,
}
for _function, _cls in _KINDS.items():
    builtin(_function)(_kind_check(_cls))

"""A whole function, captured once as one graph: what an archive, or a graph for the user, is made of."""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..api import SESSION, compile_with
from ..capture.entries.config import CaptureConfig
from ..capture.entries.records import EntryRecord
from ..capture.entries.stored import Captured
from ..capture.guards.guard import Guard, Kind
from ..capture.guards.source import LocalSource, Source
from ..capture.policy.recompilation import builtins_of
from ..capture.replacement.signature import Environment, Signature
from ..dataclass import dataclass, field
from ..errors import ExportError
from ..hook import _hook
from ..options import make_options

_SOURCES_CHECKED = (Kind.SYM, Kind.NO_OVERLAP, Kind.OVERLAP, Kind.DISTINCT)


@dataclass(frozen=True, eq=False)
class WholeFunction:
    """A captured function. ``signature``: where the graph's inputs are found, and what is made of its
    results; ``env``: what they are read from; ``first``: the number of the first argument that callers give;
    ``size_names``: the names that ``dynamic`` gives to sizes, by argument and axis.
    """

    name: str
    captured: Captured
    signature: Signature
    env: Environment
    first: int
    size_names: Mapping[tuple[str, int], str] = field(default_factory=dict)

    @property
    def record(self) -> EntryRecord:
        return self.captured.record

    def is_given(self, source: Source) -> bool:
        """Whether ``source`` is (a part of) an argument."""
        root = source.root()
        return isinstance(root, LocalSource) and root.index >= self.first

    def read(self, source: Source) -> Any:
        """The object that is found at ``source`` now."""
        return self.signature.read(source, self.env)

    def guards_of_arguments(self) -> list[Guard]:
        """The guards about what callers give, and about nothing else."""
        return [guard for guard in self.record.guards if self._speaks_of_given(guard)]

    def parameters(self) -> list[inspect.Parameter]:
        """Those that callers give arguments for."""
        signature = inspect.signature(self.captured.function, follow_wrapped=False)
        return [*signature.parameters.values()][self.first :]

    def _speaks_of_given(self, guard: Guard) -> bool:
        if guard.source is not None:
            other = guard.expected if isinstance(guard.expected, Source) else guard.source
            return self.is_given(guard.source) and self.is_given(other)
        if guard.kind not in _SOURCES_CHECKED:
            return False
        facts = guard.expected
        if guard.kind is Kind.SYM:
            return all(self.is_given(binding.source) for binding in facts.bindings)
        return all(map(self.is_given, facts.objects if guard.kind is Kind.DISTINCT else facts.arrays))


def in_code_order(signature: inspect.Signature, arguments: Mapping[str, Any]) -> list[Any]:
    """Bound arguments in the order in which code objects have them: ``*args`` behind keyword-only ones."""
    last = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    several = [name for name, parameter in signature.parameters.items() if parameter.kind in last]
    single = [name for name in signature.parameters if name not in several]
    return [arguments[name] for name in (*single, *several)]


class _Recorder:
    """Takes what capture would store."""

    found: list[tuple[Captured, Signature, Environment]]

    def __init__(self) -> None:
        self.found = []

    def find(self, function: types.FunctionType, args: tuple[Any, ...], config: CaptureConfig) -> None:
        return None

    def keep(self, captured: Captured, config: CaptureConfig) -> None:
        function = captured.function
        env = (captured.args, function.__globals__, builtins_of(function), function.__closure__)
        if captured.signature is None:
            raise ExportError(f"{function.__qualname__} works on no array")
        self.found.append((captured, captured.signature(), env))


def capture_whole(
    f: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    dynamic: Any,
    backend: str | Callable[..., Any] = "inductor",
) -> WholeFunction:
    """Call ``f(*args, **kwargs)`` once, without gradients, and capture it.

    Raises :class:`ExportError` for functions that one graph alone cannot replace, with the reason, and
    :class:`~dyncomp.errors.GraphBreakError` where the graph would break.
    """
    name, f = name_of(f), _without_module(f)
    options = {"measure": False, "patience_us": 0, "warm_start": False, "tier": "best"}
    # a function may be captured for as many kinds of arguments as there are
    options |= {"accumulated_recompile_limit": 1 << 30}
    made = make_options(fullgraph=True, dynamic=dynamic, backend=backend, options=options)
    config = SESSION.new_config(made)
    recorder = _Recorder()
    config.stored = recorder
    compiled = compile_with(f, config)

    def call() -> None:
        with _without_gradients():
            compiled(*args, **kwargs)

    call()
    if not recorder.found and not config.records.skipped:
        # this thread is inside of another capture (a backend traces something), where nothing is captured
        with ThreadPoolExecutor(1) as pool:
            pool.submit(contextvars.copy_context().run, call).result()
    if len(recorder.found) != 1:
        skipped = [reason for _, _, reason in config.records.skipped]
        raise ExportError(f"{name_of(f)} is no single graph: {'; '.join(skipped) or 'nothing was captured'}")
    names = _size_names(dynamic)
    return WholeFunction(name, *recorder.found[0], 1 if _has_owner(f) else 0, names)


def _size_names(dynamic: Any) -> dict[tuple[str, int], str]:
    """``{"x": {0: "n", 1: ("m", 2, 64)}}``: the names, where axes count from the front."""
    found: dict[tuple[str, int], str] = {}
    for argument, axes in dynamic.items() if isinstance(dynamic, Mapping) else ():
        for axis, said in axes.items() if isinstance(axes, Mapping) else ():
            name = said[0] if isinstance(said, tuple) and said else said
            if isinstance(name, str):
                found[argument, axis] = name
    return found


def name_of(f: object) -> str:
    return str(getattr(f, "__qualname__", type(f).__qualname__))


def _without_module(f: Callable[..., Any]) -> Callable[..., Any]:
    """``forward`` of a module that nothing hooks: its arguments have the names that the program gives."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(f, torch.nn.Module) or f._forward_hooks or f._forward_pre_hooks:
        return f
    forward: Callable[..., Any] = f.forward
    return forward


def _has_owner(f: Callable[..., Any]) -> bool:
    """Whether the function's first argument is the object that it belongs to."""
    return not isinstance(f, (types.FunctionType, _hook.Dispatcher))


def _without_gradients() -> Any:
    torch = sys.modules.get("torch")
    return contextlib.nullcontext() if torch is None else torch.no_grad()

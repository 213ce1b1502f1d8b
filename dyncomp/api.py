"""What users call: ``compile``, ``reset``, ``stats``."""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from . import faults, notices, pipeline
from .build.library import unload_unused
from .capture.calls.substitutes import Substitutes, check_target
from .capture.convert import on_miss
from .capture.entries.config import CaptureConfig, hook_should_capture
from .capture.entries.records import Records
from .capture.environment.regions import calling
from .capture.policy.fallback import resting
from .capture.policy.memory_budget import held
from .capture.policy.patience import forget as forget_captures
from .capture.policy.stance import current_stance
from .frontends.base import Frontend
from .hook import _hook
from .options import Options, make_options
from .pickling import reduce_function
from .scalar_loops.maker import native_maker
from .warm_start.store import EntryStore, may_store

if TYPE_CHECKING:
    from .frontends.torch.modules import ModuleClasses
    from .verification.entries import Reproduce

F = TypeVar("F")
M = TypeVar("M")


class _Session:
    """What all ``compile`` calls of the process share: counters, frontends, live configurations."""

    def __init__(self) -> None:
        self.counters = faults.counters
        self.configs: weakref.WeakSet[CaptureConfig] = weakref.WeakSet()
        self.substitutes = Substitutes()
        # what DYNCOMP_REPRO changes (minifier/automatic.py)
        self.compile_graph: Callable[..., Any] = pipeline.run_pipeline
        self.verify = 0
        self.reproduce: Reproduce | None = None
        # where somebody wants to report on all of them: those that would be gone by then, too
        self.kept: list[CaptureConfig] | None = None
        self._frontends: dict[str, Frontend] = {}
        self._listed: tuple[Frontend, ...] = ()

    def frontends(self) -> Sequence[Frontend]:
        """NumPy's frontend, and those of the other array libraries that the program has imported."""
        wanted = 1 + ("torch" in sys.modules) + ("cupy" in sys.modules)
        if len(self._listed) != wanted:
            others = [name for name in ("torch", "cupy") if name in sys.modules]
            self._listed = tuple(self._load(name) for name in ("numpy", *others))
        return self._listed

    def _load(self, name: str) -> Frontend:
        if name not in self._frontends:
            if name == "numpy":
                from .frontends.numpy.frontend import NumpyFrontend

                self._frontends[name] = NumpyFrontend()
            elif name == "torch":
                from .frontends.torch.frontend import TorchFrontend

                self._frontends[name] = TorchFrontend()
            else:
                from .frontends.cupy import CupyFrontend

                self._frontends[name] = CupyFrontend()
        return self._frontends[name]

    def new_config(self, options: Options) -> CaptureConfig:
        pipeline.check_options(options)
        config = CaptureConfig(
            options,
            self.frontends,
            pipeline.op_table(),
            self.compile_graph,
            Records(self.counters),
            self.substitutes,
        )
        config.on_miss = on_miss
        if options.verify or self.verify:
            from .verification.entries import verifying

            config.on_miss = verifying(on_miss, options.verify or self.verify, self.reproduce)
        config.should_capture = hook_should_capture
        config.reduce = functools.partial(reduce_function, rebuild=recompiled, fill=complete)
        config.make_native = native_maker(options)
        config.stored = EntryStore(options) if may_store(options) else None
        self.configs.add(config)
        if self.kept is not None:
            self.kept.append(config)
        return config


SESSION = _Session()


@overload
def compile(
    f: F,
    *,
    mode: str = ...,
    fullgraph: bool = ...,
    dynamic: bool | Mapping[str, Any] | None = ...,
    backend: str | Callable[..., Any] = ...,
    verify: str | int = ...,
    options: Mapping[str, Any] | None = ...,
) -> F: ...
@overload
def compile(
    f: None = ...,
    *,
    mode: str = ...,
    fullgraph: bool = ...,
    dynamic: bool | Mapping[str, Any] | None = ...,
    backend: str | Callable[..., Any] = ...,
    verify: str | int = ...,
    options: Mapping[str, Any] | None = ...,
) -> Callable[[F], F]: ...
def compile(
    f: object = None,
    *,
    mode: str = "default",
    fullgraph: bool = False,
    dynamic: bool | Mapping[str, Any] | None = None,
    backend: str | Callable[..., Any] = "inductor",
    verify: str | int = 0,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """A compiled version of ``f`` that behaves exactly as ``f``: same results, exceptions and effects.

    ``f``: a function, a method, a callable object, or nothing (then this is a decorator with arguments).
    Compilation happens at the first call, and again when an assumption (a *guard*) fails.

    ``mode``: ``"default"``; ``"reduce-overhead"`` is the same on CPUs, where the whole graph always runs
    behind one C entry; ``"max-autotune"`` compiles each graph in several forms and keeps the fastest on the
    first call's inputs. ``fullgraph``: raise :class:`~dyncomp.errors.GraphBreakError`, naming
    the user's file and line, instead of breaking the graph. ``dynamic``: ``None`` makes a size symbolic
    when it is seen to change, ``True`` from the start, ``False`` never; a mapping says it for some arguments:
    ``{"x": 0, "y": {-1: "n"}, "z": {0: ("n", 2, 64), 1: (None, 100)}, "k": True}`` (see docs/using.md).
    ``backend``: ``"inductor"``
    (C++), ``"eager"`` (interprets the captured graphs), or a callable ``backend(graph, example_inputs)``
    that returns a callable. ``verify``: ``"first"``, ``"always"`` or a number: so many calls of each compiled
    form run in a copy of the process, beside the original, whose results are returned; where they differ the
    user is told, and the original runs from then on (see docs/using.md). ``options``: see
    :class:`~dyncomp.options.Options`.

    Raises ``ValueError`` for unknown modes, options and backends, ``TypeError`` where ``f`` is not callable.
    """
    made = make_options(
        mode=mode, backend=backend, fullgraph=fullgraph, dynamic=dynamic, verify=verify, options=options
    )
    config = SESSION.new_config(made)
    if f is None:
        return lambda function: compile_with(function, config)
    return compile_with(f, config)


def compile_with(f: object, config: CaptureConfig) -> Any:
    """Compile any callable under a configuration."""
    if isinstance(f, _hook.Dispatcher):
        function: Any = f._function
        made = _dispatcher(function, config)
        made.__dict__.update(f.__dict__)
        return made
    if isinstance(f, types.FunctionType):
        return _dispatcher(f, config)
    if isinstance(f, types.MethodType) and isinstance(f.__func__, (types.FunctionType, _hook.Dispatcher)):
        return types.MethodType(compile_with(f.__func__, config), f.__self__)
    if isinstance(f, type):
        raise TypeError(f"cannot compile the class {f.__qualname__}; compile a method or an instance")
    if isinstance(f, (staticmethod, classmethod)):
        return type(f)(compile_with(f.__func__, config))
    if isinstance(f, property):
        parts = [None if part is None else compile_with(part, config) for part in (f.fget, f.fset, f.fdel)]
        return property(parts[0], parts[1], parts[2], f.__doc__)
    if not callable(f):
        raise TypeError(f"cannot compile an object of type {type(f).__qualname__}: it is not callable")
    made = _compiled_module(f, config, in_place=False)
    if made is not None:
        return made
    call = inspect.getattr_static(type(f), "__call__", None)
    if isinstance(call, types.FunctionType):
        return CompiledObject(f, _dispatcher(call, config).__get__(f, type(f)), config)
    return CompiledObject(f, _hook.Dispatcher(calling(f), config), config)


def compile_(
    module: M,
    *,
    mode: str = "default",
    fullgraph: bool = False,
    dynamic: bool | Mapping[str, Any] | None = None,
    backend: str | Callable[..., Any] = "inductor",
    verify: str | int = 0,
    options: Mapping[str, Any] | None = None,
) -> M:
    """Compile an ``nn.Module`` in place: its calls are compiled from now on. Returns the module.

    The class of ``module`` becomes one derived from its own, of the same name. Arguments as of
    :func:`compile`; what was said before for this module no longer counts.

    Raises ``TypeError`` for what is no module, and for modules whose class cannot be derived from
    (:func:`compile` takes them).
    """
    made = make_options(
        mode=mode, backend=backend, fullgraph=fullgraph, dynamic=dynamic, verify=verify, options=options
    )
    if _compiled_module(module, SESSION.new_config(made), in_place=True) is None:
        raise TypeError(f"cannot compile an object of type {type(module).__qualname__} in place")
    return module


def _compiled_module(obj: object, config: CaptureConfig, in_place: bool) -> Any:
    """A compiled module, ``None`` where ``obj`` is no module of PyTorch that can be made one."""
    if "torch" not in sys.modules:
        return None
    from .frontends.torch.modules import compiled

    return compiled(obj, _module_classes(config), in_place)


def _module_classes(config: CaptureConfig) -> ModuleClasses:
    if config.module_classes is None:
        from .frontends.torch.modules import ModuleClasses

        compile_function = functools.partial(_dispatcher, config=config)
        rebuild = (module_shell, fill_shell, recompiled_in_place)
        config.module_classes = ModuleClasses(config.options, compile_function, *rebuild)
    return config.module_classes


def module_shell(cls: type, options: Options) -> Any:
    """A compiled module that was pickled, before the module that it shares everything with arrives."""
    return _module_classes(SESSION.new_config(options)).shell(cls)


def fill_shell(shell: Any, module: Any) -> None:
    """Complete what :func:`module_shell` made."""
    from .frontends.torch.modules import fill

    fill(shell, module)


def recompiled_in_place(make: Callable[..., Any], args: tuple[Any, ...], options: Options) -> Any:
    """A module that was compiled in place and pickled, before its state arrives."""
    module = make(*args)
    _compiled_module(module, SESSION.new_config(options), in_place=True)
    return module


def _dispatcher(function: types.FunctionType, config: CaptureConfig) -> _hook.Dispatcher:
    config.describe_arguments(function.__code__)
    return _hook.Dispatcher(function, config)


def recompiled(f: object, options: Options) -> Any:
    """A compiled function that was pickled, in another process."""
    return compile_with(f, SESSION.new_config(options))


def complete(compiled: _hook.Dispatcher, state: tuple[Any, Options, dict[str, Any]]) -> None:
    """Make a compiled function that was pickled by value of what arrived."""
    function, options, attributes = state
    config = SESSION.new_config(options)
    config.describe_arguments(function.__code__)
    compiled.__init__(function, config)  # type: ignore[misc]
    compiled.__dict__.update(attributes)


class CompiledObject:
    """A callable object whose calls are compiled; all attributes are the object's own."""

    def __init__(self, obj: object, call: Callable[..., Any], config: CaptureConfig) -> None:
        object.__setattr__(self, "__wrapped__", obj)
        object.__setattr__(self, "_call", call)
        object.__setattr__(self, "_config", config)
        object.__setattr__(self, "__doc__", obj.__doc__)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self._call(*args, **kwargs)

    def __get__(self, obj: object, owner: type | None = None) -> Any:
        """Bind as a method where the object itself does (``functools.lru_cache``)."""
        if obj is None or not hasattr(type(self.__wrapped__), "__get__"):
            return self
        return types.MethodType(self, obj)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "__wrapped__"), name)

    def __copy__(self) -> Any:
        return compile_with(copy.copy(self.__wrapped__), self._config)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return compile_with(copy.deepcopy(self.__wrapped__, memo), self._config)

    def __reduce__(self) -> Any:
        return recompiled, (self.__wrapped__, self._config.options)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.__wrapped__, name, value)

    def __repr__(self) -> str:
        return f"<compiled {self.__wrapped__!r}>"


def substitute(target: Callable[..., Any]) -> Callable[[Any], Any]:
    """Register a Python replacement of a C function or class, to be traced where captured code calls it.

        @dyncomp.substitute(fastlib.hypot)
        def hypot(a, b):
            return np.sqrt(a * a + b * b)

    The replacement must do what ``target`` does and take the same arguments. Plain Python goes on calling
    ``target``, and so does captured code where the replacement cannot be captured to its end. What was
    compiled before is dropped. :func:`reset` keeps substitutes.

    Raises ``TypeError`` where ``target`` is not callable or a Python function, and where the replacement is
    no Python function or does not take the same arguments.
    """
    check_target(target)

    def register(function: Any) -> Any:
        SESSION.substitutes.add(target, function)
        _hook.clear_all()
        return function

    return register


def reset() -> None:
    """Forget all compiled code in this process, unload it, and forget all counters (the on-disk kernel cache
    stays)."""
    _hook.clear_all()
    _hook.reset_stats()
    for config in list(SESSION.configs):
        config.forget()
    SESSION.counters.clear()
    forget_captures()
    notices.forget()
    unload_unused()


def stats() -> dict[str, Any]:
    """Counters since :func:`reset`.

    ``frames_captured``, ``frames_skipped`` (run as plain Python, see ``explain``), ``graphs``,
    ``breaks`` (a dict by break id), ``recompiles``, ``limited`` (functions whose recompilation limit was
    reached), ``evicted`` (entries dropped to keep within ``cache_bytes``), ``cache_hits``, ``cache_misses``,
    ``fallbacks`` (calls in which the original ran because the graph raised), ``floating_point_reruns``
    (because NumPy warns of what happened in it), ``internal_errors``, ``notices`` (how often each kind of
    thing happened that users are told of once: ``compiler``, ``cache``, ``variables``, ``fault``). Of now:
    ``verified``, ``mismatches`` and ``unverified`` (calls that were compared with the original under
    ``verify``, those found to differ, and those that could not be compared).
    ``entries`` and ``cache_bytes`` (an estimate) of what is compiled, ``resting`` (those in whose place the
    original runs since their graphs raised in several calls in a row), and ``stance``.
    """
    counters = SESSION.counters
    low = _hook.stats()
    breaks = {k.partition(":")[2]: n for k, n in counters.items() if k.startswith("break:")}
    configs = list(SESSION.configs)
    return {
        "frames_seen": low["frames_seen"] + counters["misses"],
        "frames_captured": counters["captured"],
        "frames_skipped": counters["skipped"],
        "graphs": counters["graphs"],
        "breaks": breaks,
        "recompiles": counters["recompiles"],
        "limited": counters["limited"],
        "evicted": counters["evicted"],
        "cache_hits": low["hits"],
        "cache_misses": low["misses"],
        "fallbacks": counters["fallbacks"],
        "floating_point_reruns": counters["floating_point_reruns"],
        "internal_errors": counters["internal_errors"],
        "notices": dict(notices.COUNTS),
        "entries": sum(len(entries) for c in configs for _, entries in _hook.all_entries(c)),
        "from_disk": counters["from_disk"],
        "not_stored": counters["not_stored"],
        "verified": counters["verified"],
        "mismatches": counters["mismatches"],
        "unverified": counters["unverified"],
        "resting": sum(len(resting(c)) for c in configs),
        "cache_bytes": sum(held(c) for c in configs),
        "stance": current_stance(),
    }

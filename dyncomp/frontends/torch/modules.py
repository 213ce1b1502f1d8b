"""Compiled modules: an ``nn.Module`` compiled is one, of a class derived from the module's own.

Compiling leaves the module as it is and makes a *shell*, another object with the very same ``__dict__``:
parameters, hooks and attributes are one and the same, whichever of the two is asked. Calls of the shell run
the compiled code with the module as ``self``, so that hooks and the module's own code see the module; other
methods have the shell as ``self``, so that ``generate`` and its like call compiled code. In place, the module
itself is given a derived class whose calls are compiled.
"""

from __future__ import annotations

import abc
import copy
import inspect
import types
from collections.abc import Callable
from functools import wraps
from typing import Any

from ...hook import _hook
from ...options import Options
from .library import torch

_METHODS = ("__call__", "forward")


class ModuleShell:
    """What shells have before the module's own class; it holds the module (``_dyncomp_module``)."""

    __slots__ = ("_dyncomp_module",)


class ModuleClasses:
    """The classes of the modules that one ``compile`` call made.

    ``dispatcher`` compiles a function. ``rebuild_shell(cls, options)``, ``fill_shell(shell, module)`` and
    ``rebuild_in_place(make, args, options)`` are pickled by name.
    """

    def __init__(
        self,
        options: Options,
        dispatcher: Callable[[types.FunctionType], _hook.Dispatcher],
        rebuild_shell: Callable[..., Any],
        fill_shell: Callable[..., Any],
        rebuild_in_place: Callable[..., Any],
    ) -> None:
        self.options = options
        self.dispatcher = dispatcher
        self.rebuild_shell = rebuild_shell
        self.fill_shell = fill_shell
        self.rebuild_in_place = rebuild_in_place
        self._made: dict[tuple[type, bool], type] = {}

    def shell(self, cls: type) -> Any:
        """A shell of nothing yet, for a module of class ``cls``."""
        derived = self._made.get((cls, True))
        if derived is None:
            derived = self._made[cls, True] = _shell_class(cls, self)
        return object.__new__(derived)

    def in_place(self, module: Any) -> None:
        """Have the calls of ``module`` compiled from now on."""
        cls = plain_class(type(module))
        derived = self._made.get((cls, False))
        if derived is None:
            derived = self._made[cls, False] = _in_place_class(cls, self)
        _set_class(module, derived)


def compiled(module: object, classes: ModuleClasses, in_place: bool) -> Any:
    """The compiled module, ``None`` for what is no module, or one whose class cannot be derived from."""
    cls = type(module)
    if not issubclass(cls, torch.nn.Module) or not _is_derivable(type(cls)):
        return None
    if issubclass(cls, ModuleShell):
        module = module_of(module)
        cls = type(module)
    try:
        if not in_place:
            return fill(classes.shell(cls), module)
        classes.in_place(module)
    except TypeError:  # of the class: its ``__slots__``, a refusal to be derived from
        return None
    return module


def fill(shell: Any, module: Any) -> Any:
    """``shell`` as that of ``module``."""
    ModuleShell._dyncomp_module.__set__(shell, module)  # type: ignore[attr-defined]
    object.__setattr__(shell, "__dict__", module.__dict__)
    return shell


def module_of(shell: Any) -> Any:
    """The module of a shell. One that was made by hand with a copy of another's ``__dict__``, as replicas
    are, gets a module of its own."""
    try:
        found = ModuleShell._dyncomp_module.__get__(shell)  # type: ignore[attr-defined]
    except AttributeError:
        found = object.__new__(plain_class(type(shell)))
        object.__setattr__(found, "__dict__", shell.__dict__)
        ModuleShell._dyncomp_module.__set__(shell, found)  # type: ignore[attr-defined]
    return found


def plain_class(cls: type) -> type:
    """The module's own class."""
    found: type = vars(cls).get("_dyncomp_class", cls)
    return found


def _is_derivable(meta: type) -> bool:
    """Not classes whose making has effects of torch's own (those of scripted modules)."""
    return meta in (type, abc.ABCMeta) or meta.__module__.partition(".")[0] != "torch"


def _set_class(module: object, cls: type) -> None:
    object.__dict__["__class__"].__set__(module, cls)


def _derive(cls: type, first: tuple[type, ...], members: dict[str, Any]) -> type:
    """A class like ``cls``, which it is derived from behind ``cls``'s back: registries do not hear of it."""
    members |= {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    members["_dyncomp_class"] = cls
    derived = type(cls)(cls.__name__, (*first, torch.nn.Module), members)
    derived.__bases__ = (*first, cls)
    return derived


def _functions(cls: type) -> dict[str, types.FunctionType]:
    """The methods that are compiled."""
    found = {}
    for name in _METHODS:
        member = inspect.getattr_static(cls, name)
        member = member._function if isinstance(member, _hook.Dispatcher) else member
        if isinstance(member, types.FunctionType):
            found[name] = member
    return found


def _shell_class(cls: type, classes: ModuleClasses) -> type:
    def reduce_ex(self: Any, protocol: object) -> Any:
        module = module_of(self)
        made = classes.rebuild_shell, (type(module), classes.options)
        return *made, module, None, None, classes.fill_shell

    def deep_copied(self: Any, memo: dict[int, Any]) -> Any:
        module = copy.deepcopy(module_of(self), memo)
        return fill(classes.shell(type(module)), module)

    def copied(self: Any) -> Any:
        module = copy.copy(module_of(self))
        return fill(classes.shell(type(module)), module)

    def set_class(self: Any, new: type) -> None:
        module = module_of(self)
        module.__class__ = new
        _set_class(self, type(classes.shell(new)))

    members: dict[str, Any] = {
        "__slots__": (),
        "__reduce_ex__": reduce_ex,
        "__deepcopy__": deep_copied,
        "__copy__": copied,
        "__class__": property(lambda self: type(module_of(self)), set_class),
        "__wrapped__": property(module_of),
    }
    for name, function in _functions(cls).items():
        members[name] = _forwarding(function, classes.dispatcher(function))
    if hasattr(cls, "__del__"):
        members["__del__"] = lambda self: None  # it is the module that goes
    return _derive(cls, (ModuleShell,), members)


def _forwarding(function: types.FunctionType, call: Callable[..., Any]) -> Any:
    @wraps(function)
    def forwarded(self: Any, *args: object, **kwargs: object) -> Any:
        try:
            module = self._dyncomp_module
        except AttributeError:
            module = module_of(self)
        return call(module, *args, **kwargs)

    return forwarded


def _in_place_class(cls: Any, classes: ModuleClasses) -> type:
    def reduce_ex(self: Any, protocol: Any) -> Any:
        found = cls.__reduce_ex__(self, protocol)
        if isinstance(found, str):
            return found
        make, args, *rest = found
        args = tuple(cls if arg is derived else arg for arg in args)
        return classes.rebuild_in_place, (make, args, classes.options), *rest

    def deep_copied(self: Any, memo: dict[int, Any]) -> Any:
        if hasattr(cls, "__deepcopy__"):
            made = cls.__deepcopy__(self, memo)
            if type(made) is cls:
                classes.in_place(made)
            return made
        if _copies_as_usual(cls):
            made = memo[id(self)] = object.__new__(type(self))
            object.__setattr__(made, "__dict__", copy.deepcopy(self.__dict__, memo))
            return made
        make, args, *rest = cls.__reduce_ex__(self, 4)
        made = memo[id(self)] = make(*copy.deepcopy(args, memo))
        if rest and rest[0] is not None:
            made.__setstate__(copy.deepcopy(rest[0], memo))
        return made

    members: dict[str, Any] = {"__reduce_ex__": reduce_ex, "__deepcopy__": deep_copied}
    for name, function in _functions(cls).items():
        members[name] = classes.dispatcher(function)
    derived = _derive(cls, (), members)
    return derived


def _copies_as_usual(cls: Any) -> bool:
    own = [cls.__reduce_ex__ is object.__reduce_ex__, cls.__reduce__ is object.__reduce__]
    names = ("__getstate__", "__setstate__")
    return all(own) and all(getattr(cls, name) is getattr(torch.nn.Module, name) for name in names)

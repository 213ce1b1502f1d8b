"""Functions of a program that are compiled because the command line names them.

The ``def`` gets ``dyncomp.compile`` as its innermost decorator as its module is read, so that whatever the
program does with the function, from its other decorators to importing it elsewhere, it does with the compiled
one.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable, Sequence
from types import CodeType, ModuleType

_NAME = "__dyncomp_compile__"
_WRONG = "{!r} is no name of a function: say function, Class.method or module:function"
_PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")
Wrap = Callable[[Callable[..., object]], object]


class Wanted:
    """The functions named, ``function``, ``Class.method`` (of the script) or ``module:function``; ``wrap``
    makes the compiled function. ``found``: those that were defined so far.

    Raises ``ValueError`` for a name that is none.
    """

    def __init__(self, names: Sequence[str], wrap: Wrap) -> None:
        self.wrap = wrap
        self.names: dict[str, set[str]] = {}
        self.found: set[str] = set()
        for name in names:
            module, colon, qualified = name.rpartition(":")
            if not all(part.isidentifier() for part in [*qualified.split("."), *module.split(".")] if part):
                raise ValueError(
                    f"{name!r} is no name of a function: say function, Class.method or module:function"
                )
            if not qualified or (colon and not module):
                raise ValueError(
                    f"{name!r} is no name of a function: say function, Class.method or module:function"
                )
            self.names.setdefault(module or "__main__", set()).add(qualified)

    @property
    def missing(self) -> list[str]:
        """Names of which no function was defined, as they were given."""
        spelt = [
            (qualified if module == "__main__" else f"{module}:{qualified}")
            for module, names in self.names.items()
            for qualified in names
        ]
        return sorted(set(spelt) - self.found)

    def compile(self, source: bytes | str, filename: str, module: str) -> CodeType:
        """The code of a module with the functions named in it decorated. Raises ``SyntaxError``."""
        names = self.names.get(module, set())
        if not names:
            return compile(source, filename, "exec", dont_inherit=True)
        tree = ast.parse(source, filename)
        _Decorating(names).visit(tree)
        return compile(tree, filename, "exec", dont_inherit=True)

    def prepare(self, namespace: dict[str, object], module: str) -> None:
        """Put what the decorated code calls into a module's namespace, before it runs."""
        if module in self.names:
            namespace[_NAME] = lambda name: lambda function: self._decorated(module, name, function)

    def _decorated(self, module: str, name: str, function: Callable[..., object]) -> object:
        self.found.add(name if module == "__main__" else f"{module}:{name}")
        return self.wrap(function)

    def install(self) -> _Finder:
        """Have modules that are imported from now on be read by :meth:`compile`. What is imported already
        gets its functions replaced. Call ``remove()`` of what is returned in the end."""
        for module, names in self.names.items():
            loaded = sys.modules.get(module)
            if module == "__main__" or loaded is None:
                continue
            for name in names:
                self._replace(loaded, module, name)
        finder = _Finder(self)
        sys.meta_path.insert(0, finder)
        return finder

    def _replace(self, loaded: ModuleType, module: str, name: str) -> None:
        *path, last = name.split(".")
        holder: object = loaded
        for part in path:
            holder = getattr(holder, part, None)
        function = vars(holder).get(last) if isinstance(holder, (ModuleType, type)) else None
        if isinstance(function, types.FunctionType):
            setattr(holder, last, self._decorated(module, name, function))


class _Decorating(ast.NodeVisitor):
    """Gives the functions of these qualified names a decorator."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.path: list[str] = []

    def _enter(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.path.append(node.name)
        name = ".".join(self.path)
        if name in self.names and not isinstance(node, ast.ClassDef):
            place = {
                key: getattr(node, key) for key in ("lineno", "col_offset", "end_lineno", "end_col_offset")
            }
            called = ast.Call(
                ast.Name(_NAME, ast.Load(), **place), [ast.Constant(name, **place)], [], **place
            )
            node.decorator_list.append(called)
        self.generic_visit(node)
        self.path.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _enter


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules named, by the finders behind it, and has them read otherwise."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self.wanted.names or fullname == "__main__":
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if isinstance(spec.loader, importlib.machinery.SourceFileLoader):
                    spec.loader = _Loader(fullname, spec.loader.path, self.wanted)
                return spec
        return None

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)


class _Loader(importlib.machinery.SourceFileLoader):
    """Reads a module from its source, not from compiled bytecode, and writes none."""

    def __init__(self, name: str, path: str, wanted: Wanted) -> None:
        super().__init__(name, path)
        self.wanted = wanted

    def get_code(self, fullname: str) -> CodeType:
        return self.wanted.compile(self.get_data(self.path), self.path, fullname)

    def exec_module(self, module: ModuleType) -> None:
        self.wanted.prepare(vars(module), module.__name__)
        super().exec_module(module)

"""dyncomp: a just-in-time compiler for ordinary Python array programs.

fast = dyncomp.compile(f)          # or as a decorator
print(dyncomp.explain(f)(x, y))    # graphs, graph breaks, guards, kernels
"""

import os as _os
from typing import TYPE_CHECKING

from . import logs as _logs
from .api import compile, compile_, reset, stats, substitute
from .capture.environment.regions import (
    allow_in_graph,
    assume_constant_result,
    disable,
    error_on_graph_break,
    graph_break,
    is_compiling,
)
from .capture.policy.stance import current_stance, set_stance
from .capture.sizes.marks import mark_dynamic, mark_static
from .errors import (
    ConstraintError,
    DyncompError,
    ExportError,
    GraphBreakError,
    NotBatchableError,
    NotDifferentiableError,
    RecompileError,
)
from .pipeline import list_backends
from .report.explain import Explanation, explain

if TYPE_CHECKING:
    from .archives.export import Exported, export
    from .archives.load import load
    from .autodiff.api import grad, jvp, value_and_grad, vjp
    from .autodiff.batches import vmap
    from .autodiff.custom import checkpoint, custom_vjp
    from .autodiff.jacobians import hessian, jacobian
    from .autodiff.trees import register_tree
    from .frontends.derivatives import stop_gradient
    from .minifier.minify import Minified, minify
    from .tasks.future import Future, fork, wait

__version__ = "0.1.0"
__all__ = [
    "ConstraintError",
    "DyncompError",
    "Explanation",
    "ExportError",
    "Exported",
    "Future",
    "GraphBreakError",
    "Minified",
    "NotBatchableError",
    "NotDifferentiableError",
    "RecompileError",
    "allow_in_graph",
    "assume_constant_result",
    "checkpoint",
    "compile",
    "compile_",
    "current_stance",
    "custom_vjp",
    "disable",
    "error_on_graph_break",
    "explain",
    "export",
    "fork",
    "grad",
    "hessian",
    "graph_break",
    "is_compiling",
    "jacobian",
    "jvp",
    "list_backends",
    "load",
    "mark_dynamic",
    "mark_static",
    "minify",
    "register_tree",
    "reset",
    "set_stance",
    "stats",
    "stop_gradient",
    "substitute",
    "value_and_grad",
    "vjp",
    "vmap",
    "wait",
]
_logs.configure(_os.environ)


def __getattr__(name: str) -> object:
    """Derivatives, exports and the like, which are imported when they are first asked for."""
    if name == "load":
        from .archives.load import load

        return globals().setdefault(name, load)
    if name in ("Minified", "minify"):
        from .minifier import minify as minifying

        return globals().setdefault(name, getattr(minifying, name))
    if name in ("Future", "fork", "wait"):
        from . import tasks

        return globals().setdefault(name, getattr(tasks, name))
    if name in ("Exported", "export"):
        from .archives import export as exporting

        return globals().setdefault(name, getattr(exporting, name))
    if name in __all__:
        from . import autodiff

        return globals().setdefault(name, getattr(autodiff, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

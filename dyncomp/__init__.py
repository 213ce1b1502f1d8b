"""dyncomp: a just-in-time compiler for ordinary Python array programs.

fast = dyncomp.compile(f)          # or as a decorator
print(dyncomp.explain(f)(x, y))    # graphs, graph breaks, guards, kernels
"""

import importlib
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
    GraphError,
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
    from .profiling.profile import profile
    from .tasks.future import Future, fork, wait
    from .tracing.function import GraphFunction, symbolic_trace, wrap_graph

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
    "GraphError",
    "GraphFunction",
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
    "profile",
    "register_tree",
    "reset",
    "set_stance",
    "stats",
    "stop_gradient",
    "substitute",
    "symbolic_trace",
    "value_and_grad",
    "vjp",
    "vmap",
    "wait",
    "wrap_graph",
]
_logs.configure(_os.environ)
if _os.environ.get("DYNCOMP_REPRO"):
    from .minifier.automatic import install as _install

    _install(_os.environ)


# What is imported when it is first asked for, and from where.
_LATER = {
    **dict.fromkeys(("Exported", "export"), "archives.export"),
    "load": "archives.load",
    **dict.fromkeys(("Minified", "minify"), "minifier.minify"),
    **dict.fromkeys(("GraphFunction", "symbolic_trace", "wrap_graph"), "tracing"),
    "profile": "profiling.profile",
    **dict.fromkeys(("Future", "fork", "wait"), "tasks"),
    **dict.fromkeys(("load_ipython_extension", "unload_ipython_extension"), "notebooks"),
    **dict.fromkeys(("checkpoint", "custom_vjp", "grad", "hessian", "jacobian", "jvp"), "autodiff"),
    **dict.fromkeys(("register_tree", "stop_gradient", "value_and_grad", "vjp", "vmap"), "autodiff"),
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_LATER[name]}")
    return globals().setdefault(name, getattr(module, name))

"""dyncomp: a just-in-time compiler for ordinary Python array programs.

fast = dyncomp.compile(f)          # or as a decorator
print(dyncomp.explain(f)(x, y))    # graphs, graph breaks, guards, kernels
"""

import os as _os

from . import logs as _logs
from .api import compile, disable, reset, stats
from .capture.marks import mark_dynamic, mark_static
from .errors import ConstraintError, DyncompError, GraphBreakError
from .explain import Explanation, explain
from .pipeline import list_backends

__version__ = "0.1.0"
__all__ = [
    "ConstraintError",
    "DyncompError",
    "Explanation",
    "GraphBreakError",
    "compile",
    "disable",
    "explain",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "reset",
    "stats",
]
_logs.configure(_os.environ)

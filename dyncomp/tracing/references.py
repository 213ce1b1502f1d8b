"""What the names in the code of a graph stand for: each op's NumPy reference, dtypes and the like.

``from dyncomp.tracing.references import *`` is the first line of ``GraphFunction.code``.
"""

from __future__ import annotations

from ..graph.text import namespace
from ..prims.table import TABLE

_NAMES = namespace(TABLE)
globals().update(_NAMES)
__all__ = list(_NAMES)  # noqa: PLE0605

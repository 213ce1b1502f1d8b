"""Which helper functions a translation unit of generated code needs, as text."""

from __future__ import annotations

import re

from ....errors import LoweringFault
from .sections import ordered, sections, text_of, vector_declaration

# Defined in every unit's prelude or by the renderer itself.
_PRELUDE_NAMES = frozenset({"dc_call", "dc_branch", "dc_size_min", "dc_size_max", "dc_block"})
# Names of the program's functions and files may look like helpers'.
_COMMENT = re.compile(r"^[ \t]*//.*$", re.M)
_VECTOR_NAME = re.compile(r"\bdcv_\w+")


def needed_support(code: str) -> str:
    """The helpers that ``code`` calls, and those they call, in an order that compiles.

    Raises ``LoweringFault`` for a helper that does not exist: the function has no C++ spelling.
    """
    table = sections()
    code = _COMMENT.sub("", code)
    declared = [vector_declaration(name) for name in sorted(set(_VECTOR_NAME.findall(code)))]
    try:
        names = ordered(code, table, _PRELUDE_NAMES)
    except KeyError as error:
        raise LoweringFault(f"C++ has no spelling of {str(error.args[0]).removeprefix('dc_')}") from None
    return "\n".join([*declared, *(table[name] for name in names)])


def quiet_comparisons() -> str:
    """What has comparisons with NaN leave the status flags alone."""
    return text_of("quiet.h")


__all__ = ["needed_support", "quiet_comparisons", "sections"]

"""Replacement functions on disk: the fields of their code objects, and what their constants stand for.

A file is of one version of Python, so bytecode is stored as it is; a checksum covers it.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from ..capture.policy.fallback import Fallback
from ..capture.replacement.replace_source import plain_copy
from .descriptions import NotStorable
from .plain import Packer, Unpacker

if TYPE_CHECKING:
    from .context import Context

_FIELDS = (
    *("co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_nlocals", "co_stacksize", "co_flags"),
    *("co_code", "co_names", "co_varnames", "co_filename", "co_name", "co_qualname", "co_firstlineno"),
    *("co_linetable", "co_exceptiontable", "co_freevars", "co_cellvars"),
)


def pack_code(packer: Packer, code: types.CodeType) -> list[Any]:
    """The row of a replacement."""
    fields = packer.values(getattr(code, field) for field in _FIELDS)
    return ["code", fields, packer.values(code.co_consts)]


def unpack_code(unpacker: Unpacker, parts: list[Any]) -> types.CodeType:
    fields, constants = parts
    given = dict(zip(_FIELDS, unpacker.values(fields), strict=True))
    return _TEMPLATE.replace(**given, co_consts=tuple(unpacker.values(constants)))


def _template() -> None: ...


_TEMPLATE = _template.__code__


def packed_plain_copy(code: types.CodeType, root: types.CodeType) -> list[Any]:
    """The row of the copy of ``root`` that runs as plain Python."""
    if code != plain_copy(root):
        raise NotStorable(f"the code of {code.co_qualname}")
    return ["plain copy"]


def pack_fallback(packer: Packer, fallback: Fallback) -> list[Any]:
    return ["fallback", fallback.may_break, fallback.presumes]


def makers(context: Context) -> dict[str, Any]:
    root = context.code
    return {
        "code": unpack_code,
        "plain copy": lambda u, p: plain_copy(root),
        "fallback": lambda u, p: context.fallback(not p[0], p[1]),
    }

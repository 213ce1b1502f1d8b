"""What capture asks of entries on disk (:mod:`dyncomp.warm_start`), and what it gives to be kept there."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ...dataclass import dataclass
from ...hook import _hook
from ..guards.source import Source
from .records import EntryRecord

if TYPE_CHECKING:
    from ..replacement.signature import Signature
    from .config import CaptureConfig


@dataclass(eq=False)
class Captured:
    """A new entry of ``function``, captured with ``args``. ``own``: containers among its constants that are
    no objects of the program; ``plain``: continuations in plain Python among them, and what they carry on.
    ``reads``: the program among them that reads many values, and which."""

    function: types.FunctionType
    args: tuple[Any, ...]
    entry: _hook.Entry
    record: EntryRecord
    own: Sequence[object] = ()
    plain: Sequence[tuple[Any, types.CodeType]] = ()
    reads: tuple[_hook.GuardProgram, Sequence[Source]] | None = None
    moves: bool = False
    trial: str = ""
    signature: Callable[[], Signature] | None = None


class StoredEntries(Protocol):
    """The entries on disk of one configuration. Neither method raises."""

    def find(
        self, function: types.FunctionType, args: tuple[Any, ...], config: CaptureConfig
    ) -> tuple[_hook.Entry, EntryRecord] | None:
        """An entry whose guards hold for ``args``."""

    def keep(self, captured: Captured, config: CaptureConfig) -> None:
        """Store a new entry, if another process could use it."""

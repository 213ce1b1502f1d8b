"""``%load_ext dyncomp``: the cell magic ``%%dyncomp``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Called by ``%load_ext dyncomp``."""
    from .cells import CellMagic

    magic: Any = CellMagic(shell)  # any callable of a line and a cell, whatever IPython declares
    shell.register_magic_function(magic, "cell", "dyncomp")


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Called by ``%unload_ext dyncomp``. What cells have compiled stays compiled."""
    shell.magics_manager.magics["cell"].pop("dyncomp", None)

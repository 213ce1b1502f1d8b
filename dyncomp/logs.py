"""``DYNCOMP_LOGS``: which of dyncomp's loggers print, and how much.

``DYNCOMP_LOGS="capture,inductor"`` prints these at INFO; ``"+capture"`` at DEBUG; ``"all"`` everything.
Loggers: ``dyncomp.capture``, ``dyncomp.pipeline``, ``dyncomp.inductor``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

AREAS = ("capture", "pipeline", "inductor")


def configure(environ: Mapping[str, str]) -> None:
    """Set levels and one stderr handler from ``DYNCOMP_LOGS``; raises nothing, unknown names are reported."""
    text = environ.get("DYNCOMP_LOGS", "")
    if not text:
        return
    root = logging.getLogger("dyncomp")
    if not root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("[%(name)s] %(message)s"))
        root.addHandler(handler)
        root.propagate = False
    for item in text.split(","):
        name = item.strip().lstrip("+")
        level = logging.DEBUG if item.strip().startswith("+") else logging.INFO
        for area in AREAS if name == "all" else (name,):
            if area in AREAS:
                logging.getLogger(f"dyncomp.{area}").setLevel(level)
            else:
                root.warning("DYNCOMP_LOGS: unknown area %r; known: all, %s", name, ", ".join(AREAS))

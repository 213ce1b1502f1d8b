"""Tests that are known to tell compiled code from plain code, each with the reason.

Keys are test ids or prefixes of ids (``test.test_x.Class``), ``"3.12 test.test_x…"`` for a version only.
"""

from __future__ import annotations

from .outcomes import Outcome

EXPECTED: dict[str, str] = {}


def reason_for(version: str, test: str, outcome: Outcome) -> str | None:
    """Why the test may differ; crashes and hangs never may."""
    if outcome.kind in ("crash", "hang"):
        return None
    for key, reason in EXPECTED.items():
        only, _, name = key.rpartition(" ")
        if (not only or only == version) and (test == name or test.startswith(name + ".")):
            return reason
    return None

"""Measurements in processes of their own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any


def answer_of(
    command: Sequence[str], limit: float, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The JSON object in the last line that a command prints, or ``{"failed": why}`` in a few words.
    ``limit``: in seconds."""
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"failed": f"over {limit:g} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        said = done.stderr.strip().splitlines()
        return {"failed": said[-1][:120] if said else f"status {done.returncode}"}
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer

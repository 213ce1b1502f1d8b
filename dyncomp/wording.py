"""Counts in sentences for people."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """``1 graph``, ``2,048 graphs``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")

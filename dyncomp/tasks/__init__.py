"""Tasks: functions that run beside the program; see README.md."""

from .future import Future, fork, wait

__all__ = ["Future", "fork", "wait"]

"""``dyncomp.profile``: where the time of a program goes, in compiled code and in compiling it."""

from .profile import profile

__all__ = ["profile"]

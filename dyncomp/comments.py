"""Text of the program (names, paths) in generated code."""

from __future__ import annotations

import re

# What ends a comment of C++ of either kind, or begins another character: "*/", "??/".
_PAIRS = re.compile(r"(?<=\*)(?=/)|(?<=\?)(?=\?)")


def in_comment(text: str) -> str:
    """``text`` so that it cannot end the comment that it stands in, in C++ or Python: a single line without
    backslashes and without what is not printed."""
    if text.isascii() and text.isprintable() and not any(c in text for c in "\\*?"):
        return text
    plain = "".join(c if c.isprintable() else " " if c == "\n" else "_" for c in text.replace("\\", "/"))
    return _PAIRS.sub(" ", plain)

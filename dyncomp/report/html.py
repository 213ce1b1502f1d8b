"""The report of ``explain`` as one HTML page, without scripts or anything from elsewhere."""

from __future__ import annotations

from html import escape

_STYLE = """\
.dyncomp { font-family: sans-serif; max-width: 72rem; }
.dyncomp pre { background: #f6f6f6; color: #222; padding: .6rem; overflow-x: auto; white-space: pre-wrap; }
.dyncomp summary { cursor: pointer; font-weight: bold; margin: .4rem 0; }
.dyncomp .note { color: #a40000; }
"""


def page(summary: str, notes: list[str], sections: list[tuple[str, str]]) -> str:
    """``sections``: headings and texts; the first is shown opened."""
    parts = [f"<style>{_STYLE}</style>", '<div class="dyncomp">', f"<p>{escape(summary)}</p>"]
    parts += [f'<p class="note">{escape(note)}</p>' for note in notes]
    for number, (heading, text) in enumerate(sections):
        opened = "" if number else " open"
        parts.append(
            f"<details{opened}><summary>{escape(heading)}</summary><pre>{escape(text)}</pre></details>"
        )
    return "\n".join([*parts, "</div>\n"])

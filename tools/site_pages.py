"""The pages of the documentation site, for MkDocs (``hooks`` in ``mkdocs.yml``).

Pages of ``docs/`` link to those beside the sources (``ARCHITECTURE.md``, ``bench/*.md``, packages' READMEs).
MkDocs takes pages from one folder only, so the hook copies all of them, in the tree that they have here, to
``build/pages``, and links work on the site as they do in a checkout.
"""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "build" / "pages"
_SOURCES = (
    *("*.md", "LICENSE", "docs/*.md", "docs/images/*", "bench/*.md", "dyncomp/**/*.md"),
    *("tests/*/RESULTS.md", "tests/round_trip.py"),
)


def stage(target: Path = PAGES) -> Path:
    """Copy all pages and what they show to ``target``, which is made anew. Returns it."""
    shutil.rmtree(target, ignore_errors=True)
    for pattern in _SOURCES:
        for source in ROOT.glob(pattern):
            copy = target / source.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
    return target


def on_config(config):  # type: ignore[no-untyped-def]  # called by MkDocs with its configuration
    """Have MkDocs read the copies."""
    config.docs_dir = str(stage())
    return config

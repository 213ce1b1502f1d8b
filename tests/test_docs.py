"""The documents say what is so: paths and links exist, options and variables are listed, examples run."""

from __future__ import annotations

import ast
import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import dyncomp
from dyncomp.options import _FROM_ENVIRONMENT, Options
from tools import reference

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
SOURCES = ("dyncomp", "tests", "docs", "tools", "bench", "demo", ".ci")
# Files of other places, and what programs leave behind.
ELSEWHERE = {"../shared/DESIGN.md", ".venv/", "edited.cpp", "run.py", "build/site", "out/NAME-DIGEST"}
ELSEWHERE |= {"NAME.h", "NAME.c", "NAME_kernels.cpp", "NAME_runtime.cpp", "normalize.h"}
# Arguments of `compile`, which have a table of their own, and what is for tests.
NO_OPTIONS = {"mode", "backend", "fullgraph", "dynamic", "capture_plain"}
# Read by the build, or by tests alone.
NO_VARIABLES = {"DYNCOMP_DEBUG", "DYNCOMP_SANITIZE"}


def _ends_of_paths() -> set[str]:
    """Every file and folder by the last parts of its path, files also without what follows the dot."""
    found = {path.name for path in ROOT.glob("*")}
    for folder in SOURCES:
        for path in (ROOT / folder).rglob("*"):
            parts = path.relative_to(ROOT).parts
            for start in range(len(parts)):
                end = "/".join(parts[start:])
                found |= {end, end.rpartition(".")[0] or end}
    return found


ENDS = _ends_of_paths()


def _is_path(text: str) -> bool:
    plain = re.fullmatch(r"[\w./*-]+", text) is not None
    return plain and ("/" in text or text.endswith((".py", ".c", ".cpp", ".h", ".md")))


def _exists(text: str) -> bool:
    name = text.removeprefix("dyncomp/").rstrip("/")
    if "*" not in name:
        return name in ENDS
    pattern = re.compile(re.escape(name).replace(r"\*", r"[^/]*"))
    return any(pattern.fullmatch(end) for end in ENDS)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_paths_exist(document: Path) -> None:
    assert not _exists("inductor/no_such_file.py")
    assert not _exists("prims/no_such_*.py")
    text = document.read_text(encoding="utf-8")
    named = {name for name in re.findall(r"`([^`\n]+)`", text) if _is_path(name)} - ELSEWHERE
    assert sorted(name for name in named if not _exists(name)) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    assert list(_broken_links(document.read_text(encoding="utf-8"), document)) == []


def test_broken_links_are_found() -> None:
    text = "# A b, and `c`\n[x](#a-b-and-c) [x](#a-c) [x](using.md#options) [x](using.md#nope) [x](nope.md)"
    assert list(_broken_links(text, ROOT / "docs/here.md")) == ["#a-c", "using.md#nope", "nope.md"]


def _broken_links(text: str, document: Path) -> Iterator[str]:
    """Links to files that are not there, and to headings that their page does not have."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    found = re.findall(r"\]\(([^)\s]+)\)", prose) + re.findall(r"""(?:src|srcset|href)="([^"]+)""", prose)
    for link in found:
        name, _, anchor = link.partition("#")
        target = document.parent / name if name else ROOT
        if "://" in link:
            continue
        if (
            name
            and not target.exists()
            or anchor
            and anchor not in _anchors(target.read_text(encoding="utf-8") if name else text)
        ):
            yield link


def _anchors(text: str) -> set[str]:
    """The headings as GitHub and the site spell them in links."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    headings = re.findall(r"^#+ +(.+?) *$", prose, re.M)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def _using() -> str:
    """The two pages that list options and variables: for all users, and for few."""
    return "\n".join((ROOT / f"docs/{name}.md").read_text(encoding="utf-8") for name in ("using", "advanced"))


def test_the_page_for_all_users_lists_few_options() -> None:
    text = (ROOT / "docs/using.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^\| `\w+` \| `?[^|`]+`? \| ", text, re.M)) <= 12


def test_every_option_is_documented_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| `?([^|`]+?)`? \| ", _using(), re.M))
    wrong = []
    for option in fields(Options):
        if option.name in NO_OPTIONS:
            continue
        default = repr(option.default).replace("'", '"')
        if rows.get(option.name) not in (default, f"{option.default:g}" if default[0].isdigit() else default):
            wrong.append(f"{option.name}: {rows.get(option.name)}, is {default}")
    assert wrong == []


def test_every_environment_variable_is_documented() -> None:
    documented = set(re.findall(r"DYNCOMP_[A-Z_]+", _using()))
    known = {f"DYNCOMP_{name.upper()}" for name in _FROM_ENVIRONMENT}
    for path in (ROOT / "dyncomp").rglob("*"):
        if path.suffix in (".py", ".c", ".cpp"):
            known |= set(re.findall(r'"(DYNCOMP_[A-Z_]+)"', path.read_text(encoding="utf-8")))
    assert sorted(known - documented - NO_VARIABLES) == []
    assert sorted(documented - known) == []


def test_the_reference_is_up_to_date_and_complete() -> None:
    named = [name for names in reference.TOPICS.values() for name in names]
    assert sorted(named) == sorted(dyncomp.__all__)
    for name in dyncomp.__all__:
        assert getattr(dyncomp, name).__doc__, f"{name} has no docstring"
    assert reference.PAGE.read_text(encoding="utf-8") == reference.render(), "python -m tools.reference"


def test_the_site_builds_without_a_broken_link(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    assert {"index.html", "docs/using.html", "docs/tutorial_numpy.html"} <= {
        path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.html")
    }


# -- examples ---------------------------------------------------------------------------------
def _examples() -> Iterator[tuple[str, str]]:
    for document in DOCUMENTS:
        if document.stem.startswith("tutorial_"):
            continue  # one program, below
        blocks = re.findall(r"^```python\n(.*?)^```", document.read_text(encoding="utf-8"), re.S | re.M)
        for number, block in enumerate(blocks):
            if not block.startswith(">>>"):
                yield f"{document.name}-{number}", block


EXAMPLES = dict(_examples())
# What an example takes to be there, and what to do with what it made.
BEFORE = "import numpy as np\nimport dyncomp\n\n\ndef f(x):\n    return np.sqrt(x) + 1\n\n"
USES = {
    "step": "u = np.ones((9, 8))\nassert step(u, 0.1, 0.5) == 1.0",
    "fast_rosen_der": "x = np.linspace(0.5, 2.0, 9)\nassert np.allclose(fast_rosen_der(x), rosen_der(x))",
    "distance": "assert np.allclose(one_for_each, np.linalg.norm(points, axis=1))",
    "gram": "assert of_each.shape == (20, 3) and np.allclose(np.diag(gram), 1.0)",
    "newton": "assert np.allclose(dyncomp.grad(newton)(np.array([1.0, 4.0])), [0.5, 0.25])",
    "fast": "assert fast(np.ones(3)).tolist() == [2.0] * 3",
}


def _needs(text: str) -> list[str]:
    modules = [node.module or "" for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    return [module.partition(".")[0] for module in modules]


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name: str, tmp_path: Path) -> None:
    text = EXAMPLES[name]
    for module in _needs(text):
        pytest.importorskip(module)
    uses = [use for made, use in USES.items() if re.search(rf"(?<!\.)\b{made}\b", text)]
    if re.search(r"^ *assert ", text, re.M):
        uses = []  # it says itself what comes out
    else:
        assert uses, f"{name} makes nothing that this test knows how to use"
    program = tmp_path / "example.py"  # capture wants to find the source
    program.write_text("\n".join([BEFORE, text, *uses, ""]), encoding="utf-8")
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environ, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]


TUTORIALS = sorted((ROOT / "docs").glob("tutorial_*.md"))
# Between what the blocks of a tutorial print.
NEXT = "-- next block --"


def _tutorial(text: str) -> tuple[str, list[str]]:
    """All ``python`` blocks as one program, and what each is said to print: its ``text`` block, or ``""``."""
    blocks = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", text, re.S | re.M)
    return f"\nprint({NEXT!r})\n\n".join(code for code, _ in blocks), [printed for _, printed in blocks]


@pytest.mark.parametrize("document", TUTORIALS, ids=lambda path: path.stem)
def test_tutorials_run_and_print_what_they_show(document: Path, tmp_path: Path) -> None:
    if document.stem == "tutorial_pytorch":
        pytest.importorskip("torch")
    code, shown = _tutorial(document.read_text(encoding="utf-8"))
    program = tmp_path / "tutorial.py"
    program.write_text(code, encoding="utf-8")
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environ, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    printed = done.stdout.split(NEXT + "\n")
    assert len(printed) == len(shown)
    check = doctest.OutputChecker().check_output
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert [pair for pair in zip(shown, printed) if pair[0] and not check(*pair, flags)] == []


def test_there_are_examples() -> None:
    assert {path.stem for path in TUTORIALS} == {"tutorial_numpy", "tutorial_pytorch"}
    assert {"README.md-0", "README.md-1", "using.md-0"} <= set(EXAMPLES)

"""The graph after each pass, run again when the page is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...dataclass import dataclass
from ...graph.ir import Graph
from ...graph.text import print_graph
from ...options import Options
from ...pipeline import PASSES, Compiled, op_table, run_passes
from ...staging.cut import has_stages

# Lines of one graph that are shown, and of all graphs of a page; characters of a line, and of all of them.
MOST_LINES, MOST_ALTOGETHER = 300, 12_000
LONGEST_LINE, MOST_CHARACTERS = 400, 3_000_000


@dataclass
class PassFacts:
    """A graph after a pass: ``text`` is empty where the pass changed nothing. ``cut``: lines left out."""

    name: str
    doc: str
    nodes: int
    seconds: float | None
    text: str
    cut: int = 0


@dataclass
class Passes:
    """``problem``: why there are no more of them."""

    steps: Sequence[PassFacts]
    problem: str = ""


class LineBudget:
    """How many lines of graphs may still be shown."""

    def __init__(self, lines: int = MOST_ALTOGETHER, characters: int = MOST_CHARACTERS) -> None:
        self.left = lines
        self.characters = characters

    def cut(self, text: str) -> tuple[str, int]:
        """The beginning of ``text`` that is shown, and how many lines are left out."""
        lines = text.splitlines()
        shown: list[str] = []
        for line in lines[: max(min(MOST_LINES, self.left), 0)]:
            short = line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 1] + "…"
            self.characters -= len(short)
            if self.characters < 0:
                break
            shown.append(short)
        self.left -= len(shown)
        return "\n".join(shown), len(lines) - len(shown)


def passes_of(compiled: Compiled, options: Options, budget: LineBudget) -> Passes:
    """The captured graph and what each pass makes of it."""
    before = compiled.graph_before
    found: list[PassFacts] = []
    texts: list[str] = []

    def note(name: str, graph: Graph, seconds: float | None) -> None:
        text = print_graph(graph)
        same = bool(texts) and _body(texts[-1]) == _body(text)
        texts.append(text)
        shown, cut = ("", 0) if same else budget.cut(text)
        found.append(PassFacts(name, docs.get(name, "as captured"), len(graph.nodes), seconds, shown, cut))

    docs = {step.name: step.doc for step in PASSES}
    note("captured", before, None)
    table = op_table(compiled.owner)
    try:
        if has_stages(before, table):
            return Passes(
                found, "sizes depend on the data: the graph is cut into stages, each compiled when it runs"
            )
        start = replace(before, symbols=tuple(s for s in before.symbols if s.kind != "node"))
        run_passes(start, table, replace(options, debug_verify=False), note)
    except Exception as error:
        return Passes(found, f"the next pass cannot be run again: {type(error).__name__}: {error}")
    return Passes(found)


def _body(text: str) -> str:
    """Without the first line, which says whether the graph is functional."""
    return text.partition("\n")[2]

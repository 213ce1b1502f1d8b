"""The cell magic ``%%dyncomp``: compile the functions that a cell defines, run it, say what became of it."""

from __future__ import annotations

import ast
import html
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..api import SESSION, compile_with
from ..capture.entries.config import CaptureConfig
from ..hook import _hook
from ..report.call import ExplainedCall
from ..report.explain import Explanation, Watch, glance
from ..report.page.write import ReportError
from .options import LineError, parse_line

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

# What the decorator is called in the user's namespace while the cell runs.
_DECORATOR = "_dyncomp_of_this_cell"


class CellMagic:
    """``%%dyncomp [mode=…] [fullgraph] [report=FILE] [measure] …``

    Functions that the cell defines at its top level (no methods, no coroutines) are compiled, with all
    decorators that they have, and stay so. The cell's other statements run as they are. Then the overview is
    displayed, of the calls that the cell made, with a link to the whole report in a file. ``measure``: guards
    and kernels are timed for the report, which takes some seconds."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.__name__ = "dyncomp"

    def __call__(self, line: str, cell: str) -> None:
        """Raises IPython's ``UsageError`` for a wrong line, and what the cell raises."""
        from IPython.core.error import UsageError
        from IPython.display import display

        try:
            options = parse_line(line)
            config = SESSION.new_config(options.compiled)
        except (LineError, ValueError) as problem:
            raise UsageError(str(problem)) from None
        run, count = self._compiled(cell)
        watch = Watch(config)
        names = self.shell.user_ns
        names[_DECORATOR] = _decorator(config)
        failure: BaseException | None = None
        try:
            run()
        except BaseException as raised:
            failure = raised
            raise
        finally:
            names.pop(_DECORATOR, None)
            reached = watch.end()
            if failure is None or isinstance(failure, Exception):
                call = ExplainedCall(None, (), {}, config.options, reached)
                display(CellReport.written(watch.report(call), count, options.report, options.measure))

    def _compiled(self, cell: str) -> tuple[Callable[[], None], int]:
        """What runs the cell, its last expression being displayed, and how many functions it defines."""
        shell = self.shell
        text = shell.transform_cell(cell)
        tree = shell.transform_ast(shell.compile.ast_parse(text))
        count = 0
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                mark = ast.copy_location(ast.Name(_DECORATOR, ast.Load()), _first(node))
                node.decorator_list.insert(0, mark)
                count += 1
        name = shell.compile.cache(text, shell.execution_count)
        parts: list[tuple[ast.mod, str]] = []
        last = tree.body[-1:] if tree.body and isinstance(tree.body[-1], ast.Expr) else []
        rest = tree.body[: len(tree.body) - len(last)]
        if rest:
            parts.append((ast.Module(rest, tree.type_ignores), "exec"))
        if last:
            # a semicolon at the end keeps it from being displayed, as in any cell
            parts.append((ast.Interactive(last), "single"))
        codes = [shell.compile(part, name, mode) for part, mode in parts]

        def run() -> None:
            for code in codes:
                exec(code, shell.user_global_ns, shell.user_ns)

        return run, count


def _first(node: ast.FunctionDef) -> ast.AST:
    return node.decorator_list[0] if node.decorator_list else node


def _decorator(config: CaptureConfig) -> Callable[[Any], Any]:
    def compiled(made: Any) -> Any:
        """What decorators made of a function may be no function, or compiled already."""
        if not callable(made) or isinstance(made, (type, _hook.Dispatcher)):
            return made
        return compile_with(made, config)

    return compiled


class CellReport:
    """What the magic displays: the overview, and where the page is."""

    def __init__(self, text: str, path: Path | None, problem: str) -> None:
        self.text, self.path, self.problem = text, path, problem

    @classmethod
    def written(cls, report: Explanation, count: int, path: str, measure: bool) -> CellReport:
        """Write the page of ``report``, to a temporary file where ``path`` is empty."""
        text = glance(report)
        if not count:
            text = "The cell defines no function at its top level.\n" + text
        try:
            if path:
                return cls(text, report.save(path, measure), "")
            page = report.html(measure)
            file, name = tempfile.mkstemp(prefix="dyncomp-", suffix=".html")
            with os.fdopen(file, "w", encoding="utf-8") as stream:
                stream.write(page)
            return cls(text, Path(name), "")
        except (ReportError, OSError) as error:
            return cls(text, None, f"no report is written: {error}")

    def __repr__(self) -> str:
        return f"{self.text}\n{self.problem or f'report: {self.path}'}"

    def _repr_html_(self) -> str:
        if self.path is None:
            link = html.escape(self.problem)
        else:
            place = self.path.resolve()
            link = f'<a href="{html.escape(place.as_uri())}" target="_blank">{html.escape(str(place))}</a>'
        return f"<pre>{html.escape(self.text)}</pre><p>{link}</p>"

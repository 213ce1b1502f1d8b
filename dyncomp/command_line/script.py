"""A script run as ``python script.py`` would run it."""

from __future__ import annotations

import importlib.machinery
import io
import os
import signal
import sys
import types
from collections.abc import Sequence

from ..dataclass import dataclass
from .functions import Wanted


@dataclass(frozen=True, slots=True)
class Ended:
    """How a script ended: the exit status; ``interrupted``: by Ctrl-C that nothing handled."""

    status: int
    interrupted: bool = False


class NoScript(Exception):
    """The file cannot be read."""


def run_script(path: str, arguments: Sequence[str], wanted: Wanted) -> Ended:
    """Run a file as ``__main__``. What it raises is printed as Python would, without frames of dyncomp.

    Raises :class:`NoScript` where there is no such file.
    """
    try:
        with io.open_code(os.path.abspath(path)) as file:
            source = file.read()
    except OSError as error:
        raise NoScript(f"cannot open {path!r}: {error.strerror}") from error
    sys.argv[:] = [path, *arguments]
    folder = os.path.dirname(os.path.realpath(path))
    # of `python -m dyncomp` it is the current directory, of `dyncomp` that of the command
    if not getattr(sys.flags, "safe_path", False):
        sys.path[:1] = [folder]
    main = types.ModuleType("__main__")
    namespace = vars(main)
    namespace["__file__"] = os.path.abspath(path)
    namespace["__cached__"] = None
    namespace["__builtins__"] = sys.modules["builtins"]
    namespace["__annotations__"] = {}
    namespace["__loader__"] = importlib.machinery.SourceFileLoader("__main__", os.path.abspath(path))
    sys.modules["__main__"] = main
    wanted.prepare(namespace, "__main__")
    finder = wanted.install()
    try:
        exec(wanted.compile(source, os.path.abspath(path), "__main__"), namespace)
    except SystemExit as leaving:
        return Ended(_status(leaving.code))
    except BaseException as error:
        _show(error)
        return Ended(130 if isinstance(error, KeyboardInterrupt) else 1, isinstance(error, KeyboardInterrupt))
    finally:
        finder.remove()
    return Ended(0)


def end_by_interrupt() -> None:
    """End this process as Ctrl-C does, for shells that look."""
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


def _status(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _show(error: BaseException) -> None:
    """Print a traceback that begins in the script."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    if isinstance(error, SyntaxError) and traceback is not None and _is_own(traceback):
        traceback = None
    sys.stdout.flush()
    sys.excepthook(type(error), error.with_traceback(traceback), traceback)


def _is_own(traceback: types.TracebackType) -> bool:
    return traceback.tb_frame.f_code.co_filename.startswith(os.path.dirname(__file__))

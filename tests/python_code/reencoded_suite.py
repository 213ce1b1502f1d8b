"""Run CPython's own tests with all code imported from here on decoded and encoded again, twice.

Usage: python -m tests.python_code.reencoded_suite test.test_json …   Exit status 1 if anything fails.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.machinery
import io
import sys
import types
import unittest
import warnings

from dyncomp.errors import Unsupported
from dyncomp.python_code.versions import decode, encode

ROUNDS = 2


def reencode(code, rounds=ROUNDS):
    """``code`` and all code objects in it, decoded and encoded ``rounds`` times."""
    try:
        canonical = decode(code)
        instructions = tuple(
            instr._replace(arg=reencode(instr.arg, rounds)) if type(instr.arg) is types.CodeType else instr
            for instr in canonical.instructions
        )
        code = encode(dataclasses.replace(canonical, instructions=instructions))
        for _ in range(rounds - 1):
            code = encode(decode(code))
    except Unsupported:
        pass
    return code


def install() -> None:
    """Make every later import of a source module (but dyncomp's) go through :func:`reencode`."""
    loader = importlib.machinery.SourceFileLoader
    original = loader.get_code

    def get_code(self, fullname):
        code = original(self, fullname)
        return code if fullname.startswith("dyncomp") else reencode(code)

    loader.get_code = get_code


def main(names) -> int:
    install()
    warnings.simplefilter("ignore")
    failed = 0
    for name in names:
        library = name.removeprefix("test.test_")
        for loaded in [m for m in sys.modules if m == library or m.startswith(library + ".")]:
            if library in ("json", "textwrap", "fractions", "statistics", "heapq", "contextlib", "copy"):
                del sys.modules[loaded]
        suite = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(name))
        report = io.StringIO()
        result = unittest.TextTestRunner(stream=report, verbosity=0).run(suite)
        print(name, result.testsRun, len(result.failures), len(result.errors), flush=True)
        if not result.wasSuccessful():
            failed += 1
            print(report.getvalue())
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

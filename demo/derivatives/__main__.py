"""``python -m demo.derivatives NAME ...``: examples of derivatives, each with a picture.

digits: networks for handwritten digits, trained; equation: the constants of a differential equation, fitted;
process: a Gaussian process of the greatest likelihood.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from pathlib import Path

from rich.console import Console

EXAMPLES = ("digits", "equation", "process")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m demo.derivatives", description=__doc__)
    parser.add_argument("names", nargs="+", choices=EXAMPLES, metavar="NAME", help=", ".join(EXAMPLES))
    parser.add_argument("--quick", action="store_true", help="a small form: figures say nothing")
    parser.add_argument("--pictures", type=Path, default=Path("pictures"), help="folder for the pictures")
    options = parser.parse_args(arguments)
    console = Console() if sys.stdout.isatty() else Console(width=120)
    folder = options.pictures
    if importlib.util.find_spec("matplotlib") is None:
        console.print("There will be no pictures: matplotlib is not installed.", style="yellow")
        folder = None
    for name in options.names:
        importlib.import_module(f"{__package__}.{name}").run(console, folder, options.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

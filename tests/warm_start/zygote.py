"""Fresh processes for the price of a fork: started with dyncomp imported and nothing compiled.

``python -m tests.warm_start.zygote`` reads requests, one JSON object a line: ``folder`` (put first on the
path), ``module`` (imported there; its ``main()`` gives what is compared), ``cache`` (``None``: plain Python).
It forks for each, and answers with the outcome and the counters of :func:`dyncomp.stats`.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import traceback
from typing import Any

import numpy as np


class Zygote:
    """The process to ask, from tests."""

    def __init__(self, *imports: str) -> None:
        environ = {
            **os.environ,
            "DYNCOMP_WARM_START": "1",
            "DYNCOMP_STRICT": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, "-m", "tests.warm_start.zygote", *imports]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
        )

    def run(self, folder: Any, cache: Any, module: str = "program") -> dict[str, Any]:
        """``{"outcome": …, "stats": …}`` of a fresh process."""
        assert self.process.stdin is not None and self.process.stdout is not None
        request = {"folder": str(folder), "module": module, "cache": None if cache is None else str(cache)}
        print(json.dumps(request), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        found = json.loads(answer)
        assert isinstance(found, dict)
        return found

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    import dyncomp

    if request["cache"] is None:
        dyncomp.set_stance("force_eager")
    else:
        os.environ["DYNCOMP_CACHE_DIR"] = request["cache"]
    sys.path.insert(0, request["folder"])
    try:
        outcome = described(importlib.import_module(request["module"]).main())
    except Exception as error:
        outcome = [type(error).__name__, str(error), traceback.format_exc() if request["cache"] else ""][:2]
    stats = dyncomp.stats()
    kept = ("from_disk", "not_stored", "graphs", "frames_captured", "internal_errors", "fallbacks")
    return {"outcome": outcome, "stats": {name: stats[name] for name in kept}}


def described(value: Any) -> Any:
    """A result as JSON: arrays by their dtype, shape and digits."""
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(described, value)]
    if isinstance(value, dict):
        return {repr(key): described(item) for key, item in value.items()}
    if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
        return described(value.detach().numpy())
    if isinstance(value, (np.ndarray, np.generic)):
        with np.printoptions(precision=9, floatmode="maxprec"):
            digits = np.array2string(np.asarray(value), threshold=10**6)
        return [type(value).__name__, str(value.dtype), list(value.shape), digits]
    return repr(value)


def main() -> None:
    for name in ("numpy", "dyncomp", *sys.argv[1:]):
        importlib.import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            os.dup2(2, 1)  # what the program prints is no answer
            with os.fdopen(writer, "w") as out:
                json.dump(_answer(request), out)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as got:
            answer = got.read()
        os.waitpid(child, 0)
        print(answer or json.dumps({"outcome": "the process died", "stats": {}}), flush=True)


if __name__ == "__main__":
    main()

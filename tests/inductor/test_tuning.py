"""``mode="max-autotune"``: what is measured is shown, bounded in time, and kept for equal graphs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dyncomp
from dyncomp.inductor import autotune, progress
from dyncomp.inductor.choices import Choices, choices_in, key_of, machine_name


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("DYNCOMP_CACHE_DIR", str(tmp_path / "cache"))
    choices_in.cache_clear()
    yield
    choices_in.cache_clear()


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The budgets of measurements; each next variant is found to take half of the time."""
    budgets: list[float] = []

    def measure(call: Any, arguments: Any, budget: float) -> float:
        call(*arguments)
        budgets.append(budget)
        return 1.0 / 2 ** len(budgets)

    monkeypatch.setattr(autotune, "_time", measure)
    monkeypatch.setattr(autotune, "VARIANTS", (("-O1",), ("-O3",)))
    return budgets


def scaled(x: Any) -> Any:
    return x * 3.0 + 1.0


X = np.arange(1000.0)


def tuned(**options: Any) -> Any:
    return dyncomp.compile(scaled, mode="max-autotune", options=options)(X)


def choices(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in folder.glob("cache/choices/*.json")]


def test_what_was_found_is_kept(measured: list[float], tmp_path: Path) -> None:
    np.testing.assert_array_equal(tuned(), scaled(X))
    count = len(measured)
    assert count >= 3
    (kept,) = choices(tmp_path)
    assert kept["best"] != "default" and len(kept["milliseconds"]) == count
    tuned()
    choices_in.cache_clear()  # as in another process
    np.testing.assert_array_equal(tuned(), scaled(X))
    assert len(measured) == count
    dyncomp.compile(scaled, mode="max-autotune")(X[:500])
    assert len(measured) == 2 * count  # other sizes may like another variant


def test_no_time_is_left(measured: list[float], tmp_path: Path) -> None:
    np.testing.assert_array_equal(tuned(tuning_seconds=0.0), scaled(X))
    assert measured == [0.0]
    assert choices(tmp_path)[0]["best"] == "default"


def test_noise_changes_nothing(
    measured: list[float], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    times = iter([1.0, 0.98, 0.99, 0.98, 0.98])
    monkeypatch.setattr(autotune, "_time", lambda *given: next(times))
    tuned()
    assert choices(tmp_path)[0]["best"] == "default"


def test_a_damaged_choice_is_made_again(tmp_path: Path) -> None:
    folder, names = tmp_path / "kept", ["default", "other"]
    assert Choices(folder).put("k", names, 1, [2.0, float("inf")]) == 1
    assert Choices(folder).get("k", names) == 1
    assert Choices(folder).get("k", ["default"]) is None
    (folder / "k.json").write_text("{")
    assert Choices(folder).get("k", names) is None
    assert key_of(["a", "b"]) != key_of(["ab"])
    assert machine_name()


@pytest.mark.parametrize("kind", ["rich", "terminal", "file"])
def test_progress_is_shown(kind: str, measured: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    if kind == "rich":
        pytest.importorskip("rich")
    else:
        monkeypatch.setattr(progress, "_rich_bar", lambda: None)
    monkeypatch.setattr(progress, "_is_terminal", lambda: kind != "file")
    tuned(progress="on" if kind == "file" else "auto")
    shown = capsys.readouterr()
    assert "tuning scaled" in shown.err and not shown.out
    assert ("\x1b" in shown.err) == (kind != "file")


@pytest.mark.parametrize("when", ["off", "auto"])
def test_no_bar_is_shown(when: str, measured: Any, capsys: Any) -> None:
    tuned(progress=when)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    with progress.Progress("tuning", 2, "auto") as bar:
        bar.step("one")
    assert not bar.shown


def test_options() -> None:
    with pytest.raises(ValueError, match="progress must be one of auto, on, off"):
        dyncomp.compile(scaled, options={"progress": "maybe"})
    with pytest.raises(ValueError, match="must not be negative"):
        dyncomp.compile(scaled, options={"tuning_seconds": -1.0})

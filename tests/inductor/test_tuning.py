"""``mode="max-autotune"``: what is measured is shown, bounded in time, and kept for equal graphs."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dyncomp
from dyncomp.inductor import compile
from dyncomp.inductor.tuning import autotune, forms, progress, sites, tile_search, tilings, timing
from dyncomp.inductor.tuning.choices import Choices, choices_in, key_of, machine_name


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("DYNCOMP_CACHE_DIR", str(tmp_path / "cache"))
    choices_in.cache_clear()
    yield
    choices_in.cache_clear()


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds allowed for each pair of forms; the second one is always found to take half of the time."""
    allowed: list[float] = []

    def measure(first: Any, second: Any, arguments: Any, seconds: float, **how: Any) -> Any:
        first(*arguments)
        second(*arguments)
        allowed.append(seconds)
        return [1.0], [0.5]

    monkeypatch.setattr(autotune, "in_turn", measure)
    monkeypatch.setattr(sites, "in_turn", measure)
    monkeypatch.setattr(tile_search, "in_turn", lambda first, second, *rest: ([1.0], [0.5]))
    builds = {name: autotune.BUILDS[name] for name in ("-O3", "one thread")}
    monkeypatch.setattr(autotune, "BUILDS", builds)
    return allowed


def scaled(x: Any) -> Any:
    return x * 3.0 + 1.0


X = np.arange(1000.0)
EVERY_BUILD = dict(autotune.BUILDS)
PATIENT = {"tuning_seconds": 600.0}  # however busy the machine is


def tuned(**options: Any) -> Any:
    return dyncomp.compile(scaled, mode="max-autotune", options={**PATIENT, **options})(X)


def choices(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in folder.glob("cache/choices/*.json")]


def test_what_was_found_is_kept(measured: list[float], tmp_path: Path) -> None:
    np.testing.assert_array_equal(tuned(), scaled(X))
    count = len(measured)
    assert count >= 2
    (kept,) = choices(tmp_path)
    assert kept["best"] != "default"
    assert len(kept["milliseconds"]) == count  # one of them is measured once more in the end
    tuned()
    choices_in.cache_clear()  # as in another process
    np.testing.assert_array_equal(tuned(), scaled(X))
    assert len(measured) == count
    dyncomp.compile(scaled, mode="max-autotune", options=PATIENT)(X[:500])
    assert len(measured) == 2 * count  # other sizes may like another form


@pytest.mark.parametrize("fault", ("link", "pipe", "open", "open folder"))
def test_choices_of_others_are_not_taken(fault: str, measured: list[float], tmp_path: Path) -> None:
    tuned()
    count = len(measured)
    (path,) = (tmp_path / "cache" / "choices").glob("*.json")
    if fault == "link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    elif fault == "pipe":
        path.unlink()
        os.mkfifo(path)
    else:
        (path if fault == "open" else path.parent).chmod(0o777)
    choices_in.cache_clear()  # as in another process
    np.testing.assert_array_equal(tuned(), scaled(X))
    assert len(measured) == 2 * count
    assert path.is_file() and not path.is_symlink()  # written anew, or left alone


def test_no_time_is_left(measured: list[float], tmp_path: Path) -> None:
    np.testing.assert_array_equal(tuned(tuning_seconds=0.0), scaled(X))
    assert measured == []
    assert choices(tmp_path) == []


def test_noise_changes_nothing(
    measured: list[float], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(autotune, "in_turn", lambda *given, **how: ([1.0, 1.0, 1.0], [0.98, 0.9, 0.99]))
    tuned()
    assert choices(tmp_path)[0]["best"] == "default"


def test_what_is_slower_the_second_time_is_not_taken(
    measured: list[float], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answers = iter([([1.0], [0.5]), ([0.5], [0.5])])  # on one thread it is the same code
    monkeypatch.setattr(autotune, "in_turn", lambda *given, **how: next(answers))
    tuned()
    assert choices(tmp_path)[0]["best"] == "default"


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ v


def gelu_linear(x: Any, w: Any, b: Any) -> Any:
    return np.tanh(x @ w + b)


RNG = np.random.default_rng(0)
Q, K, V = (RNG.normal(size=(48, 40)).astype(np.float32) for _ in range(3))


@pytest.mark.parametrize("program, arguments", [(attention, (Q, K, V)), (gelu_linear, (Q, K.T, V[:, 0]))])
def test_every_form_computes_the_same(
    program: Any, arguments: Any, measured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[forms.Form] = []
    make = compile.Maker.make

    def compared(maker: Any, form: forms.Form) -> Any:
        made = make(maker, form)
        if maker.graph.name == program.__name__:
            seen.append(form)
            np.testing.assert_allclose(made.call(*arguments), program(*arguments), rtol=2e-5, atol=1e-6)
        return made

    monkeypatch.setattr(compile.Maker, "make", compared)
    report = dyncomp.explain(program, mode="max-autotune", options=PATIENT)(*arguments)
    np.testing.assert_allclose(report.result, program(*arguments), rtol=2e-5, atol=1e-6)
    assert {form.joined for form in seen} >= {forms.ALL, forms.NOTHING}
    assert any(form.library for form in seen)
    assert "measured to be the fastest" in report.details()


def test_sites_are_shared_between_graphs(measured: list[float], tmp_path: Path) -> None:
    def twice(x: Any, w: Any) -> Any:
        return (x @ w) @ w

    def again(x: Any, w: Any) -> Any:
        return np.exp(x @ w) + 1.0

    w = RNG.normal(size=(64, 64))
    dyncomp.compile(twice, mode="max-autotune", options=PATIENT)(w + 1.0, w)
    kept = [c for c in choices(tmp_path) if c["best"] == "library"]
    assert len(kept) == 1
    before = len(measured)
    dyncomp.compile(again, mode="max-autotune", options=PATIENT)(w + 1.0, w)
    assert len([c for c in choices(tmp_path) if c["best"] == "library"]) == 1
    assert len(measured) > before


def test_arguments_are_written_once(measured: list[float]) -> None:
    def grow(x: Any) -> Any:
        x += 1.0
        return x.sum()

    mine = np.zeros(100)
    assert dyncomp.compile(grow, mode="max-autotune", options=PATIENT)(mine) == 100.0
    np.testing.assert_array_equal(mine, 1.0)


def test_a_graph_that_raises(measured: list[float]) -> None:
    compiled = dyncomp.compile(lambda x, i: x[i] * 2.0, mode="max-autotune", options=PATIENT)
    with pytest.raises(IndexError):
        compiled(X, np.array([1, 5000]))
    np.testing.assert_array_equal(compiled(X, np.array([1, 5])), X[[1, 5]] * 2.0)


def test_tensors(measured: list[float], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(autotune, "joins_of", lambda items: ())
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Conv2d(4, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3)).eval()
    x = torch.randn(2, 4, 12, 12)
    with torch.no_grad():
        report = dyncomp.explain(model, mode="max-autotune", options=PATIENT)(x)
        torch.testing.assert_close(report.result, model(x), rtol=1e-4, atol=1e-4)
    assert measured
    assert len([c for c in choices(tmp_path) if c["best"] == "library"]) == 2
    assert "2 products or convolutions by a library" in report.details()


# -- tilings and loops ------------------------------------------------------------------------
@pytest.fixture
def own_is_faster(measured: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the runtime and a library the runtime is."""
    monkeypatch.setattr(sites, "in_turn", lambda *given: ([0.5], [1.0]))


def test_products_are_cut_as_measured(
    own_is_faster: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sources: list[str] = []
    make = compile.Maker.make

    def remember(maker: Any, form: forms.Form) -> Any:
        found = make(maker, form)
        sources.append(found.source)
        return found

    monkeypatch.setattr(compile.Maker, "make", remember)
    x, w, b = RNG.normal(size=(200, 300)), RNG.normal(size=(300, 400)), RNG.normal(size=400)
    default = dyncomp.compile(gelu_linear)(x, w, b)
    for _ in range(2):
        report = dyncomp.explain(gelu_linear, mode="max-autotune", options=PATIENT)(x, w, b)
        np.testing.assert_array_equal(report.result, default)
        assert "1 products or convolutions cut as measured" in report.details()
        assert "gemm.block_terms = 192;" in sources[-1]
        choices_in.cache_clear()  # as in another process
    kept = [c["best"] for c in choices(tmp_path)]
    assert "3 vectors, 8 panels, 96 rows, 192 terms" in kept


def test_convolutions_are_cut_as_measured(own_is_faster: None, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Conv2d(4, 20, 3).eval()
    x = torch.randn(2, 4, 22, 22)
    with torch.no_grad():
        found = dyncomp.compile(model, mode="max-autotune", options=PATIENT)(x)
        torch.testing.assert_close(found, model(x), rtol=1e-4, atol=1e-4)
    assert any("way" in c["best"] for c in choices(tmp_path))


def test_no_tiling_is_faster(measured: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tile_search, "in_turn", lambda *given: ([1.0, 1.0], [0.99, 1.01]))
    monkeypatch.setattr(sites, "in_turn", lambda *given: ([0.5], [1.0]))
    x = RNG.normal(size=(60, 60))
    report = dyncomp.explain(lambda x: x @ x, mode="max-autotune", options=PATIENT)(x)
    np.testing.assert_allclose(report.result, x @ x)
    assert "cut as measured" not in report.details()
    assert "usual" in [c["best"] for c in choices(tmp_path)]


@pytest.mark.parametrize("text", ["usual", "2 vectors", "1 panels, 40 rows, 7 terms", "3 way"])
def test_texts_of_tilings(text: str) -> None:
    tiling = tilings.parse(text)
    assert tiling is not None
    assert tiling.describe() == text
    assert tilings.upon(tiling, tilings.Tiling(panels=9)).panels == 9


@pytest.mark.parametrize(
    "text", ["", "library", "2", "vectors 2", "-1 rows", "2 knots", "1 rows,2 terms", "9" * 30 + " rows"]
)
def test_damaged_texts_of_tilings(text: str) -> None:
    assert tilings.parse(text) is None


def transposed(x: Any, y: Any) -> Any:
    return x.T.copy(), x.T + y


def columns(x: Any, y: Any) -> Any:
    return (x * 2).sum(axis=0), np.abs(y).max(axis=1), np.sqrt(x * x + 1)


def waves(x: Any, y: Any) -> Any:
    return np.sin(x) * np.exp(-np.abs(x)), y.transpose(1, 0)[::2] * x[::2]


@pytest.mark.parametrize("program", [transposed, columns, waves])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_loops_written_in_any_way(
    program: Any, dtype: str, measured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    knobs = {name: build for name, build in EVERY_BUILD.items() if build(forms.DEFAULT).knobs != forms.USUAL}
    monkeypatch.setattr(autotune, "BUILDS", knobs)
    x, y = (RNG.normal(size=(260, 270)).astype(dtype) for _ in range(2))
    y = np.ascontiguousarray(y.T)
    x[3, 4], y[5, 6] = np.nan, np.inf
    usual = dyncomp.compile(program)(x, y)
    made: list[str] = []
    make = compile.Maker.make

    def compared(maker: Any, form: forms.Form) -> Any:
        found = make(maker, form)
        if found.source not in made:
            made.append(found.source)
            for one, other in zip(found.call(x, y), usual):
                np.testing.assert_array_equal(one, other)
        return found

    monkeypatch.setattr(compile.Maker, "make", compared)
    report = dyncomp.explain(program, mode="max-autotune", options=PATIENT)(x, y)
    assert len(made) >= 2
    assert "loops with" in report.details()


def test_stages_are_tuned(measured: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tuned_graphs: list[bool] = []
    search = autotune.Tuner._search

    def remember(tuner: autotune.Tuner, *given: Any) -> str:
        tuned_graphs.append(True)
        return search(tuner, *given)

    monkeypatch.setattr(autotune.Tuner, "_search", remember)

    def positive(x: Any) -> Any:
        return np.sqrt(np.nonzero(x > 3.0)[0] * 2.0)

    compiled = dyncomp.compile(positive, mode="max-autotune", options=PATIENT)
    np.testing.assert_array_equal(compiled(X), positive(X))
    assert len(tuned_graphs) == 2
    np.testing.assert_array_equal(compiled(X[:50]), positive(X[:50]))


@pytest.mark.parametrize("alone, threads", [(True, 1), (False, 1), (True, 2)])
def test_whose_time_counts(alone: bool, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "num_threads", lambda: threads)

    def wait() -> None:
        time.sleep(0.002)

    found, _ = timing.in_turn(wait, wait, (), 0.0, alone=alone)
    assert (min(found) < 0.001) == (alone and threads == 1)


def test_rounds_in_turn() -> None:
    order: list[str] = []
    found = timing.in_turn(lambda: order.append("a"), lambda: order.append("b"), (), 0.0)
    assert len(found[0]) == len(found[1]) == timing.LEAST_ROUNDS
    assert order[:4] == ["a", "a", "b", "b"]
    assert timing.is_faster([0.5, 0.5, 2.0], [1.0, 1.0, 1.0])
    assert not timing.is_faster([0.99, 0.99, 0.5], [1.0, 1.0, 1.0])


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


def test_functions_are_tried_inlined(monkeypatch: pytest.MonkeyPatch) -> None:
    usual: list[str] = []
    inlined: list[str] = []
    fastest, make = autotune.Tuner.fastest, autotune.Tuner._made

    def remember_usual(tuner: autotune.Tuner, default: forms.Made, examples: Any) -> forms.Made:
        usual.append(default.source)
        return fastest(tuner, default, examples)

    def remember_inlined(tuner: autotune.Tuner, form: forms.Form) -> forms.Made | None:
        made = make(tuner, form)
        if made is not None and form.inlined:
            inlined.append(made.source)
        return made

    monkeypatch.setattr(autotune.Tuner, "fastest", remember_usual)
    monkeypatch.setattr(autotune.Tuner, "_made", remember_inlined)
    x = np.linspace(-1.0, 1.0, 99)
    out = dyncomp.compile(lambda x: np.exp(np.sin(x)), mode="max-autotune")(x)
    np.testing.assert_allclose(out, np.exp(np.sin(x)), rtol=1e-15)
    assert "dcv_sin_f64" in usual[0]
    assert "dcv_" not in inlined[0]
    dyncomp.compile(lambda x: x * 2.0 + 1.0, mode="max-autotune")(x)
    assert inlined[-1] == usual[-1]

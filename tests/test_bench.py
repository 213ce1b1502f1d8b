"""What the bench keeps of a run, and what it says of it."""

from __future__ import annotations

import json

import pytest

from bench.__main__ import cases, known_to_fail, parse
from bench.report import Results, Table, write
from bench.worker import measure_micro


def answer(median: float, **more: object) -> dict[str, object]:
    return {"first": 1.0, "median": median, "quartiles": [median, median * 1.2], "calls": 7, **more}


@pytest.fixture
def results() -> Results:
    found = Results({"about": "python -m bench", "date": "today", "machine": "2 cores", "versions": ""})
    found.add("program", "heat", "numpy", 1, answer(8.0))
    found.add("program", "heat", "dyncomp", 1, answer(1.0))
    found.add("program", "heat", "numba", 1, answer(4.0))
    found.add("program", "life", "numpy", 1, answer(2.0))
    found.add("program", "life", "dyncomp", 1, answer(1.0))
    found.add("program", "life", "numba", 1, {"left_out": "TypingError: no"})
    found.add("program", "ising", "numpy", 1, answer(1.0))
    found.add("program", "ising", "dyncomp", 1, answer(1.0))
    found.add("program", "ising", "numba", 1, answer(0.001, wrong="another result"))
    return found


def test_ratios_are_of_programs_that_both_run_right(results):
    table = results.of("program", 1)
    assert table.both("dyncomp", "numba") == [4.0]
    assert table.both("dyncomp", "numpy") == [8.0, 2.0, 1.0]
    page = write(results)
    assert "- 1 thread, Numba: **4.00x over 1 programs**" in page
    assert "- 1 thread, NumPy: **2.52x over 3 programs** (1.00x to 8.00x; slower in 0)" in page
    assert "- life, Numba: TypingError: no" in page and "- ising, Numba: wrong: another result" in page
    assert "8000.00 ±10%" in page


def test_data_that_was_cut_off(results, tmp_path):
    path = tmp_path / "results.jsonl"
    lines = [json.dumps(results.about)]
    for (part, name, engine, threads), found in results.answers.items():
        lines.append(json.dumps({"part": part, "name": name, "engine": engine, "threads": threads, **found}))
    path.write_text("\n".join(lines) + '\n{"part": "program", "na', encoding="utf-8")
    again = Results.read(path)
    assert again.answers == results.answers and again.about == results.about


def test_what_cannot_run_is_not_tried_again(results):
    assert known_to_fail(results, "program", "life", "numba", 2) == "TypingError: no"
    assert known_to_fail(results, "program", "life", "numba-parallel", 1) == "TypingError: no"
    assert not known_to_fail(results, "program", "heat", "numba-parallel", 2)
    results.add("program", "heat", "torch", 1, {"left_out": "over 120 s"})
    assert not known_to_fail(results, "program", "heat", "torch", 2)


def test_cases():
    assert cases(parse(["heat", "gelu"])) == [("program", "heat"), ("micro", "gelu")]
    assert cases(parse(["heat", "--parts", "micro"])) == []
    assert {part for part, _ in cases(parse([]))} == {"program", "micro", "first", "compile"}


def test_a_measurement():
    found = measure_micro("column_sum", "numpy")
    low, high = found["quartiles"]
    assert low <= found["median"] <= high and found["calls"] >= 7 and not found["wrong"]
    assert Table({("column_sum", "numpy"): found}).median("column_sum", "numpy") == found["median"]


def test_the_picture_shows_what_the_pages_say():
    from bench.picture import PICTURE, figures

    drawn = PICTURE.read_text(encoding="utf-8")
    shown = [text for figure in figures() for text in (figure.label, figure.value)]
    assert "NumPy programs against Numba" in shown
    assert [text for text in shown if f">{text}<" not in drawn] == [], "python -m bench.picture"

"""Arrays without elements, among calls with others: nothing is read outside of them."""

from __future__ import annotations

import functools

import pytest

from tests.inductor.zero_sizes import CASES, SEQUENCES
from tests.inductor.zero_sizes_run import TOTAL, describe, run, sanitizing

pytest.importorskip("torch")
# Steps that share no factor with the number of sequences.
SAMPLE, SANITIZED = 293, 1009
PARTS = 8


@functools.cache
def sanitizers() -> dict[str, str]:
    try:
        return sanitizing()
    except (SystemExit, OSError) as error:
        pytest.skip(str(error))


def check(numbers: range, placement: str, environ: dict[str, str] | None = None) -> None:
    failed = [f"{describe(number)}: {text}" for number, text in run(numbers, placement, environ)]
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize("first, placement", [(0, "end"), (41, "begin")])
def test_beside_a_page_that_nobody_may_touch(first: int, placement: str) -> None:
    check(range(first, TOTAL, SAMPLE), placement)


def test_what_once_crashed() -> None:
    """The load of an array without elements did not name the empty axis, and was made before its loop."""
    text = "torch.sum(x[..., None] * torch.ones(6), 0)"
    first = CASES.index(("torch", text)) * len(SEQUENCES)
    check(range(first, first + len(SEQUENCES)), "end")


def test_with_the_address_sanitizer() -> None:
    check(range(7, TOTAL, SANITIZED), "alloc", sanitizers())


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("placement", ["end", "begin"])
def test_all_beside_a_page(placement: str, part: int) -> None:
    check(range(part, TOTAL, PARTS), placement)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
def test_all_with_the_address_sanitizer(part: int) -> None:
    check(range(part, TOTAL, PARTS), "alloc", sanitizers())

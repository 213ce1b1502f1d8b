"""Functions of torch that were calls of its routines: extremes with indices, rolls, shifts, sums by index."""

from __future__ import annotations

from typing import Any

import pytest

import dyncomp

torch = pytest.importorskip("torch")

NAN = float("nan")
X = torch.tensor([[1.0, 3.0, 3.0, NAN], [-2.0, -1.0, -1.0, -7.0], [0.0, 5.0, 2.0, 5.0]])
CUBE = torch.arange(60.0).reshape(3, 4, 5) % 7
IMAGE = torch.arange(120.0).reshape(1, 2, 6, 10).contiguous(memory_format=torch.channels_last)
INTS = torch.tensor([[-9, -1, 0, 7], [1 << 40, 3, -(1 << 50), 12]])
AT = torch.tensor([2, 0, 2, 1])

PROGRAMS: dict[str, tuple[Any, ...]] = {
    "max": (lambda x: x.max(1), X),
    "min_keepdim": (lambda x: torch.min(x, dim=0, keepdim=True), X),
    "max_axis": (lambda x: x.max(axis=-1), CUBE),
    "max_values": (lambda x: torch.max(x * 2.0, 1).values - 1.0, CUBE),
    "max_integers": (lambda x: x.max(1, True), INTS),
    "max_transposed": (lambda x: x.transpose(0, 2).min(1), CUBE),
    "max_bools": (lambda x: (x > 0).max(1), X),
    "max_of_two": (lambda x: torch.max(x, -x), X),
    "roll": (lambda x: x.roll(1, 1) + x, CUBE),
    "roll_back": (lambda x: torch.roll(x, shifts=(-2, 7), dims=(0, 2)), CUBE),
    "roll_flat": (lambda x: x.roll(3), CUBE),
    "roll_by_nothing": (lambda x: x.roll(4, 1), CUBE),
    "roll_image": (lambda x: x.roll(2, 3), IMAGE),
    "roll_twice": (lambda x: x.roll((1, 1), (1, 1)), CUBE),
    "shifts": (lambda x: (x >> 3) + (x << 2), INTS),
    "shifts_beyond": (lambda x: (x >> torch.tensor([1, 63, 64, -1])) - (x << 64), INTS),
    "shift_of_bytes": (lambda x: (x.to(torch.uint8) >> 1, x.to(torch.int8) << 3), INTS),
    "shift_by_number": (lambda x: 1 << (x & 7), INTS),
    "index_add": (lambda x: torch.zeros(3, 5).index_add(0, AT, x[0] * 2.0), CUBE),
    "index_add_inside": (lambda x: x.index_add(1, AT[:2], x[:, :2].relu()), CUBE),
    "index_add_factor": (lambda x: x.index_add(0, AT[:1], x[:1], alpha=2.0), CUBE),
    "index_add_half": (lambda x: x.half().index_add(0, AT, x.half()[[0, 1, 2, 0]]), CUBE),
}


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cosine_similarity(dim: int) -> None:
    a = torch.randn(4, 5, 6, dtype=torch.float64)
    b = torch.randn(5, 6, dtype=torch.float64) * 1e3
    a[1, 2] = 0.0
    b[3, 3] = NAN

    def program(x: Any, y: Any) -> Any:
        return torch.nn.functional.cosine_similarity(x, y, dim=dim) + torch.cosine_similarity(x, x, dim, 1e-3)

    report = dyncomp.explain(program)(a, b)
    torch.testing.assert_close(report.result, program(a, b), equal_nan=True)
    assert not report.breaks
    assert "routine_call" not in {node.op for node in report.graphs[0].nodes}


def parts(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_results(name: str) -> None:
    program, x = PROGRAMS[name]
    expected = program(x)
    report = dyncomp.explain(program)(x.clone(memory_format=torch.preserve_format))
    assert not report.breaks
    assert type(report.result) is type(expected)
    for mine, theirs in zip(parts(report.result), parts(expected), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0, equal_nan=True)
        assert mine.stride() == theirs.stride()


@pytest.mark.parametrize("name", ["max", "roll", "shifts", "index_add"])
def test_no_routine_is_called(name: str) -> None:
    program, x = PROGRAMS[name]
    (graph,) = dyncomp.explain(program)(x).graphs
    assert "routine_call" not in {node.op for node in graph.nodes}


def test_names_of_results() -> None:
    compiled = dyncomp.compile(lambda x: x.max(1))
    found = compiled(X)
    assert found.values is found[0]
    assert found.indices.tolist() == [3, 1, 1]


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.max(5),
        lambda x: x.roll((1, 2), (0,)),
        lambda x: x.float() >> 1.5,
        lambda x: x.index_add(0, torch.tensor([-1]), x[:1]),
        lambda x: x.index_add(0, torch.tensor([9]), x[:1]),
        lambda x: x.index_add(0, torch.tensor([1, 2]), x[:1]),
        lambda x: x[:0].max(0),
    ],
)
def test_errors_are_those_of_torch(program: Any) -> None:
    with pytest.raises(Exception) as plain:
        program(CUBE)
    with pytest.raises(type(plain.value)) as mine:
        dyncomp.compile(program)(CUBE.clone())
    assert str(mine.value) == str(plain.value)

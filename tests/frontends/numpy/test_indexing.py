"""Random subscripts, read and written, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dyncomp.errors import Unsupported

from .harness import check

SHAPES = ((5,), (3, 4), (2, 3, 4), (1, 3), (4, 1, 2), (2, 2, 2, 2), (0, 3), (2, 0, 4), (3, 0), ())
SETTINGS = settings(max_examples=150, deadline=None)


def _slices(size: int) -> st.SearchStrategy[slice]:
    bound = st.none() | st.integers(-size - 2, size + 2)
    step = st.none() | st.sampled_from([1, 2, 3, -1, -2])
    return st.builds(slice, bound, bound, step)


@st.composite
def basic_keys(draw: Any, shape: tuple[int, ...]) -> Any:
    count = draw(st.integers(0, len(shape)))
    parts: list[Any] = []
    for size in shape[:count]:
        choices = [_slices(size)]
        if size:
            choices.append(st.integers(-size, size - 1))
        parts.append(draw(st.one_of(choices)))
    for _ in range(draw(st.integers(0, 2))):
        parts.insert(draw(st.integers(0, len(parts))), None)
    if draw(st.booleans()):
        # an Ellipsis last keeps the count of indexed dimensions
        parts.append(Ellipsis)
    if len(parts) == 1 and draw(st.booleans()):
        return parts[0]
    return tuple(parts)


@st.composite
def fancy_keys(draw: Any, shape: tuple[int, ...]) -> tuple[Any, list[np.ndarray[Any, Any]]]:
    """A key with at least one integer array; arrays come as arguments, marked by ``Slot`` numbers."""
    common = draw(st.sampled_from([(), (1,), (3,), (2, 2), (2, 1)]))
    places = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=len(shape), unique=True))
    if any(shape[place] == 0 for place in places):
        common = draw(st.sampled_from([(0,), (2, 0), (0, 1)]))
    arrays: list[np.ndarray[Any, Any]] = []
    parts: list[Any] = []
    for axis, size in enumerate(shape):
        if axis in places:
            seed = draw(st.integers(0, 1000))
            index = np.random.default_rng(seed).integers(-size, max(size, 1), common)
            parts.append(("array", len(arrays)))
            arrays.append(np.asarray(index))
        elif not size or draw(st.booleans()):
            parts.append(draw(_slices(size)))
        else:
            parts.append(draw(st.integers(-size, size - 1)))
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), None)
    return tuple(parts), arrays


def _resolved(key: Any, arrays: Any) -> Any:
    return tuple(arrays[p[1]] if isinstance(p, tuple) else p for p in key)


def _base(shape: tuple[int, ...], layout: str) -> np.ndarray[Any, Any]:
    x = np.arange(float(np.prod(shape))).reshape(shape)
    if layout == "F":
        return np.asfortranarray(x)
    if layout == "view" and shape:
        wide = np.arange(float(np.prod(shape)) * 2).reshape((*shape[:-1], shape[-1] * 2))
        return wide[..., ::2]
    return x


LAYOUTS = st.sampled_from(["C", "F", "view"])


@SETTINGS
@given(st.data())
def test_basic_read(data: Any) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    key = data.draw(basic_keys(shape))
    check(lambda np, x: x[key], _base(shape, data.draw(LAYOUTS)))


@SETTINGS
@given(st.data())
def test_basic_write(data: Any) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    key = data.draw(basic_keys(shape))
    x = _base(shape, data.draw(LAYOUTS))
    target = x[key]
    value: Any = 7.5
    if np.ndim(target) and data.draw(st.booleans()):
        value = np.arange(float(target.size)).reshape(target.shape)
        if data.draw(st.booleans()):
            value = value[:1]

    def program(np: Any, x: Any, value: Any) -> Any:
        x[key] = value
        return x

    check(program, x, value)


@SETTINGS
@given(st.data())
def test_in_place_arithmetic(data: Any) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    key = data.draw(basic_keys(shape))

    def program(np: Any, x: Any) -> Any:
        x[key] += 1
        x[key] *= x[key]
        return x

    check(program, _base(shape, data.draw(LAYOUTS)))


@SETTINGS
@given(st.data())
def test_chain_of_views(data: Any) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    x = _base(shape, data.draw(LAYOUTS))
    first = data.draw(basic_keys(shape))
    middle = x[first]
    if not isinstance(middle, np.ndarray):
        return
    second = data.draw(basic_keys(middle.shape))

    def program(np: Any, x: Any) -> Any:
        v = x[first]
        w = v.T[...]
        w += 1
        return v[second], v

    check(program, x)


@SETTINGS
@given(st.data())
def test_fancy_read(data: Any) -> None:
    shape = data.draw(st.sampled_from([s for s in SHAPES if s]))
    key, arrays = data.draw(fancy_keys(shape))
    check(lambda np, x, *a: x[_resolved(key, a)], _base(shape, data.draw(LAYOUTS)), *arrays)


@SETTINGS
@given(st.data())
def test_fancy_write(data: Any) -> None:
    shape = data.draw(st.sampled_from([s for s in SHAPES if s]))
    key, arrays = data.draw(fancy_keys(shape))
    x = _base(shape, data.draw(LAYOUTS))
    target = x[_resolved(key, arrays)]
    value: Any = -1.0
    if np.ndim(target) and data.draw(st.booleans()):
        value = np.arange(float(target.size)).reshape(target.shape)

    def program(np: Any, x: Any, value: Any, *a: Any) -> Any:
        x[_resolved(key, a)] = value
        return x

    check(program, x, value, *arrays)


@SETTINGS
@given(st.data())
def test_mask_write(data: Any) -> None:
    shape = data.draw(st.sampled_from([s for s in SHAPES if s]))
    covered = data.draw(st.integers(1, len(shape)))
    first = data.draw(st.integers(0, len(shape) - covered))
    seed = data.draw(st.integers(0, 99))
    mask = np.random.default_rng(seed).random(shape[first : first + covered]) > 0.5
    before = tuple(data.draw(_slices(size)) for size in shape[:first])
    x = _base(shape, data.draw(LAYOUTS))
    rest = shape[first + covered :]
    value: Any = 5.0
    if rest and data.draw(st.booleans()):
        value = np.arange(float(np.prod(rest))).reshape(rest)

    def program(np: Any, x: Any, mask: Any, value: Any) -> Any:
        x[(*before, mask)] = value
        return x

    check(program, x, mask, value)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (lambda np, x, b: np.sort(x[b]), "depends on the data"),
        (lambda np, x, b: x[7], "out of bounds"),
        (lambda np, x, b: x[-4], "out of bounds"),
        (lambda np, x, b: x[0, 0, 0], "too many indices"),
        (lambda np, x, b: x[..., ...], "ellipsis"),
        (lambda np, x, b: x[1.5], "float as an index"),
        (lambda np, x, b: x["a"], "str as an index"),
        (lambda np, x, b: x[True], "boolean scalar"),
        (lambda np, x, b: x[b[0]], "did not match"),
        (lambda np, x, b: x.__setitem__(b[0], 1), "did not match"),
        (lambda np, x, b: x.__setitem__(0, np.arange(3.0)), "broadcast"),
        (lambda np, x, b: np.broadcast_to(x, (2, 3, 4)).__setitem__(0, 1), "read-only"),
        (lambda np, x, b: np.diagonal(x).__setitem__(0, 1), "read-only"),
        (lambda np, x, b: x[0, 0].__setitem__((), 1), "not an array"),
        (lambda np, x, b: x[:, :, None].reshape(5), "reshape"),
    ],
)
def test_refused(program: Any, reason: str) -> None:
    x = np.arange(12.0).reshape(3, 4)
    with pytest.raises(Unsupported, match=reason):
        check(program, x, x > 4)


def test_read_only_arguments() -> None:
    x = np.arange(3.0)
    x.flags.writeable = False

    def program(np: Any, x: Any) -> None:
        x[0] = 1

    with pytest.raises(Unsupported, match="read-only"):
        check(program, x)


def test_out_of_bounds_is_an_index_error() -> None:
    with pytest.raises(IndexError):
        check(lambda np, x, i: x[i], np.arange(3.0), np.array([0, 3]))


def test_real_part_is_not_read_after_a_write() -> None:
    """``.real`` of a complex array is a view that the graph cannot express."""
    z = np.array([1 + 2j, 3.0])

    def program(np: Any, z: Any) -> Any:
        part = z[:1].real
        z[0] = 5
        return part + 1

    with pytest.raises(Unsupported, match="real"):
        check(program, z)

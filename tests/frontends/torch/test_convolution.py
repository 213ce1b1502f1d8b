"""Convolutions: values, shapes, memory formats; whole small networks as one graph."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402
from dyncomp.runtime import num_threads, set_num_threads  # noqa: E402

F = torch.nn.functional
nn = torch.nn


@pytest.fixture(autouse=True)
def no_grad() -> Any:
    with torch.no_grad():
        yield


def last(x: Any) -> Any:
    return x.to(memory_format=torch.channels_last)


def randn(*shape: int, dtype: Any = torch.float32) -> Any:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator, dtype=dtype)


def check(function: Any, *args: Any, backend: str = "eager", tolerance: float = 2e-6) -> None:
    """Compiled without a break, with the same values to rounding, and the same strides."""
    compiled = dyncomp.compile(function, backend=backend, fullgraph=True)
    wanted, got = function(*args), compiled(*args)
    assert type(got) is type(wanted)
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    assert got.stride() == wanted.stride()
    scale = float(wanted.double().abs().max()) if wanted.numel() else 1.0
    assert float((got.double() - wanted.double()).abs().max()) <= tolerance * max(scale, 1.0) * 16


OPTIONS = [
    {},
    {"stride": 2, "padding": 1},
    {"stride": (2, 1), "padding": (0, 2), "dilation": (1, 2)},
    {"padding": "same"},
    {"padding": "valid", "stride": 3},
    {"groups": 3, "padding": [1, 1]},
]


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("formats", list(itertools.product((False, True), repeat=2)), ids=str)
def test_two_dimensions(backend: str, options: dict[str, Any], formats: tuple[bool, bool]) -> None:
    x, w = randn(2, 6, 11, 12), randn(9, 6 // options.get("groups", 1), 3, 3)
    x, w = (last(t) if f else t for t, f in zip((x, w), formats))

    def plain(x: Any, w: Any) -> Any:
        return F.conv2d(x, w, **options)

    def surrounded(x: Any, w: Any, b: Any, r: Any) -> Any:
        return torch.relu(F.conv2d(x * 2, w, b, **options)) + r

    check(plain, x, w, backend=backend)
    shape = plain(x, w).shape
    check(surrounded, x, w, randn(9), randn(*shape), backend=backend)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_dimensions_and_dtypes(backend: str, rank: int, dtype: Any) -> None:
    function = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    back = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
    tolerance = 4e-3 if dtype is torch.bfloat16 else 2e-6
    sizes, kernel = (7, 8, 9)[:rank], (3, 3, 2)[:rank]
    x, w, b = randn(2, 4, *sizes, dtype=dtype), randn(6, 4, *kernel, dtype=dtype), randn(6, dtype=dtype)

    def forward(x: Any, w: Any, b: Any) -> Any:
        return function(x, w, b, stride=2, padding=1)

    def alone(x: Any, w: Any) -> Any:
        return function(x[0], w)

    def backward(x: Any, w: Any, b: Any) -> Any:
        return back(x, w, b, stride=2, padding=1, output_padding=1, groups=2)

    check(forward, x, w, b, backend=backend, tolerance=tolerance)
    check(alone, x, w, backend=backend, tolerance=tolerance)
    check(backward, x, randn(4, 3, *kernel, dtype=dtype), b, backend=backend, tolerance=tolerance)


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"),
    [
        ((3, 3, 3), 1, 1, 1),
        ((1, 3, 3), 1, (0, 1, 1), 1),
        ((3, 1, 1), 1, (1, 0, 0), 1),
        ((2, 3, 4), (2, 1, 3), (3, 0, 2), (2, 1, 1)),
        ((2, 4, 4), (2, 4, 4), 0, 1),
    ],
)
def test_volumes_are_images_of_slices(kernel: Any, stride: Any, padding: Any, dilation: Any) -> None:
    w, b = randn(20, 6, *kernel), randn(20)

    def function(x: Any, w: Any, b: Any) -> Any:
        return torch.relu(F.conv3d(x, w, b, stride=stride, padding=padding, dilation=dilation))

    for x in (randn(1, 6, 7, 14, 13), randn(3, 6, 5, 9, 8), randn(6, 7, 8, 9)):
        check(function, x, w, b, backend="inductor")
    assert " product " in dyncomp.explain(function)(randn(1, 6, 7, 14, 13), w, b).details()


@pytest.mark.parametrize("sizes", [(28, 30), (29, 33)])
@pytest.mark.parametrize(("dilation", "padding"), [(2, 2), ((4, 2), (4, 0)), (2, 3), (3, 6)])
def test_kernels_with_gaps(sizes: Any, dilation: Any, padding: Any) -> None:
    x, w, b = randn(2, 32, *sizes), randn(40, 32, 3, 3) / 10, randn(40)

    def function(x: Any, w: Any, b: Any) -> Any:
        return torch.relu(F.conv2d(x, w, b, padding=padding, dilation=dilation))

    for backend in ("eager", "inductor"):
        check(function, x, w, b, backend=backend)
        check(function, x[0, :, :, 1:], w, b, backend=backend)
    x[0, 3, 7, 8], x[1, 4, 20, 21] = float("inf"), float("nan")
    found, expected = dyncomp.compile(function)(x, w, b), function(x, w, b)
    assert torch.equal(found.isnan(), expected.isnan())
    torch.testing.assert_close(found, expected, equal_nan=True, rtol=1e-4, atol=1e-4)


def test_views_and_odd_memory() -> None:
    x, w = randn(2, 8, 12, 14), randn(4, 4, 3, 3)

    def permuted(x: Any, w: Any) -> Any:
        return F.conv2d(x.permute(0, 1, 3, 2)[:, ::2, 1:], w)

    def one_channel(x: Any, w: Any) -> Any:
        return F.conv2d(x[:, :1], w[:1, :1])

    def permuted_line(x: Any, w: Any) -> Any:
        return F.conv1d(x[0].permute(1, 2, 0)[:, :12], w[0].permute(1, 2, 0)[..., :3].repeat(1, 4, 1))

    for backend in ("eager", "inductor"):
        for a, b in itertools.product((x, last(x)), (w, last(w))):
            check(permuted, a, b, backend=backend)
            check(one_channel, a, b, backend=backend)
    check(permuted_line, x, w)


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("groups", [1, 2])
def test_results_of_one_point(size: int, groups: int) -> None:
    """Squeeze and excitation, and kernels as large as the image."""

    def function(x: Any, w: Any, b: Any) -> Any:
        return F.silu(F.conv2d(x * 2, w, b, groups=groups) + 1) * 3

    for count in (1, 3):
        x, w = randn(count, 6, size, size), randn(8, 6 // groups, size, size)
        check(function, x, w, randn(8), backend="inductor")
        check(function, x, w[:2], randn(2), backend="inductor")
        assert dyncomp.explain(function)(x, w, randn(8)).graphs


@pytest.mark.parametrize(("stride", "groups"), [(1, 1), (2, 1), (1, 2)])
def test_images_larger_than_the_cache(stride: int, groups: int) -> None:
    x, w, b = randn(2, 40, 70, 90), randn(18, 40 // groups, 3, 3) / 20, randn(18)
    size = (2, 18, 70 // stride, 90 // stride)
    residual = randn(*size)

    def finished(x: Any, w: Any, b: Any, r: Any) -> Any:
        return torch.relu(F.conv2d(x, w, b, stride=stride, padding=1, groups=groups) + r)

    def kept(x: Any, w: Any, b: Any, r: Any) -> Any:
        y = F.conv2d(x, w, b, stride=stride, padding=1, groups=groups)
        return torch.cat([y, y * r])

    for function in (finished, kept):
        check(function, x, w, b, residual, backend="inductor", tolerance=1e-5)


@pytest.mark.parametrize("formats", [(True, True), (False, True), (True, False)], ids=str)
@pytest.mark.parametrize(
    ("channels", "kernels", "size", "groups", "stride"),
    [
        (20, 70, 3, 1, 1),
        (3, 33, 5, 1, 2),
        (24, 40, 1, 1, 1),
        (40, 34, 3, 2, 1),
        (21, 21, 3, 21, 2),
        (9, 18, 3, 9, 1),
    ],
)
def test_channels_last(
    channels: int, kernels: int, size: int, groups: int, stride: int, formats: tuple[bool, bool]
) -> None:
    """Finished tiles, views of images and several of them, dense and in groups."""
    x, w = randn(3, channels, 13, 18), randn(kernels, channels // groups, size, size) / size
    x, w = (last(t) if f else t for t, f in zip((x, w), formats))
    b = randn(kernels)

    def finished(x: Any, w: Any, b: Any) -> Any:
        y = F.conv2d(x, w, b, stride=stride, padding=size // 2, groups=groups)
        return F.silu(y * 2) + y.mean((2, 3), keepdim=True)

    def of_a_view(x: Any, w: Any, b: Any) -> Any:
        return F.relu(F.conv2d(x[1:, :, 2:, ::2], w, b, stride=stride, padding=1, groups=groups))

    for function in (finished, of_a_view):
        check(function, x, w, b, backend="inductor", tolerance=1e-5)


@pytest.mark.parametrize("mode", ["zeros"])
def test_modules_with_padding_modes(mode: str) -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, padding_mode=mode), nn.ReLU(), nn.Conv2d(8, 4, 1), nn.Flatten()
    ).eval()
    check(model, randn(2, 3, 9, 10))


def network() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 16, 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
        nn.Conv2d(16, 16, 3, padding=1, groups=16),
        nn.SiLU(),
        nn.Conv2d(16, 24, 1, bias=False),
        nn.BatchNorm2d(24),
        nn.ConvTranspose2d(24, 5, 2, stride=2),
        nn.GELU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(5, 4),
    ).eval()


@pytest.mark.parametrize("channels_last", [False, True])
def test_a_network_is_one_graph(channels_last: bool) -> None:
    torch.manual_seed(0)
    model, x = network(), randn(2, 3, 32, 36)
    if channels_last:
        model, x = model.to(memory_format=torch.channels_last), last(x)
    for backend in ("eager", "inductor"):
        check(model, x, backend=backend, tolerance=1e-5)
    report = dyncomp.explain(model, backend="eager")(x)
    assert not report.breaks


def test_sizes_that_change() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, groups=8)
    ).eval()
    for backend in ("eager", "inductor"):
        compiled = dyncomp.compile(model, backend=backend)
        for size in (12, 16, 17, 9, 33):
            x = randn(1, 3, size, size + 2)
            assert torch.allclose(compiled(x), model(x), atol=1e-5)


@pytest.mark.parametrize(
    "options",
    [{"stride": 0}, {"padding": -1}, {"groups": 4}, {"padding": (1, 2, 3)}, {"padding": "same", "stride": 2}],
    ids=str,
)
def test_wrong_calls_raise_as_torch_does(options: dict[str, Any]) -> None:
    def function(x: Any, w: Any) -> Any:
        return F.conv2d(x, w, **options)

    x, w = randn(1, 6, 8, 8), randn(6, 6, 3, 3)
    with pytest.raises(Exception) as wanted:
        function(x, w)
    with pytest.raises(type(wanted.value)) as got:
        dyncomp.compile(function, backend="eager")(x, w)
    assert str(got.value) == str(wanted.value)


def test_kernels_larger_than_the_input() -> None:
    def function(x: Any, w: Any) -> Any:
        return F.conv2d(x, w)

    compiled = dyncomp.compile(function, backend="eager")
    w = randn(6, 6, 3, 3)
    for size in (8, 7, 6):
        x = randn(1, 6, size, size)
        assert torch.equal(compiled(x, w), function(x, w)) or torch.allclose(compiled(x, w), function(x, w))
    with pytest.raises(RuntimeError, match="Kernel size can't be greater"):
        compiled(randn(1, 6, 2, 2), w)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("bias", [False, True])
def test_transposed_whose_kernels_are_apart(backend: str, bias: bool) -> None:
    for rank, steps in ((1, (3,)), (2, (2, 2)), (2, (1, 3)), (3, (2, 1, 2))):
        back = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
        x, w, b = randn(2, 5, *(4, 6, 3)[:rank]), randn(5, 7, *steps), randn(7) if bias else None
        for given in (x, last(x) if rank == 2 else x.transpose(0, 1).contiguous().transpose(0, 1), x[0]):
            if rank == 3 and not given.is_contiguous():
                continue

            def run(x: Any, w: Any, b: Any, stride: Any = steps, back: Any = back) -> Any:
                return torch.relu(back(x, w, b, stride=stride)) + 1

            check(run, given, w, b, backend=backend)
            if rank == 2:
                check(run, given, last(w), b, backend=backend)


@pytest.mark.parametrize("groups", [1, 2])
def test_enough_channels_for_fewer_multiplications(groups: int) -> None:
    x, w, b, r = randn(2, 32, 20, 17), randn(48, 32 // groups, 3, 3), randn(48), randn(2, 48, 20, 17)

    def block(x: Any, w: Any, b: Any, r: Any) -> Any:
        return torch.relu(F.conv2d(x, w, b, padding=1, groups=groups) + r), x + 1

    compiled = dyncomp.compile(block, fullgraph=True)
    for value in (1.0, float("inf"), float("nan")):
        x[1, 3, 5, 6] = value
        wanted, got = block(x, w, b, r)[0], compiled(x, w, b, r)[0]
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4, equal_nan=True)


def test_zeros_of_kernels_hide_what_is_large() -> None:
    """Kernels that move an image by a place: sums of places would lose what is beside a large element."""
    kernels = torch.zeros(32, 32, 3, 3)
    kernels[range(32), range(32), 0, 0] = 1.0
    image = torch.randn(1, 32, 16, 16)
    image[0, :, 5, 5] = 1e20
    found = dyncomp.compile(lambda x, w: torch.nn.functional.conv2d(x, w, padding=1))(image, kernels)
    torch.testing.assert_close(found[:, :, 1:, 1:], image[:, :, :-1, :-1], rtol=0.0, atol=0.0)


GRADIENTS = list(itertools.product((1, 2, 3), (1, 2), (0, 1, 2), ((1, 1), (3, 2), (4, 5)), (1, 2)))


@pytest.mark.parametrize(
    ("stride", "dilation", "padding", "kernel", "groups"),
    # every fifth has each value several times
    [each if k % 5 == 0 else pytest.param(*each, marks=pytest.mark.slow) for k, each in enumerate(GRADIENTS)],
    ids=str,
)
def test_gradients(stride: int, dilation: int, padding: int, kernel: Any, groups: int) -> None:
    """Of convolutions, and of transposed ones, whose gradients are convolutions."""
    x = randn(3, 4, 14, 17).requires_grad_()
    w = randn(12, 4 // groups, *kernel).requires_grad_()
    v = randn(4, 6, *kernel).requires_grad_()
    # some images have an end that no window sees
    more = min(1, max(stride, dilation) - 1)
    plain = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}

    def loss(x: Any, w: Any, v: Any) -> Any:
        here = F.conv2d(x, w, **plain)
        there = F.conv_transpose2d(x, v, output_padding=more, **plain)
        return here.sin().sum() + there.sin().sum()

    with torch.enable_grad():
        wanted = torch.autograd.grad(loss(x, w, v), (x, w, v))
        got = torch.autograd.grad(dyncomp.compile(loss, fullgraph=True)(x, w, v), (x, w, v))
    for one, other in zip(got, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5 * float(other.abs().max()))


TRANSPOSED = [
    {},
    {"stride": 2, "padding": 1, "output_padding": 1},
    {"stride": (2, 1), "padding": (0, 2), "dilation": (1, 2)},
    {"stride": 3, "padding": 3},
    {"stride": 2, "dilation": 2},
    {"stride": 5, "output_padding": (3, 4)},
    {"groups": 3, "padding": [1, 1]},
    {"groups": 2, "stride": 2},
]


@pytest.mark.parametrize("options", TRANSPOSED, ids=str)
def test_transposed(options: dict[str, Any]) -> None:
    """Each phase of a stride is a convolution of its own."""
    x, w = randn(2, 6, 9, 11), randn(6, 4, 3, 4)
    check(lambda x: F.conv_transpose2d(x, w, **options), x)
    check(lambda x: F.conv_transpose2d(x, w, **options), last(x), backend="inductor")
    check(lambda x: F.conv_transpose2d(x, w, **options), x, backend="inductor", tolerance=1e-5)


@pytest.mark.parametrize("size", [1, 2, 4, 5])
@pytest.mark.parametrize("kernels", [16, 67])
def test_stacks_of_small_images(size: int, kernels: int) -> None:
    """What a tile of the product sees is of several images; the bits are those of any number of threads."""
    before = num_threads()
    x = randn(9, 40, size, size)
    w, b = randn(kernels, 40, 3, 3), randn(kernels)

    def plain(x: Any) -> Any:
        return torch.relu(F.conv2d(x, w, b, padding=1))

    compiled = dyncomp.compile(plain, fullgraph=True)
    several = (x, x[3:], x[::2], x[:1].expand(7, -1, -1, -1), x.transpose(2, 3))
    found = []
    try:
        for threads in (1, 2, 5):
            set_num_threads(threads)
            found.append([compiled(given) for given in several])
    finally:
        set_num_threads(before)
    for given, results in zip(several, zip(*found)):
        torch.testing.assert_close(results[0], plain(given), rtol=1e-5, atol=1e-4)
        assert all(torch.equal(results[0], other) for other in results)

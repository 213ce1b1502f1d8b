"""Complex tensors: rules of their own, torch's routines, and views that are copies in the graph."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402  (torch may be missing)

from .harness import meaningful  # noqa: E402

J = 1j


def inputs(dtype=torch.complex64, seed: int = 0) -> dict[str, torch.Tensor]:
    torch.manual_seed(seed)
    real = torch.float32 if dtype is torch.complex64 else torch.float64
    return {
        "z": torch.randn(4, 6, dtype=dtype),
        "w": torch.randn(4, 6, dtype=dtype),
        "t": torch.randn(6, 4, dtype=dtype).t(),
        "x": torch.randn(4, 6, dtype=real),
        "k": torch.arange(6),
        "s": torch.tensor(1 + 2j, dtype=dtype),
    }


def rotated(x):
    """As rotary embeddings are applied."""
    angles = torch.outer(torch.arange(4), 1.0 / 10.0 ** torch.arange(3)).to(x.dtype)
    turns = torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(torch.view_as_complex(x.reshape(4, 3, 2)) * turns).flatten(1) + x


def spectral(x, w):
    found = torch.zeros(4, 4, dtype=w.dtype)
    found[:, :2] = torch.einsum("ij,kj->ik", torch.fft.rfft(x), w[:, :4])[:, :2]
    return torch.fft.irfft(found, n=6)


def written(z, x):
    z = z.clone()
    z[0] = 1j
    z[:, 1] *= 2
    z[1, 2:4] = x[0, :2]
    z += x
    return z


WHOLE = {
    "arithmetic": lambda z, w, x: (z + w, z - x, z * w, x * z, -z, z * 2, 1 - z, z + 1, w * 0.5),
    "numbers": lambda z, x, k: (1j * x, x + (1 + 2j), z * 1j, 2j * k, J - z),
    "without-dimensions": lambda z, s, x: (z * s, s * s, x * s.to(z.dtype), s + 1),
    "transposed": lambda z, t: (z * t, t.clone(), t.contiguous(), t + 1, t.t()),
    "magnitude": lambda z: (z.abs(), abs(z), torch.abs(z).sum(), torch.angle(z)),
    "parts": lambda z: (z.real + 1, z.imag * 2, torch.real(z) @ torch.imag(z).T, z.real.clone()),
    "conjugate": lambda z, w: (
        z.conj() * w,
        (z * z.conj()).real + 0,
        torch.conj(z) @ w.T,
        z.conj().T @ w,
        z.mH @ w,
    ),
    "pairs": lambda z, x: (torch.view_as_real(z) + 1, torch.view_as_complex(x.reshape(4, 3, 2)) * 2),
    "made": lambda x: (
        torch.complex(x, x + 1),
        torch.polar(x.abs(), x),
        torch.complex(x[:, :2], x[:, 2:4]).T,
    ),
    "compared": lambda z, w, x: (z == w, z != z, torch.where(x > 0, z, w), torch.where(x > 0, z, x)),
    "arranged": lambda z: (
        z.reshape(2, 12).clone(),
        z.flatten() * 1,
        torch.stack([z, z]),
        torch.cat([z, z], 1),
        z[1:, ::2] + 0,
        z[[0, 2]],
        z.repeat(1, 2),
        z.flip(0),
        torch.roll(z, 1, 0),
        z.unsqueeze(0).expand(2, -1, -1) * 1,
    ),
    "joined-with-reals": lambda z, x: (torch.cat([z, x]), torch.stack([x, z])),
    "made-alike": lambda z: (
        torch.zeros_like(z),
        torch.ones(2, dtype=z.dtype),
        z.new_zeros(3),
        torch.full((2,), 2j),
    ),
    "sums": lambda z: (z.sum(), z.sum(0), z.mean(1), torch.sum(z, -1, keepdim=True), z.cumsum(0)),
    "routines": lambda z, w: (z / w, 1 / (z + 3), z.exp(), torch.sqrt(z), z**2, torch.sin(z), z.reciprocal()),
    "products": lambda z, w, s: (
        z @ w.T,
        torch.einsum("ij,kj->ik", z, w),
        torch.kron(z, w),
        z.mv(w[0]),
        z * s,
    ),
    "converted": lambda x, z: (x.to(torch.complex64), x.cfloat(), z.to(torch.complex128), x.type_as(z)),
    "types": lambda z, x: (
        z.is_complex(),
        x.is_complex(),
        z.dtype,
        z.is_floating_point(),
        torch.is_complex(z),
        z.shape,
    ),
    "fft": lambda x: (torch.fft.fft(x), torch.fft.ifft(torch.fft.fft(x)).real + 0, torch.fft.rfft2(x).abs()),
    "fft-of-complex": lambda z: (torch.fft.fft(z, dim=0), torch.fft.ifft2(z), torch.fft.irfft(z, n=9)),
    "rotated": rotated,
    "spectral": spectral,
    "written": written,
    "real-of-real": lambda x: (x.real is x, x.conj() is x, x.real * 2, x.H @ x, x.mH),
    "literals": lambda z: (
        torch.tensor([[1, 2j]], dtype=z.dtype) @ z[:2],
        torch.tensor(2j) * z,
        torch.eye(4, dtype=z.dtype) @ z,
    ),
}


def same(found, expected, where: str) -> None:
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected), where
        for k, (a, b) in enumerate(zip(found, expected)):
            same(a, b, f"{where}[{k}]")
        return
    assert type(found) is type(expected), where
    if not isinstance(expected, torch.Tensor):
        assert found == expected, where
        return
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), where
    assert meaningful(found) == meaningful(expected), f"{where}: {found.stride()}, {expected.stride()}"
    assert (found.is_conj(), found.is_neg()) == (expected.is_conj(), expected.is_neg()), where
    eps = (
        torch.finfo(expected.dtype).eps if expected.dtype.is_floating_point or expected.is_complex() else 0.0
    )
    scale = float(expected.abs().max()) if expected.numel() and expected.dtype is not torch.bool else 1.0
    close = torch.allclose(found, expected, rtol=0.0, atol=64 * eps * max(scale, 1.0), equal_nan=True)
    assert close if eps else torch.equal(found, expected), f"{where}:\n{found}\n{expected}"


def arguments(f, values):
    return [values[n] for n in f.__code__.co_varnames[: f.__code__.co_argcount]]


@pytest.mark.parametrize("name", WHOLE)
def test_captured_whole(name):
    f = WHOLE[name]
    compiled = dyncomp.compile(f, fullgraph=True, backend="eager")
    for dtype in (torch.complex64, torch.complex128):
        values = arguments(f, inputs(dtype))
        before = dyncomp.stats()["fallbacks"]
        same(compiled(*values), f(*values), name)
        assert dyncomp.stats()["fallbacks"] == before


@pytest.mark.parametrize(
    "name", ["arithmetic", "magnitude", "conjugate", "pairs", "rotated", "spectral", "written"]
)
def test_compiled(name):
    f = WHOLE[name]
    values = arguments(f, inputs())
    same(dyncomp.compile(f, fullgraph=True)(*values), f(*values), name)


def overlapping(z, x):
    x[..., 0] += 1
    return z * 2


def test_inputs_that_share_memory():
    compiled = dyncomp.compile(overlapping, backend="eager")
    for seed in (0, 1):
        z, w = inputs(seed=seed)["z"], inputs(seed=seed)["z"]
        same(compiled(z, torch.view_as_real(z)), overlapping(w, torch.view_as_real(w)), "shared")
        same(
            compiled(z, torch.view_as_real(z.clone())), overlapping(w, torch.view_as_real(w.clone())), "apart"
        )
        same(z, w, "what was given")


# -- views leave the graph, or are written ------------------------------------------------------
VIEWS = {
    "real": lambda z: z.real,
    "imag": lambda z: (z * 2).imag,
    "part-of-real": lambda z: z.real[1:, ::2],
    "conj": lambda z: z.conj(),
    "conj-transposed": lambda z: z.conj().T,
    "imag-of-conj": lambda z: z.conj().imag,
    "cloned-conj": lambda z: z.conj().clone(),
    "resolved": lambda z: (z.resolve_conj(), z.conj().resolve_conj()),
    "pairs": lambda z: torch.view_as_real(z),
    "complex-of-pairs": lambda x: torch.view_as_complex(x.view(4, 3, 2)),
    "both": lambda z: (z, z.real, torch.view_as_real(z)[..., 0]),
    "strides": lambda z: (z.real.stride(), z.real.is_contiguous(), z.conj().is_conj(), z.real.contiguous()),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_leave_the_graph(name):
    f = VIEWS[name]
    compiled = dyncomp.compile(f, backend="eager")
    for seed in (0, 1):
        values, others = arguments(f, inputs(seed=seed)), arguments(f, inputs(seed=seed))
        found, expected = compiled(*values), f(*others)
        same(found, expected, name)
        for results, given in ((found, values), (expected, others)):
            for result in results if isinstance(results, tuple) else (results,):
                if isinstance(result, torch.Tensor) and not result.is_conj():
                    result.mul_(3)
            same(given[0], given[0], name)
        same(values, others, f"{name}: what was given")


def write_real(z):
    z.real[1:] = 5
    return z * 1


def write_through_pairs(z):
    pairs = torch.view_as_real(z)
    pairs[..., 0] += 1
    return z * 2


def write_after(z):
    real = z.real
    z[0] = 0
    return real + 1, z


def write_after_pairs(x):
    numbers = torch.view_as_complex(x.view(4, 3, 2))
    x += 1
    return numbers * 2


@pytest.mark.parametrize("program", [write_real, write_through_pairs, write_after, write_after_pairs])
def test_written(program):
    compiled = dyncomp.compile(program, backend="eager")
    for seed in (0, 1):
        values, others = arguments(program, inputs(seed=seed)), arguments(program, inputs(seed=seed))
        same(compiled(*values), program(*others), program.__name__)
        same(values, others, "what was given")


def test_marked_tensors_are_others():
    def f(z):
        return z * 2, z.abs()

    compiled = dyncomp.compile(f, backend="eager")
    z = inputs()["z"]
    for value in (z, z.conj(), z, z.T.conj(), z.conj().imag):
        same(compiled(value), f(value), "marked")


def refused_assignment(x):
    x[0] = 1j
    return x


def refused_branch(z):
    return 1 if z > 0 else 2


def refused_order(z):
    return z.max()


@pytest.mark.parametrize("program", [refused_assignment, refused_branch, refused_order])
def test_refused(program):
    values = arguments(program, inputs())
    with pytest.raises((RuntimeError, TypeError)) as expected:
        program(*values)
    with pytest.raises(type(expected.value)) as found:
        dyncomp.compile(program, backend="eager")(*values)
    assert str(found.value) == str(expected.value)


def test_sizes_that_change():
    def f(x):
        return torch.fft.irfft(torch.fft.rfft(x) * 2, n=x.shape[-1]), torch.fft.fft(x).abs()

    compiled = dyncomp.compile(f, backend="eager")
    for size in (8, 10, 13, 16, 7):
        x = torch.randn(3, size)
        same(compiled(x), f(x), f"size {size}")


def test_layouts_of_strided_arguments():
    def f(z):
        t = z.transpose(1, 2)
        return t.angle(), t.abs(), t.exp(), t / 2, t * 2, t.sum(0), torch.sgn(t)

    z = torch.randn(2, 3, 4, dtype=torch.complex64)
    same(dyncomp.compile(f, fullgraph=True, backend="eager")(z), f(z), "strided")


def turned(z):
    pairs = torch.view_as_real(z.t())
    wave = torch.stft(z.real.reshape(-1), 4, 2, window=torch.ones(4), return_complex=True)
    return pairs.pow(2).sum(-1), pairs * 2, wave


def test_pairs_of_a_transposed_tensor():
    z = torch.randn(3, 4, dtype=torch.complex64)
    same(dyncomp.compile(turned, fullgraph=True)(z), turned(z), "turned")

    def written(z):
        pairs = torch.view_as_real(z.t())
        z.mul_(2)
        return pairs * 2

    mine, theirs = z.clone(), z.clone()
    same(dyncomp.compile(written)(mine), written(theirs), "written")
    same(mine, theirs, "written")

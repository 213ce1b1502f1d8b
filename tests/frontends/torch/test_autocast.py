"""``torch.autocast`` around captured code and in it: types and values as eager's."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import dyncomp  # noqa: E402
from dyncomp.frontends.torch import autocast  # noqa: E402

F = torch.nn.functional
HALF, BRAIN = torch.float16, torch.bfloat16


def r(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def same(got: Any, want: Any) -> None:
    assert type(got) is type(want)
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for a, b in zip(got, want):
            same(a, b)
    elif isinstance(want, torch.Tensor):
        assert (got.dtype, got.stride()) == (want.dtype, want.stride())
        close = 1e-5 if want.dtype is torch.float32 else 2e-2
        torch.testing.assert_close(got, want, rtol=close, atol=close)
    else:
        assert got == want


def check(function: Any, *arguments: Any, breaks: int = 0, backend: str = "eager") -> None:
    with torch.no_grad():
        want = function(*arguments)
        report = dyncomp.explain(function)(*arguments)
        assert len(report.breaks) == breaks, [str(b) for b in report.breaks]
        compiled = dyncomp.compile(function, backend=backend)
        for _ in range(2):
            same(compiled(*arguments), want)


def mlp(x: Any, w: Any, b: Any) -> Any:
    y = F.gelu(F.linear(x, w, b))
    return y, torch.softmax(y @ w[: y.shape[1], :8], -1), y.sum(), F.layer_norm(y, (y.shape[-1],))


def block(x: Any, w: Any, b: Any) -> Any:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = F.linear(x, w, b)
    return y, y.float() @ w


def switched_off(x: Any, w: Any, b: Any) -> Any:
    with torch.autocast("cpu", dtype=torch.bfloat16) as mode:
        y = F.linear(x, w, b)
        with torch.autocast(device_type="cpu", enabled=False):
            z = F.linear(x, w, b)
            inside = torch.is_autocast_enabled("cpu")
        asked = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
    return y, z, inside, asked, torch.is_autocast_enabled("cpu"), type(mode) is torch.autocast


def other_device(x: Any, w: Any, b: Any) -> Any:
    with torch.autocast("cuda", dtype=torch.float16, enabled=False):
        return F.linear(x, w, b)


def breaking(x: Any, w: Any, b: Any) -> Any:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = F.linear(x, w, b)
        seen = torch.is_autocast_enabled("cpu"), float(y.sum()) > 1e9
        z = y @ w
    return y, z, seen, x @ w.t(), torch.is_autocast_enabled("cpu")


def raising(x: Any, w: Any, b: Any) -> Any:
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = F.linear(x, w, b)
            raise ValueError("out")
    except ValueError:
        return y, F.linear(x, w, b)


ARGUMENTS = r(4, 16), r(24, 16), r(24)
BLOCKS = [mlp, block, switched_off, other_device, raising]


@pytest.mark.parametrize("function", BLOCKS, ids=[f.__name__ for f in BLOCKS])
def test_blocks(function: Any) -> None:
    check(function, *ARGUMENTS)


@pytest.mark.parametrize("dtype", [BRAIN, HALF], ids=str)
@pytest.mark.parametrize("function", BLOCKS, ids=[f.__name__ for f in BLOCKS])
def test_around(function: Any, dtype: Any) -> None:
    with torch.autocast("cpu", dtype=dtype):
        check(function, *ARGUMENTS)


def test_a_break_within() -> None:
    with torch.no_grad():
        same(dyncomp.compile(breaking)(*ARGUMENTS), breaking(*ARGUMENTS))
        assert not torch.is_autocast_enabled("cpu")


def test_a_generated_kernel() -> None:
    with torch.autocast("cpu", dtype=BRAIN):
        check(mlp, *ARGUMENTS, backend="inductor")


def test_the_mode_is_guarded() -> None:
    compiled = dyncomp.compile(mlp, backend="eager")
    with torch.no_grad():
        for dtype in (None, BRAIN, HALF, None, BRAIN):
            with torch.autocast("cpu", dtype=dtype or BRAIN, enabled=dtype is not None):
                same(compiled(*ARGUMENTS), mlp(*ARGUMENTS))


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.first = torch.nn.Linear(8, 16)
        self.scale = torch.nn.LayerNorm(16)
        self.last = torch.nn.Linear(16, 5)

    def forward(self, x: Any) -> Any:
        x = F.relu(self.norm(self.conv(x))).mean((2, 3))
        x = self.scale(F.silu(self.first(x)))
        return self.last(torch.cat([x[:, :8], x[:, 8:] * 2], 1)), F.log_softmax(x, -1)


def test_a_model() -> None:
    torch.manual_seed(0)
    model = Model().eval()
    with torch.autocast("cpu", dtype=BRAIN):
        check(model, r(2, 3, 8, 8))


# name of a policy -> calls of the function on a matrix and a square one
CALLS: dict[str, Any] = {
    "linear": lambda x, y: F.linear(x, y),
    "matmul": lambda x, y: (torch.matmul(x, y), x @ y, x.matmul(y)),
    "mm": lambda x, y: (torch.mm(x, y), x.mm(y)),
    "bmm": lambda x, y: torch.bmm(x[None], y[None]),
    "addmm": lambda x, y: torch.addmm(x, x, y),
    "baddbmm": lambda x, y: torch.baddbmm(x[None], x[None], y[None]),
    "conv1d": lambda x, y: F.conv1d(x[None], y[:, :, None][:, : x.shape[0]]),
    "conv2d": lambda x, y: F.conv2d(x[None, None], y[None, None, :2, :2]),
    "scaled_dot_product_attention": lambda x, y: F.scaled_dot_product_attention(x[None], y[None], y[None]),
    "cat": lambda x, y: (torch.cat([x, y]), torch.stack([x[:4], y[:4]]), torch.cat([x, y.bfloat16()])),
    "exp": lambda x, y: (torch.exp(x), x.exp(), torch.log(y.abs() + 1), x.abs().rsqrt(), x.reciprocal()),
    "pow": lambda x, y: (x**2, x.pow(3), 2.0**x, torch.pow(y, 2), 1 / (x.abs() + 1), x / 3, x / y[:4]),
    "sum": lambda x, y: (x.sum(), y.sum(0), torch.sum(x, 1), x.sum(dtype=torch.float64), x.mean(0)),
    "softmax": lambda x, y: (x.softmax(-1), F.softmax(y, 0), F.log_softmax(x, 1), torch.softmax(x, 1)),
    "cumsum": lambda x, y: (x.cumsum(0), torch.cumprod(y, 1)),
    "layer_norm": lambda x, y: (F.layer_norm(x, (x.shape[1],)), F.group_norm(y[None], 4)),
    "losses": lambda x, y: (F.mse_loss(x, y[:4]), F.l1_loss(x, y[:4]), F.smooth_l1_loss(x, y[:4])),
    "softplus": lambda x, y: (F.softplus(x), torch.logsumexp(y, 1)),
    "activations": lambda x, y: (F.gelu(x), F.relu(y), F.silu(x), torch.sigmoid(x), x.tanh(), F.elu(x)),
    "arithmetic": lambda x, y: (x + y[:4], x * 2, x - y[0], -x, x.abs(), x.maximum(y[:4]), x > 0),
    "mixed": lambda x, y: (x + y[:4].float(), torch.where(x > 0, x, y[:4]), x.clamp(-1, 1), x.amax(1)),
    "shapes": lambda x, y: (x.reshape(-1), y.t(), x[1:], x.view(2, -1), y.permute(1, 0).contiguous()),
    "ops of other names": lambda x, y: (
        *(torch.special.erf(x), torch.arcsin(y / 9), torch.special.log1p(y.abs()), torch.special.exp2(x)),
        *(torch.arccosh(y.abs() + 1), x.sigmoid(), torch.digamma(x.float()), torch.special.i1(y.float())),
    ),
    "prelu": lambda x, y: F.prelu(x, y[0, :1]),
    "pool": lambda x, y: (F.max_pool2d(x[None, None], 2), F.avg_pool2d(x[None, None], 2)),
}


@pytest.mark.parametrize("dtype", [torch.float32, BRAIN, torch.float64], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_policies_on_a_cpu(name: str, dtype: Any) -> None:
    with torch.autocast("cpu", dtype=BRAIN):
        check(CALLS[name], r(4, 8, dtype=dtype), r(8, 8, dtype=dtype))


def test_what_is_in_no_list_is_torchs() -> None:
    """``bilinear`` calls what has a policy, ``cdist`` and ``qr`` do not."""

    def function(x: Any) -> Any:
        return torch.linalg.qr(x)[1].abs() @ x, torch.cdist(x, x), F.bilinear(x, x, x[None])

    with torch.autocast("cpu", dtype=BRAIN):
        check(function, r(4, 4))


LAYERS = {
    "lstm": lambda: torch.nn.LSTM(16, 8, 2, batch_first=True, bidirectional=True),
    "gru": lambda: torch.nn.GRU(16, 8, batch_first=True),
    "rnn": lambda: torch.nn.RNN(16, 8),
    "encoder": lambda: torch.nn.TransformerEncoderLayer(16, 2, 24, 0.0, batch_first=True),
    "decoder": lambda: torch.nn.TransformerDecoderLayer(16, 2, 24, 0.0, batch_first=True),
}


@pytest.mark.parametrize("mode", ["trained", "evaluated", "no_grad"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str, mode: str) -> None:
    """What torch makes of several functions finds the mode on, and so do its gradients."""
    torch.manual_seed(0)
    model, x = LAYERS[name]().train(mode == "trained"), r(3, 5, 16)

    def step(x: Any) -> tuple[Any, ...]:
        with torch.autocast("cpu", dtype=BRAIN):
            found = model(x, x) if name == "decoder" else model(x)
        result = found[0] if type(found) is tuple else found
        weights = [p for p in model.parameters() if p.ndim > 1]
        if mode == "no_grad":
            return (result,)
        return result, *torch.autograd.grad(result.float().pow(3).sum(), weights)

    compiled = dyncomp.compile(step, backend="eager")
    with torch.set_grad_enabled(mode != "no_grad"):
        try:
            step(x)
        except RuntimeError as error:  # oneDNN has the LSTM on some processors only
            pytest.skip(str(error))
        assert not dyncomp.explain(step)(x).breaks
        for _ in range(2):
            for a, b in zip(compiled(x), step(x), strict=True):
                assert (a.dtype, a.stride()) == (b.dtype, b.stride())
                torch.testing.assert_close(a, b, rtol=3e-2, atol=1e-2 * b.abs().max().item())


def test_attention_without_weights() -> None:
    """Results of a call of torch in which one is ``None``."""
    attention = torch.nn.MultiheadAttention(16, 2, batch_first=True).eval()

    def function(x: Any) -> Any:
        return attention(x, x, x, need_weights=False)

    with torch.autocast("cpu", dtype=BRAIN):
        check(function, r(3, 5, 16))


def registered(key: str) -> set[str]:
    """Names of ops that have a policy, by torch itself."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    names = [n for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::")]
    return {n.removeprefix("aten::").split(".")[0] for n in names if has(n, key)}


@pytest.mark.parametrize("key", ["AutocastCPU", "AutocastCUDA"])
def test_lists_agree_with_torchs(key: str) -> None:
    own = registered(key)
    for names in autocast._OPS:
        own |= names if own & names else set()  # other names call what has a policy
    on_gpu = key == "AutocastCUDA"
    assert not own & autocast._AS_EVER
    lists = autocast._LOWER
    if on_gpu:
        lists = lists | autocast._LOWER_CUDA | autocast._WIDE_CUDA | autocast._WIDE_BY_DEFAULT_CUDA
        # composites of what has a policy
        lists -= {"nll_loss_nd", "cross_entropy_loss", "cross_entropy", "norm", "linalg_vector_norm"}
    else:
        assert not own & (autocast._AS_EVER_CPU - {"cat", "stack"})
        lists = lists | autocast._WIDE_CPU
    assert lists <= own


@torch.autocast("cpu", dtype=torch.bfloat16)
def decorated(x: Any, w: Any, b: Any) -> Any:
    return F.linear(x, w, b)


def calls_decorated(x: Any, w: Any, b: Any) -> Any:
    return decorated(x, w, b), F.linear(x, w, b)


MODE = torch.autocast("cpu", dtype=torch.bfloat16)


def with_an_object(x: Any, w: Any, b: Any) -> Any:
    with MODE:
        y = F.linear(x, w, b)
    return y, F.linear(x, w, b)


@pytest.mark.parametrize("function", [decorated, calls_decorated, with_an_object])
def test_objects_made_before(function: Any) -> None:
    check(function, *ARGUMENTS)

"""Pooling, normalization by channel, activations and grouped attention, in each memory format, with NaN."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

import dyncomp  # noqa: E402

from .harness import same  # noqa: E402

DTYPES = (torch.float32, torch.float64, torch.bfloat16)


def four(x, *values):
    return torch.tensor(values, dtype=x.dtype)


PROGRAMS = {
    "clamped": lambda x: (
        F.hardtanh(x),
        F.relu6(x * 4),
        F.hardsigmoid(x),
        F.hardswish(x),
        F.hardtanh(x, -2, 0.5),
    ),
    "smooth": lambda x: (F.mish(x), F.softsign(x), F.logsigmoid(x), F.selu(x), F.celu(x, 0.7)),
    "glu": lambda x: (F.glu(x, 1), F.glu(x)),
    "prelu": lambda x: (F.prelu(x, four(x, 0.3)), F.prelu(x, four(x, 0.0, 1.0, 0.5, -1.0))),
    "batch_norm": lambda x: F.batch_norm(
        x, four(x, 0, 1, 2, 3), four(x, 1, 2, 3, 4), four(x, 2, 2, 1, 1), four(x, 1, 0, 1, 0)
    ),
    "batch_norm-bare": lambda x: F.batch_norm(x, four(x, 0, 1, 2, 3), four(x, 1, 2, 3, 4), eps=0.5),
    "group_norm": lambda x: (
        F.group_norm(x, 2),
        F.group_norm(x, 4, four(x, 0, 1, 2, 3), four(x, 1, 1, 1, 1)),
    ),
    "max_pool": lambda x: (F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, 2), F.max_pool2d(x, 2, dilation=2)),
    "max_pool-ceil": lambda x: F.max_pool2d(x, (2, 3), stride=(1, 2), ceil_mode=True),
    "max_pool-3d": lambda x: F.max_pool2d(x[0], 2),
    "avg_pool": lambda x: (
        F.avg_pool2d(x, 3, 2, 1),
        F.avg_pool2d(x, 2),
        F.avg_pool2d(x, 2, divisor_override=3),
    ),
    "adaptive": lambda x: (F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (2, 3))),
    "cat": lambda x: (torch.cat([x, x], 1), torch.cat([torch.tensor([], dtype=x.dtype), x])),
}
EXACT_ONLY = ("batch_norm", "batch_norm-bare", "group_norm")


def inputs(dtype):
    torch.manual_seed(0)
    base = torch.randn(2, 4, 8, 6).to(dtype)
    special = base.clone()
    special.view(-1)[::7] = float("nan")
    special.view(-1)[3::11] = float("inf")
    last = base.contiguous(memory_format=torch.channels_last)
    turned = base.transpose(2, 3).contiguous().transpose(2, 3)
    return {"plain": base, "channels last": last, "turned": turned, "special": special}


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_torch(name, backend):
    program = PROGRAMS[name]
    compiled = dyncomp.compile(program, backend=backend, fullgraph=True)
    for dtype in DTYPES if backend == "eager" else DTYPES[:1]:
        for kind, x in inputs(dtype).items():
            if kind == "special" and name in EXACT_ONLY:
                continue
            with torch.no_grad():
                same(compiled(x), program(x), f"{name} {dtype} {kind}")


def test_in_place():
    def program(x):
        y = x + 0
        return F.hardswish(y, inplace=True), y, F.relu6(y, True)

    x = torch.randn(3, 4)
    with torch.no_grad():
        found, expected = dyncomp.compile(program, backend="eager", fullgraph=True)(x), program(x)
    same(found, expected, "in place")
    assert found[0] is found[1] and found[1] is found[2]


def test_training_is_left_to_torch():
    layer = torch.nn.BatchNorm2d(4)
    twin = torch.nn.BatchNorm2d(4)
    x = torch.randn(2, 4, 3, 3)
    with torch.no_grad():
        same(dyncomp.compile(layer, backend="eager")(x), twin(x), "training")
    same(layer.running_mean, twin.running_mean, "running mean")


def test_the_message_of_a_missing_attribute():
    def program(x):
        try:
            return (x + 1).jax
        except AttributeError as error:
            return str(error), hasattr(x, "jax")

    x = torch.ones(2)
    assert dyncomp.compile(program, backend="eager")(x) == program(x)


@pytest.mark.parametrize(
    "more", [{}, {"is_causal": True}, {"attn_mask": torch.tensor([[True, False, True]])}], ids=str
)
def test_grouped_heads(more):
    def program(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True, **more)

    torch.manual_seed(0)
    arguments = torch.randn(2, 6, 3, 4), torch.randn(2, 2, 3, 4), torch.randn(2, 2, 3, 4)
    with torch.no_grad():
        compiled = dyncomp.compile(program, backend="eager", fullgraph=True)
        same(compiled(*arguments), program(*arguments), f"{more}")

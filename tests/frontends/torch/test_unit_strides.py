"""Strides along dimensions of size one: ``stride()`` is answered where they are known to be eager's."""

from __future__ import annotations

import pytest

import dyncomp

torch = pytest.importorskip("torch")
F = torch.nn.functional


def heads_of_width_one(x, w, b):
    y = F.linear(x, w, b).view(x.shape[0], x.shape[1], 4, 1).transpose(1, 2)
    return F.scaled_dot_product_attention(y, y, y), y.stride()


def filled(x, w, b):
    y = x.new_ones(x.shape[0], x.shape[1], 1, 1).transpose(1, 2).reshape(x.shape[0], x.shape[1], 1)
    return (y * 2).view(x.shape[0], 2, 3, 1), y.view(x.shape[0], 2, 3, 1).stride()


def copied(x, w, b):
    y = (x @ w.t() + b).transpose(1, 2).reshape(x.shape[0] * 4, 6, 1)
    return y, y.stride(), y.transpose(0, 2).stride(-1)


@pytest.mark.parametrize("program", [heads_of_width_one, filled, copied])
def test_one_graph(program):
    w, b = torch.randn(4, 5), torch.randn(4)
    compiled = dyncomp.compile(program, backend="eager", fullgraph=True)
    for batch in (2, 3, 7):
        x = torch.randn(batch, 6, 5)
        (got, *strides), (wanted, *eager) = compiled(x, w, b), program(x, w, b)
        torch.testing.assert_close(got, wanted)
        assert strides == eager
        assert got.stride() == wanted.stride()


VIEWS = ["y.unsqueeze(1)", "y.mT.unsqueeze(-1)", "y.mT.view(1, 8, 6, 1)", "y[:, :1]", "y[2:3].mT[None]"]
MADE = ["x", "x.t()", "x + 1", "x @ x.t() @ x", "x.t().clone().t()", "x[:1] + x[:, :1]"]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("made", MADE)
def test_an_answer_is_eagers(view, made):
    scope = {}
    exec(f"def program(x):\n    y = {made}\n    z = {view}\n    return z * 2, z.stride()\n", scope)
    program = scope["program"]
    x = torch.randn(6, 8)
    try:
        found = dyncomp.compile(program, backend="eager", fullgraph=True)(x)
    except dyncomp.GraphBreakError as error:
        assert "dimensions of size one" in str(error)  # not answered
    else:
        assert found[1] == program(x)[1]


def windows(x, width):
    count = torch.div(x.shape[1], width, rounding_mode="trunc") - 1
    row, step = x.stride()
    total = x.new_zeros((x.shape[0], count + 1, width))
    return total + x.as_strided(size=(x.shape[0], count + 1, width), stride=(row, width * step, step))


def test_windows_of_symbolic_sizes():
    compiled = dyncomp.compile(windows, backend="eager")
    for length in (12, 16, 20, 40, 13):
        for x in (torch.randn(3, length), torch.randn(length, 3).t(), torch.randn(6, length)[::2]):
            torch.testing.assert_close(compiled(x, 4), windows(x, 4))


def test_windows_beyond_the_tensor():
    def program(x):
        return x.as_strided((x.shape[0], 3), (2, 1)) + 1

    compiled = dyncomp.compile(program, backend="eager")
    base = torch.randn(32)
    for length in (4, 8, 9):  # the memory goes on behind the tensor
        x = base[:length]
        torch.testing.assert_close(compiled(x), program(x))

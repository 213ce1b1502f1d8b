"""``torch.autograd.Function`` in captured code with gradients on: forward and backward are followed."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

nn, F = torch.nn, torch.nn.functional

import dyncomp  # noqa: E402
from tests.frontends.torch.test_gradients import close, compare, grad, seeded  # noqa: E402, F401

Function = torch.autograd.Function


class Scaled(Function):
    """Its gradient is no derivative of its values: what is asked for is seen."""

    @staticmethod
    def forward(ctx, x, k, w=None):
        y = x.exp() * k
        ctx.save_for_backward(x, y, w)
        ctx.k = k
        return y if w is None else y * w

    @staticmethod
    def backward(ctx, g):
        x, y, w = ctx.saved_tensors
        by_w = g * y if len(ctx.needs_input_grad) > 2 and ctx.needs_input_grad[2] else None
        return g * y * 1.5 + ctx.k * x, None, by_w


class Two(Function):
    """Two results with derivatives and one without; a gradient that is not given."""

    @staticmethod
    def forward(ctx, a, b):
        largest = a > b
        ctx.save_for_backward(largest)
        ctx.mark_non_differentiable(largest)
        return a.sin(), b * 2.0, largest

    @staticmethod
    def backward(ctx, g, h, nothing):
        (largest,) = ctx.saved_tensors
        return torch.where(largest, g, h * 3.0), None


class WithSetup(Function):
    @staticmethod
    def forward(x, factor):
        return x.tanh() * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (ctx.factor - y * y / ctx.factor), None


class Transposed(Function):
    """Results that are views, written in place before."""

    @staticmethod
    def forward(ctx, x):
        y = x * 3.0
        y[0] += 1.0
        return y.t()

    @staticmethod
    def backward(ctx, g):
        return g.t() * 3.5


class Outer(Function):
    """Another function in forward and in backward, and an op with a derivative of its own at kinks."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return Scaled.apply(x, 2.0).relu()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return WithSetup.apply(g, 2.0).relu() * x


class Rounded(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


class Matmul(Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x @ w.t() + b

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w, g.t() @ x, g.sum(0)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 6)
        self.weight, self.bias = nn.Parameter(torch.randn(3, 6)), nn.Parameter(torch.randn(3))

    def forward(self, x):
        return Rounded.apply(Matmul.apply(self.inner(x).relu(), self.weight, self.bias) * 3.0) + 1.0


CASES = {
    "saved": lambda x, w: Scaled.apply(x, 2.0) * w,
    "keyword default": lambda x, w: Scaled.apply(x, 0.5, w).sin(),
    "several": lambda x, w: sum(t * (k + 1.0) for k, t in enumerate(Two.apply(x * 1.0, w * 1.0)[:2])),
    "not differentiable": lambda x, w: Two.apply(x, w)[2] * x,
    "unused": lambda x, w: Two.apply(x * 2.0, w)[0],
    "context": lambda x, w: WithSetup.apply(x * w, 3.0),
    "view": lambda x, w: Transposed.apply(x * w) * 2.0,
    "nested": lambda x, w: Outer.apply(x * w),
    "twice": lambda x, w: Scaled.apply(Scaled.apply(x * 0.1, 1.0), 2.0) * w,
    "in place behind": lambda x, w: Rounded.apply(x * 3.0).mul_(w).add_(x),
    "straight through": lambda x, w: Rounded.apply(x * 4.0) * w,
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    compare(CASES[name], None, grad(3, 4), grad(3, 4))


@pytest.mark.parametrize("name", CASES)
def test_partial_requires_grad(name):
    compare(CASES[name], None, grad(3, 4), torch.randn(3, 4))
    compare(CASES[name], None, torch.randn(3, 4), torch.randn(3, 4), graphs=0)


@pytest.mark.parametrize("name", [name for name in CASES if name != "not differentiable"])
def test_second_derivatives(name):
    """As eager torch's: through saved arguments and results, not through what ``forward`` computes."""
    f = CASES[name]

    def twice(function, inputs):
        y = function(*inputs)
        first = torch.autograd.grad((y * y).sum(), inputs, create_graph=True, allow_unused=True)
        total = sum((g * g).sum() for g in first if g is not None)
        return *first, *torch.autograd.grad(total, inputs, allow_unused=True)

    inputs = [grad(3, 4) for _ in range(2)]
    compiled = dyncomp.compile(f, fullgraph=True)
    for k, (found, expected) in enumerate(zip(twice(compiled, inputs), twice(f, inputs))):
        close(found, expected, f"derivative {k}")


class Attributes(Function):
    """A result, and what forward made of it, as attributes: the one has a derivative, the other has none."""

    @staticmethod
    def forward(ctx, x):
        ctx.y = x.exp()
        ctx.total = ctx.y.sum()
        return ctx.y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.y * ctx.total * 0.1


def test_third_derivatives():
    def thrice(f, x):
        y = f(x)
        (first,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad((first * first).sum(), x, create_graph=True)
        return first, second, torch.autograd.grad(second.sum() * 1e-2, x)[0]

    def under_a_checkpoint(x):
        return torch.utils.checkpoint.checkpoint(
            lambda a: Attributes.apply(a.sin()) * a, x, use_reentrant=False
        )

    x = torch.linspace(-0.2, 0.2, 6).requires_grad_()
    for f in (Attributes.apply, under_a_checkpoint):
        for found, expected in zip(
            thrice(dyncomp.compile(lambda a, f=f: f(a), fullgraph=True), x), thrice(f, x)
        ):
            close(found, expected, "derivative")


def test_sizes_may_change():
    f = dyncomp.compile(lambda x: Scaled.apply(x, 2.0).sum(0))
    for n in (3, 6, 7, 9, 3):
        x = grad(n, 4)
        y = x.detach().clone().requires_grad_()
        f(x).sum().backward()
        Scaled.apply(y, 2.0).sum().backward()
        close(x.grad, y.grad, "gradient")


def test_a_layer():
    compare(lambda m, x: m(x), Layer(), grad(5, 6))


def test_under_no_grad():
    def f(x):
        with torch.no_grad():
            y = Scaled.apply(x, 2.0)
        return y * x, y

    compare(f, None, grad(3))


def test_saved_by_the_forward_graph_only_what_backward_needs():
    x, w = grad(16, 16), grad(16, 16)
    found = dyncomp.compile(lambda a, b: Matmul.apply(a, b, a[0]), fullgraph=True)(x, w)
    saved = list(found.grad_fn.saved_tensors)
    assert {t.data_ptr() for t in saved} == {x.data_ptr(), w.data_ptr()}


LOG = []


class Logged(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, g):
        LOG.append("backward")
        return g * 2.0


class Dirty(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2.0)

    @staticmethod
    def backward(ctx, g):
        return g * 2.0


class Once(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return g * 2.0


class Drawing(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, g):
        return g * torch.rand(g.shape)


class Written(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, g):
        return g.clone().mul_(3.0) if g.dim() else g.mul_(3.0)


class Reversed(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -g


class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, g):
        return g.sum(0)


@pytest.mark.parametrize("cls", [Logged, Dirty, Once, Drawing, Reversed, Written])
def test_what_breaks_the_graph_runs_as_it_is(cls):
    def f(x):
        return cls.apply(x * 1.5) * 3.0

    compare(f, None, grad(3), fullgraph=False)
    compare(f, None, torch.randn((), requires_grad=True), fullgraph=False)


def test_backward_runs_when_it_is_called():
    LOG.clear()
    found = dyncomp.compile(lambda x: Logged.apply(x * 1.5))(grad(3))
    assert not LOG
    found.sum().backward()
    assert LOG == ["backward"]


def test_wrong_gradients_raise_as_in_eager():
    found = dyncomp.compile(lambda x: Wrong.apply(x * 1.5))(grad(3, 4))
    with pytest.raises(RuntimeError, match="invalid gradient"):
        found.sum().backward()


def test_once_differentiable_raises_twice():
    x = grad(3)
    y = dyncomp.compile(lambda a: Once.apply(a.sin()))(x)
    (first,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_the_class_may_change():
    class Changing(Scaled):
        pass

    f = dyncomp.compile(lambda x: Changing.apply(x, 2.0))
    for replaced in (False, True):
        if replaced:
            Changing.backward = staticmethod(lambda ctx, g: (g * 7.0, None))
        x = grad(3)
        f(x).sum().backward()
        y = x.detach().clone().requires_grad_()
        Changing.apply(y, 2.0).sum().backward()
        close(x.grad, y.grad, "gradient")


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.neg() * ctx.factor, None


def test_a_view_of_what_the_graph_made_is_one_graph():
    def program(x):
        y = torch.tanh(x)
        return y * 2, Reversed.apply(y, 0.5) * y

    mine, theirs = (torch.linspace(-1, 1, 6, requires_grad=True) for _ in range(2))
    found, expected = dyncomp.compile(program, fullgraph=True)(mine), program(theirs)
    for each in (found, expected):
        (each[0].sum() + each[1].square().sum()).backward()
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(mine.grad, theirs.grad)


def test_a_view_is_not_copied_where_its_base_is_written_to():
    def program(x):
        y = x * 2
        z = Reversed.apply(y, 0.5)
        y.add_(1)
        return z

    x = torch.ones(3, requires_grad=True)
    compiled = dyncomp.compile(program, backend="eager")
    torch.testing.assert_close(compiled(x).detach(), program(x).detach())
    assert dyncomp.explain(program)(x).skipped


def test_a_write_beside_such_a_view_raises_as_before():
    def program(x):
        y = x * 2
        z = Reversed.apply(y, 0.5)
        y.add_(1)
        return z * 2

    x = torch.ones(3, requires_grad=True)
    for call in (program, dyncomp.compile(program, backend="eager")):
        with pytest.raises(RuntimeError, match="has been modified inplace"):
            call(x)


class OfObjects(Function):
    """Of a settings object and a dict, which ``backward`` reads."""

    @staticmethod
    def forward(ctx, x, settings, names):
        ctx.settings, ctx.names = settings, names
        return x * settings.factor + names["shift"]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.settings.factor * ctx.names["shift"], None, None


class Settings:
    def __init__(self, factor):
        self.factor = factor


def test_objects_are_handed_on_where_no_gradient_is_asked_for():
    settings, names = Settings(3.0), {"shift": 2.0}
    compiled = dyncomp.compile(lambda x: OfObjects.apply(x, settings, names) * 2, fullgraph=True)
    x = torch.arange(4.0)
    assert compiled(x).equal((x * 3 + 2) * 2)
    settings.factor, names["shift"] = 5.0, 1.0
    assert compiled(x).equal((x * 5 + 1) * 2)
    with torch.no_grad():
        assert compiled(x.clone().requires_grad_()).equal((x * 5 + 1) * 2)


def test_backward_sees_objects_as_they_are_when_it_runs():
    settings, names = Settings(3.0), {"shift": 2.0}
    compiled = dyncomp.compile(lambda x: OfObjects.apply(x * 1.0, settings, names) * 2)
    x = torch.arange(4.0).requires_grad_()
    y = compiled(x)
    settings.factor, names["shift"] = 7.0, 4.0
    y.sum().backward()
    assert x.grad.equal(torch.full((4,), 2 * 7.0 * 4.0))

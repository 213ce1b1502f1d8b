"""What a program writes between a forward and its backward pass, and to a module beside its layers."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn

import dyncomp  # noqa: E402


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_a_clone_is_saved_and_not_what_it_is_of(backend):
    """As MoCo writes to its queue."""

    def program(q, queue):
        return q @ queue.clone().detach() + q @ queue.t().clone().t()

    compiled = dyncomp.compile(program, backend=backend)
    grads = []
    for call in (program, compiled):
        q, queue = torch.linspace(0, 1, 12).reshape(3, 4).requires_grad_(), torch.ones(4, 5)
        result = call(q, queue)
        queue.mul_(2)
        result.sum().backward()
        grads.append(q.grad)
    torch.testing.assert_close(grads[1], grads[0])


def test_a_module_that_keeps_its_state_beside_a_recurrent_layer():
    class Stateful(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.hidden = nn.GRU(5, 6), None

        def forward(self, x):
            if self.hidden is None:
                self.hidden = torch.zeros(1, x.size(1), 6)
            y, h = self.rnn(x, self.hidden)
            self.hidden = h.detach()
            return y

    torch.manual_seed(0)
    plain, module = Stateful(), Stateful()
    module.load_state_dict(plain.state_dict())
    compiled = dyncomp.compile(module, fullgraph=True, backend="eager")
    for _ in range(3):
        x = torch.randn(4, 2, 5)
        torch.testing.assert_close(compiled(x), plain(x))
        torch.testing.assert_close(module.hidden, plain.hidden)

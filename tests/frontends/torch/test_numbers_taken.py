"""Python numbers taken from arrays are what the elements were then, whatever is written there later, and
numbers also where the element is one's part; NumPy's functions of tensors."""

import itertools

import numpy as np
import pytest

import dyncomp

torch = pytest.importorskip("torch")

DTYPES = ("float64", "float32", "int64", "int32", "bool", "complex128")
TAKEN = (
    "x[0].item()",
    "float(x[0])",
    "int(x[0])",
    "bool(x[0])",
    "complex(x[0])",
    "[x[0].item(), x[1].item()]",
)
TAKEN_OF_ONE = ("x.item()", "float(x)", "int(x)", "bool(x)", "complex(x)")
NUMPY_ONLY = ("x[0]", "x.item(0)", "x.tolist()")
TENSOR_ONLY = ("x.tolist()", "x.unbind()[0].item()", "x[:1].reshape(()).item()")
WRITES = ("x += 1", "x[0] = 5", "x[i] = y[0]", "x[:] = y")
TENSOR_WRITES = ("x.zero_()", "x.add_(1)", "x.copy_(y)")
WRITES_OF_ONE = ("x += 1", "x[()] = 5", "x[...] = y")
TENSOR_WRITES_OF_ONE = ("x.add_(1)", "x.zero_()")
USES = ("return c", "return c, x + 1", "return y * c", "return 7 if c else c")

PARTS = (
    "float(x[0, 0].imag)",
    "float(x[0, 0].real)",
    "float(x[0, 0].imag) + 1",
    "complex(x[0, 0].conj())",
    "complex(x[0, 0].imag)",
    "bool(x[0, 0].imag)",
    "x[0, 0].imag.item()",
    "float(x.imag[0, 0])",
    "[float(v) for v in x[0].real]",
    "(float(x[0, 0].imag), x[0, 0].imag)",
    "[1, 2, 3][int(x[0, 0].imag)]",
)
OF_NUMPY = (
    "np.asarray(x) + 1",
    "np.asanyarray(x) + 1",
    "np.ascontiguousarray(x)",
    "np.atleast_1d(x) * 2",
    "np.asarray(x).sum()",
    "np.asarray(x + 1)",
    "np.asarray(x.imag) + 1",
    "np.atleast_2d(x, x)[1] - 1",
    "np.sum(x)",
    "np.sin(x)",
    "np.shape(x)",
    "torch.sin(np.asarray(x))",
)


def _function(*lines):
    space = {"np": np, "torch": torch}
    exec("def f(x, y=None, i=0):\n" + "".join(f"    {line}\n" for line in lines), space)  # noqa: S102
    return space["f"]


def _outcome(f, args):
    """The result or the error's type, and what became of the arguments."""
    try:
        found = f(*args)
    except Exception as error:
        found = type(error)
    return type(found), repr(found), repr(args)


def _check(f, make):
    wanted = _outcome(f, make())
    compiled = dyncomp.compile(f)
    for _ in range(2):
        assert _outcome(compiled, make()) == wanted


def _rotated(taken, writes):
    """Each way to take a number twice, with writes and uses in turn."""
    write, use = itertools.cycle(writes), itertools.cycle(USES)
    return [(take, next(write), next(use)) for take in (*taken, taken[0]) for _ in range(2)]


def _numpy(text, dtype):
    return torch.tensor(text).to(getattr(torch, dtype)).numpy()


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning", "ignore::UserWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("of_one", (False, True))
def test_numbers_of_tensors(dtype, of_one):
    kind = getattr(torch, dtype)
    values = (1, 3) if of_one else ([1, 2], [3, 4])
    if of_one:
        cases = _rotated(TAKEN_OF_ONE, TENSOR_WRITES_OF_ONE + WRITES_OF_ONE)
    else:
        cases = _rotated(TAKEN + TENSOR_ONLY, TENSOR_WRITES + WRITES)
    for take, write, use in cases:
        f = _function(f"c = {take}", write, use)
        _check(f, lambda: tuple(torch.tensor(v).to(kind) for v in values))


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("dtype", ("float64", "int64", "complex128"))
@pytest.mark.parametrize("of_one", (False, True))
def test_numbers_of_numpy_arrays(dtype, of_one):
    values = (1, 3) if of_one else ([1, 2], [3, 4])
    cases = _rotated(TAKEN_OF_ONE, WRITES_OF_ONE) if of_one else _rotated(TAKEN + NUMPY_ONLY, WRITES)
    for take, write, use in cases:
        _check(_function(f"c = {take}", write, use), lambda: tuple(_numpy(v, dtype) for v in values))


def test_counter_that_is_a_size():
    f = _function("n = x.item()", "x.add_(1)", "return torch.ones(n), [i for i in range(n)], y[:n]")
    _check(f, lambda: (torch.tensor(2), torch.arange(5.0)))


def test_numbers_are_compiled():
    """In one graph: the copy is no break."""
    f = _function("c = x[0].item()", "x.zero_()", "return c")
    explained = dyncomp.explain(f)(torch.ones(2, dtype=torch.float64))
    assert "0 graph breaks" in explained.details()
    assert "1 graph with" in explained.details()


@pytest.mark.parametrize("dtype", ("complex64", "complex128"))
def test_numbers_of_parts(dtype):
    kind = getattr(torch, dtype)

    def make():
        return (torch.tensor([[1 + 2j, 3], [4, 5j]], dtype=kind),)

    for expression in PARTS:
        _check(_function(f"return {expression}"), make)
        _check(_function(f"c = {expression}", "x.zero_()", "return c"), make)


@pytest.mark.parametrize("expression", OF_NUMPY)
def test_functions_of_numpy(expression):
    _check(_function(f"return {expression}"), lambda: (torch.tensor([1 + 2j, 3]),))
    _check(_function(f"return {expression}"), lambda: (torch.tensor([1.0, 3.0]),))

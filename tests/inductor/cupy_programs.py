"""NumPy-style programs over an array module ``xp``, for CuPy: with their inputs as NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Program = Callable[..., Any]
Make = Callable[[], tuple[Any, ...]]
CASES: list[tuple[Program, Make]] = []


def r(*shape: int, dtype: str = "float64", seed: int = 0) -> Any:
    generator = np.random.default_rng(seed + sum(shape))
    if np.dtype(dtype).kind in "iu":
        return generator.integers(0, 9, shape).astype(dtype)
    return generator.standard_normal(shape).astype(dtype)


def case(*arrays: Any) -> Callable[[Program], Program]:
    """Register a program with the arrays that it takes; ``arrays`` may be one function that makes them."""

    def register(program: Program) -> Program:
        CASES.append((program, arrays[0] if callable(arrays[0]) else lambda: arrays))
        return program

    return register


@case(lambda: (r(5, 7), r(7)))
def chain(xp: Any, x: Any, y: Any) -> Any:
    return xp.exp(-xp.abs(x)) * y + xp.sqrt(x * x + 1.0) / 2


@case(lambda: (r(5, 7, dtype="float32"), r(5, 7, dtype="int32")))
def promotes(xp: Any, x: Any, n: Any) -> Any:
    return x * 2, x + n, n / 2, n * 2.5, n + np.float32(1), x * np.float64(2), n > 3, ~(x > 0)


@case(lambda: (r(3, 4, 5), r(3, 4, 5, dtype="float32")))
def reduces(xp: Any, x: Any, y: Any) -> Any:
    parts = [x.sum(), y.sum(axis=1), x.mean(axis=(0, 2)), xp.max(y, axis=-1, keepdims=True), y.min()]
    parts += [x.std(axis=0), xp.var(y, axis=1, ddof=1), x.argmax(axis=1), xp.argmin(y), (x > 0).any(axis=0)]
    return (*parts, xp.all(y < 10), xp.prod(x, axis=2), (x > 0).sum(axis=1), xp.sum(y, dtype="float64"))


@case(lambda: (r(40, 30),))
def softmax(xp: Any, x: Any) -> Any:
    e = xp.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@case(lambda: (r(6, 5), r(5, 4), r(4)))
def layer(xp: Any, x: Any, w: Any, b: Any) -> Any:
    return xp.maximum(x @ w + b, 0), xp.dot(x, w).T, xp.matmul(w.T, x.T), x.dot(w)


@case(lambda: (r(4, 6),))
def views(xp: Any, x: Any) -> Any:
    y = x * 2
    parts = y[1:, ::2], x.T, x[0], x[1, 2], y.reshape(3, 8)
    return *parts, x[::-1], x[None, :, 3], xp.transpose(x), y[2].ravel()


@case(lambda: (r(4, 6),))
def written(xp: Any, x: Any) -> Any:
    x[0] = 1.5
    x[1:, 2] += 3
    x *= 2
    x[x > 4] = -1
    x[3, 3] = x[0, 0]
    return x.sum()


@case(lambda: (r(5, 6),))
def one_element(xp: Any, x: Any) -> Any:
    """What an integer selects shares memory with the array."""
    first = x[0, 0, ...] if xp is np else x[0, 0]
    x += 1
    total = x.sum()
    total += first
    return first, total, x.max() - x.min()


@case(lambda: (r(8, 3), np.array([0, 3, 7, 3]), np.array([[2, 1], [0, 0]])))
def gathers(xp: Any, x: Any, rows: Any, more: Any) -> Any:
    return x[rows], x[rows, 1], x[:, more], xp.take(x, rows, axis=0), x[[0, 2]], x[more, 0]


@case(lambda: (r(8, 3), np.array([0, 3, 7])))
def scatters(xp: Any, x: Any, rows: Any) -> Any:
    x[rows] = 2.0
    x[rows, 1] += 5
    return x


@case(lambda: (r(5, 7), r(5, 7, dtype="float32"), r(7, 5)))
def chooses(xp: Any, x: Any, y: Any, z: Any) -> Any:
    clipped = xp.clip(x, -1, 1), x.clip(0, None), xp.minimum(x, y)
    return xp.where(x > 0, x, 0.0), xp.where(y > 0, y, z.T), *clipped


@case(lambda: (r(4, 5, seed=1), r(4, 5, seed=2)))
def joins(xp: Any, x: Any, y: Any) -> Any:
    a, b = xp.split(x, 2)
    return xp.concatenate([x, y]), xp.stack((x, y), axis=1), xp.vstack([a, b]), xp.hstack([x, y]), a + b


@case(lambda: (r(6),))
def creates(xp: Any, x: Any) -> Any:
    grid = xp.arange(6, dtype="float64") / 6
    total = xp.zeros(6) + xp.ones((2, 6)) * xp.linspace(0, 1, 6) + grid * x
    like = xp.zeros_like(x), xp.full_like(x, 2.0)
    return total, *like, xp.full((2, 3), 7), xp.eye(3), xp.array([1, 2, 3]) + 1


@case(lambda: (r(30), r(30, dtype="float32", seed=3)))
def scans(xp: Any, x: Any, y: Any) -> Any:
    return x.cumsum(), xp.cumsum(y), xp.diff(x), xp.roll(y, 3), xp.flip(x), xp.tile(y, 2)


@case(lambda: (np.array([1 + 2j, -0.5j, 3.0]), np.array([0.5, 1.5, -1.0])))
def complexes(xp: Any, z: Any, x: Any) -> Any:
    return z * x, z + 1j, z - z * 2, xp.conj(z), xp.abs(z), z.sum(), -z


@case(lambda: (r(40), r(40, seed=1)))
def numpys_names(xp: Any, x: Any, y: Any) -> Any:
    """NumPy's functions call CuPy's for its arrays."""
    return np.sin(x) + np.maximum(x, y), np.sum(x), np.concatenate([x, y]), np.zeros_like(x)


@case(lambda: (r(12, dtype="int64"), r(12, dtype="uint8")))
def integers(xp: Any, n: Any, m: Any) -> Any:
    bits = n & 3, n << 1, -n, xp.sign(n - 4)
    return n // 3, n % 4, n**2, m * 2, m + m, *bits, n.mean(), m.sum(), n.astype("float32")


@case(lambda: (r(20),))
def python_numbers(xp: Any, x: Any) -> Any:
    return x * float(x.sum()), int(x.argmax()), x.max().item()


@case(lambda: (r(6, 7)[:, ::-1], r(7, 6).T, r(12, 14)[::2, ::2]))
def layouts(xp: Any, a: Any, b: Any, c: Any) -> Any:
    return a + b * c, a.copy(), b + 1, xp.sqrt(abs(b)), c.sum(axis=0), a.astype("float32")


# -- one expression each, over arrays ``x`` and ``y`` (4 by 6), ``v`` (6) and ``s`` (4 by 4)
# Captured.
EXPRESSIONS = (
    "xp.sum(x,axis=0)",
    "xp.prod(x,1)",
    "xp.mean(x,axis=(0,1))",
    "xp.max(x,0)",
    "xp.min(x)",
    "xp.amax(x,axis=1)",
    "xp.amin(x)",
    "xp.all(x>0)",
    "xp.any(x>0,axis=1)",
    "xp.argmax(x,axis=0)",
    "xp.argmin(x)",
    "xp.var(x,axis=0)",
    "xp.std(x,ddof=1)",
    "xp.cumsum(x,axis=1)",
    "xp.cumprod(v)",
    "xp.clip(x,-1,1)",
    "xp.clip(x,None,0.5)",
    "xp.round(x)",
    "xp.around(x)",
    "xp.reshape(x,(6,4))",
    "xp.reshape(x,-1)",
    "xp.ravel(x)",
    "xp.transpose(x)",
    "xp.transpose(x,(1,0))",
    "xp.swapaxes(x,0,1)",
    "xp.moveaxis(x,0,1)",
    "xp.rollaxis(x,1)",
    "xp.squeeze(x[None])",
    "xp.expand_dims(x,1)",
    "xp.flip(x)",
    "xp.flip(x,axis=1)",
    "xp.flipud(x)",
    "xp.fliplr(x)",
    "xp.roll(x,2)",
    "xp.roll(x,2,axis=1)",
    "xp.repeat(v,3)",
    "xp.repeat(x,2,axis=0)",
    "xp.tile(v,3)",
    "xp.tile(x,(2,1))",
    "xp.broadcast_to(v,(4,6))",
    "xp.tril(s)",
    "xp.triu(s,1)",
    "xp.diagonal(s)",
    "xp.trace(s)",
    "xp.diff(v)",
    "xp.diff(x,axis=0)",
    "xp.rot90(x)",
    "xp.ascontiguousarray(x.T)",
    "xp.nan_to_num(x)",
    "xp.dot(x,y.T)",
    "xp.inner(v,v)",
    "xp.outer(v,v)",
    "xp.vdot(v,v)",
    "xp.tensordot(x,y,axes=2)",
    "xp.tensordot(x,y.T,axes=1)",
    "xp.isclose(x,y)",
    "xp.zeros_like(x)",
    "xp.ones_like(x,dtype='float32')",
    "xp.full_like(x,3)",
    "xp.copy(x)",
    "xp.concatenate([x,y],axis=1)",
    "xp.stack([x,y])",
    "xp.vstack([x,y])",
    "xp.hstack([x,y])",
    "xp.dstack([x,y])",
    "xp.column_stack([v,v])",
    "xp.split(v,3)",
    "xp.array_split(v,4)",
    "xp.hsplit(x,2)",
    "xp.vsplit(x,2)",
    "xp.zeros(3)+v[:3]",
    "xp.zeros((2,3),dtype='int32')+xp.asarray([1,2,3])",
    "xp.ones(6)*v",
    "xp.full((2,),2.5)",
    "xp.arange(6)*v",
    "xp.arange(1,7,dtype='float32')+v",
    "xp.linspace(0,1,6)*v",
    "xp.eye(4)@s",
    "xp.identity(4)+s",
    "xp.tri(4)*s",
    "x.sum(0)",
    "x.mean()",
    "x.max(axis=1,keepdims=True)",
    "x.min()",
    "x.all()",
    "(x>0).any()",
    "x.argmax()",
    "x.var()",
    "x.std(axis=0)",
    "x.cumsum()",
    "x.clip(0,1)",
    "x.conj()",
    "x.dot(y.T)",
    "x.swapaxes(0,1)",
    "x[None].squeeze()",
    "v.repeat(2)",
    "s.diagonal()",
    "s.trace()",
    "x.round()",
    "x.flatten()",
    "x.ravel()",
    "x.copy()",
    "x.astype('float32')",
    "x.astype(int)",
    "x.reshape(2,12)",
    "x.reshape((2,-1))",
    "x.transpose(1,0)",
    "x.T",
    "x.mT",
    "x.shape",
    "x.ndim",
    "x.size",
    "x.nbytes",
    "x.itemsize",
    "x.strides",
    "len(x)",
    "-x",
    "+x",
    "abs(x)",
    "x**2",
    "2.0**v",
    "x/y",
    "x-y",
    "x<y",
    "x!=y",
    "(x>0)&(y>0)",
    "(x>0)|(y>0)",
    "~(x>0)",
    "x@y.T",
    "xp.exp(x)",
    "xp.log(abs(x))",
    "xp.sqrt(abs(x))",
    "xp.sin(x)",
    "xp.arctan2(x,y)",
    "xp.hypot(x,y)",
    "xp.maximum(x,y)",
    "xp.fmin(x,y)",
    "xp.logical_and(x>0,y>0)",
    "xp.isnan(x)",
    "xp.floor(x)",
    "xp.rint(x)",
    "xp.power(abs(x),y)",
    "xp.square(x)",
    "xp.add(x,y)",
    "xp.negative(x)",
    "xp.reciprocal(x)",
    "xp.expm1(x)",
    "xp.log1p(abs(x))",
    "xp.tanh(x)",
    "xp.cbrt(x)",
    "xp.deg2rad(x)",
    "xp.signbit(x)",
    "xp.copysign(x,y)",
    "xp.where(x>0,x,y)",
    "xp.where(x>0,x,0)",
    "x[1]",
    "x[1:3,::2]",
    "x[...,0]",
    "x[:,None]",
    "x[-1,-1]",
    "x[xp.array([0,2])]",
    "xp.linalg.norm(v)",
    "xp.kron(v,v)",
    "xp.trapezoid(v)",
    "xp.shape(x)",
    "xp.ndim(x)",
    "xp.asarray(x) + 1",
    "xp.array(x.T) * 2",
    "xp.linalg.norm(x, axis=1)",
    "xp.atleast_2d(v) + 1",
    "xp.average(x)",
    "xp.sum(xp.abs(x-y)**2)",
    "isinstance(x, xp.ndarray)",
    "xp.pi*x",
    "x.sum().item()",
    "float(x.sum())",
    "xp.fabs(x)",
)

# Computed by CuPy itself, between graphs or within its own functions.
LEFT = (
    "xp.diag(v)",
    "xp.diag(s)",
    "xp.allclose(x,x)",
    "xp.where(x>0,1.0,0.0)",
    "xp.median(x)",
    "xp.ptp(x)",
    "xp.cross(v[:3],v[3:])",
    "xp.count_nonzero(x)",
    "xp.meshgrid(v,v)",
    "xp.cov(x)",
    "xp.einsum('ij,kj->ik',x,y)",
    "xp.pad(x,1)",
    "xp.interp(v,v,v)",
    "xp.convolve(v,v)",
    "xp.gradient(v)",
    "xp.sort(v)",
    "xp.argsort(v)",
    "xp.searchsorted(v,v)",
    "xp.bincount(xp.arange(3))",
    "xp.sign(x)",
    "x%2",
    "x//2",
    "xp.logaddexp(x,y)",
    "xp.angle(x)",
    "xp.real(x)",
    "x.real",
    "xp.nansum(x)",
    "xp.nanmean(x)",
    "xp.fft.fft(v)",
    "xp.linalg.solve(s,v[:4])",
    "xp.size(x)",
)


def expression(text: str) -> Program:
    """``f(xp, x, y, v, s)``, which returns what the expression gives."""
    names: dict[str, Any] = {}
    exec(f"def f(xp, x, y, v, s):\n    return {text}", names)
    found: Program = names["f"]
    return found


def operands() -> tuple[Any, ...]:
    x = r(4, 6)
    return x, r(4, 6, seed=1), x[0].copy(), x[:4, :4].copy()

"""Statements of random programs (``wide_gradients.py``).

``{a} {b} {c}`` are matrices, ``{u} {v}`` vectors, ``{s} {t}`` numbers, ``{z} {w}`` complex matrices; ``{o}``
is made, of the kind that the first letter says, ``{q}`` is a name for more. ``{n}`` is the size, ``{k}`` 1 or
2, ``{x}`` an axis, ``{r}`` a number. A comment ``?`` marks branches on data.
"""

from __future__ import annotations

_PLAIN = """
M {o} = {a} + {b} * {c}
M {o} = {a} / (2.0 + {b} ** 2)
M {o} = np.tanh({a} @ {b})
M {o} = {u} * {a}
M {o} = {a} * {u}[:, None] - {v}
M {o} = np.outer({u}, {v})
M {o} = {a} * {s}
M {o} = np.einsum("ij,kj->ik", {a}, np.sin({b}))
M {o} = np.einsum("i,ij,j->ij", {u}, {a}, {v})
M {o} = np.tensordot({a}, np.cos({b}), axes=([{x}], [0]))
M {o} = np.kron({a}[:1], np.tanh({u}[:, None]))
M {o} = np.where({a} > {r}, np.sin({a}), {b})
M {o} = np.where(np.abs({a}) < 1.0, {b}, {s})
M {o} = np.select([{a} > 0.5, {a} < {r} - 1.0], [{b}, np.tanh({a})], 0.5 * {a})
M {o} = np.minimum({a}, {u})
M {o} = np.fmax({a}, {b} * 0.5)
M {o} = np.clip({a}, -0.5, {b} ** 2)
M {o} = np.hypot({a}, {b} + 0.1)
M {o} = np.arctan2({a}, 1.5 + {b} ** 2)
M {o} = np.logaddexp({a}, {b})
M {o} = np.power(1.1 + {a} ** 2, 0.3 * np.tanh({b}))
M {o} = np.abs({a}) ** 1.5
M {o} = np.float_power(np.abs({a}) + 0.5, 0.7)
M {o} = np.copysign({a}, {b})
M {o} = np.mod({a}, 1.7 + np.abs({b}))
M {o} = np.sinc({a} * 0.7)
M {o} = np.nan_to_num({a}) * {b}
M {o} = np.arcsinh({a}) + np.arctan({b})
M {o} = np.cbrt(1.5 + {a} ** 2)
M {o} = np.exp2(-np.abs({a})) * np.expm1(0.1 * {b})
M {o} = np.square(np.sign({a}) * 0.5) + np.heaviside({a}, 0.5) * {b}
M {o} = np.deg2rad(40.0 * {a}) + np.degrees(0.01 * {b})
M {o} = {a}.T.copy()
M {o} = {a}.T @ {b}.T
M {o} = {a}.reshape(-1)[::-1].reshape({n}, {n})
M {o} = {a}.ravel(order="F").reshape(({n}, {n}))
M {o} = np.swapaxes({a}, 0, 1) * {b}
M {o} = np.rot90({a}, {k}) - {b}
M {o} = np.flip({a}, {x})
M {o} = np.roll({a}, {k})
M {o} = np.diff({a}, axis={x}, append=0.5)
M {o} = np.gradient({a}, axis={x})
M {o} = np.cumsum({a}, axis={x})
M {o} = np.cumprod(0.5 + np.tanh({a}), axis={x})
M {o} = np.maximum.accumulate({a}, axis={x})
M {o} = np.sort({a}, axis={x})
M {o} = np.take_along_axis({a}, np.argsort({b}, axis={x}), axis={x})
M {o} = {a} - {a}.mean(axis={x}, keepdims=True)
M {o} = {a} / (0.5 + {b}.std(axis={x}, keepdims=True))
M {o} = {a} - np.max({b}, axis={x}, keepdims=True)
M {o} = {a} * np.sum({b}, axis=(0, 1), keepdims=True)
M {o} = np.exp({a} - {a}.max(axis={x}, keepdims=True)); {o} /= {o}.sum(axis={x}, keepdims=True)
M {o} = {a} * np.linalg.norm({b}, axis={x}, keepdims=True)
M {o} = np.concatenate([{a}[:{k}], {b}[{k}:]], axis=0)
M {o} = np.vstack(({u}, {a}[1:]))
M {o} = np.column_stack([{u}, {a}[:, 1:]])
M {o} = np.stack([{u} * i for i in range({n})])
M {o} = np.stack([{u}, *{a}[1:]], axis={x})
M {o} = np.block([[{a}[:1, :1], {b}[:1, 1:]], [{a}[1:, :1], {b}[1:, 1:]]])
M {o} = np.pad({a}[1:], ((0, 1), (0, 0)))
M {o} = np.pad({a}[:-1, :-1], ((1, 0), (0, 1)), mode="edge")
M {o} = np.tile({u}, ({n}, 1)) * {a}
M {o} = np.repeat({u}[:, None], {n}, axis=1)
M {o} = np.broadcast_to({u}, ({n}, {n})) + {a}
M {o} = {a}[[2, 0, 1, 1][:{n}]]
M {o} = {a}[:, np.arange({n})[::-1]]
M {o} = {a}[np.ix_([2, 0, 1, 1][:{n}], [0, 2, 2, 1][:{n}])]
M {o} = np.take({a}, [1, 1, 0, 2][:{n}], axis={x}, mode="clip")
M {o} = np.diag({u}) + np.diag({a}.diagonal(), 0)
M {o} = np.tril({a}) + np.triu({b}, {k})
M {o} = np.vander({u}, {n}) * 0.3
M {o} = np.meshgrid({u}, {v})[{x}]
M {o} = np.cov({a}) + {b}
M {o} = np.corrcoef({a}) * 0.3 + {b}
M {o} = np.cross({a}[:, :3], {b}[:, [1, 2, 0]])[:, [0, 1, 2, 0][:{n}]]
M {o} = np.fromfunction(lambda i, j: i - j, ({n}, {n})) * {a}
M {o} = np.interp({a}, [-1.0, 0.0, 1.5], [0.2, {r}, 1.0]) * {b}
M {o} = np.interp({a}, np.linspace(-2.0, 2.0, {n}), {u})
M {o} = np.polyval({u}, 0.5 * np.tanh({a}))
M {o} = np.linalg.inv({a} * 0.1 + 2.0 * np.eye({n}))
M {o} = np.linalg.solve({a} * 0.1 + 2.0 * np.eye({n}), {b})
M {o} = np.linalg.cholesky({a} @ {a}.T * 0.2 + np.eye({n}))
M {o} = np.linalg.qr({a} + 3.0 * np.eye({n}))[1]
M {o} = np.linalg.qr({a} + 3.0 * np.eye({n})).Q * {b}
M {o} = np.linalg.pinv({a}[:, :2] + np.eye({n})[:, :2]) .T @ {b}[:2]
M {o} = np.linalg.matrix_power(0.5 * np.tanh({a}), {k} + 1)
M {o} = np.linalg.multi_dot([{a}, 0.3 * {b}, {c}])
M {o} = np.linalg.lstsq({a} + 3.0 * np.eye({n}), {b}, rcond=None)[0]
M {o} = np.linalg.tensorsolve({a} + 4.0 * np.eye({n}), {u})[:, None] * {b}
M {o} = sl.expm(0.3 * np.tanh({a}))
M {o} = sl.solve_triangular({a} + 4.0 * np.eye({n}), {b}, lower=True)
M {o} = sl.cho_solve(sl.cho_factor({a} @ {a}.T + np.eye({n}), lower=True), {b})
M {o} = sl.toeplitz({u}) + {a}
M {o} = special.expit({a}) * special.erf({b})
M {o} = special.gammaln(1.2 + np.abs({a}))
M {o} = special.psi(1.5 + {a} ** 2) * 0.5
M {o} = special.xlogy(1.0 + {a} ** 2, 1.3 + np.abs({b}))
M {o} = special.log_ndtr({a}) * 0.2
M {o} = special.softmax({a}, axis={x})
M {o} = special.log_softmax({a} * {b}, axis={x})
M {o} = special.i0e({a}) + special.j0({b})
M {o} = special.entr(0.1 + np.abs({a}))
M {o} = np.real(np.fft.ifft2(np.fft.fft2({a}) * (0.5 - 0.2j)))
M {o} = np.fft.irfft(np.fft.rfft({a}, axis={x}) ** 2, n={n}, axis={x}) * 0.1
M {o} = np.abs(np.fft.fft({a}, axis={x}) + 0.3) * 0.3
M {o} = np.fft.fftshift({a}, axes={x})
M {o} = np.array([[{s}] * {n}] * {n}) * {a}
M {o} = np.array([np.sin({u}), {v}, {u} * {v}, {v}])[:{n}]
M {o} = np.asarray({a}) + np.full_like({b}, 0.2)
M {o} = {a}.astype(np.float64).clip(-1.0, 1.0)
M {o} = (lambda m, s=0.5: m * s + m[::-1])({a})
M {o} = sum({a}[i] * {u}[i] for i in range({n})) * {b}
M {o} = np.sqrt(({a}[:, None, :] - {b}[None, :, :]) ** 2 + 0.3).sum(-1)
M {o} = np.linalg.norm({a}[:, None] - 2.0 * {b}[None], axis=-1)
M {o} = np.trapezoid(np.stack([{a}, {b}, {c}]), dx=0.5, axis=0)
M {o} = np.convolve({u}, {v}, mode="same")[:, None] * {a}
M {o} = np.nanmean(np.stack([{a}, {b}]), axis=0)
M {o} = np.ptp({a}, axis={x}, keepdims=True) * {b}
M {o} = np.percentile(np.stack([{a}, {b}, {c}]), 30.0, axis=0)
M {o} = np.median(np.stack([{a}, {b}, {c}, {a} * {b}]), axis=0)
M {o} = np.average(np.stack([{a}, {b}]), axis=0, weights=[0.3, 0.7])
M {o} = np.delete(np.vstack([{a}, {u}]), {k}, axis=0)
M {o} = np.insert({a}[1:], {k}, {u}, axis=0)
M {o} = np.append({a}[:-1], {u}[None], axis=0)
M {o} = np.hsplit({a}, {n})[{k}] * {b}
M {o} = np.array_split({a}, 2)[0][0] + {b}
M {o} = np.atleast_2d({u}) * {a}
M {o} = np.moveaxis(np.stack([{a}, {b}]), 0, -1).mean(-1)
M {o} = np.lib.stride_tricks.sliding_window_view(np.concatenate([{u}, {v}]), {n})[:{n}] + {a}
V {o} = {a} @ {u}
V {o} = {u} @ {a} + {v}
V {o} = {a}[{k}] * {u}
V {o} = {a}[:, {k}]
V {o} = {a}.sum(axis={x})
V {o} = np.prod(0.5 + np.tanh({a}), axis={x})
V {o} = {a}.max(axis={x}) - {b}.min(axis={x})
V {o} = {a}.var(axis={x}, ddof=1)
V {o} = np.diag({a}) + {u}
V {o} = {a}.diagonal() * {a}.trace()
V {o} = np.linalg.solve({a} * 0.1 + 2.0 * np.eye({n}), {u})
V {o} = np.linalg.eigvalsh({a} @ {a}.T + np.diag(np.arange({n}) * 3.0))
V {o} = np.linalg.svd({a}, compute_uv=False)
V {o} = np.linalg.lstsq({a}[:, :2] + np.eye({n})[:, :2], {u}, rcond=None)[0][[0, 1, 1, 0][:{n}]]
V {o} = np.linalg.lstsq({a} + 3.0 * np.eye({n}), {u})[0]
V {o} = np.cumsum({u}) * {v}
V {o} = np.sort({u})[::-1]
V {o} = {u}[np.argsort({v})]
V {o} = np.log1p(np.exp({u}))
V {o} = special.logsumexp({a}, axis={x})
V {o} = special.softmax({u})
V {o} = np.concatenate([{u}[1:], {v}[:1]])
V {o} = np.convolve({u}, {v}[:2], mode="same")
V {o} = np.correlate({u}, {v}, mode="same")
V {o} = np.where({u} > {r}, {u} * {s}, {v})
V {o} = np.interp({u}, np.linspace(-1.0, 1.0, {n}), {v})
V {o} = np.linalg.norm({a}, axis={x})
V {o} = {u} / np.linalg.norm({u} + 0.1)
V {o} = np.trapezoid({a}, axis={x})
V {o} = np.add.reduce({a}, axis={x})
V {o} = np.bincount([0, 1, 1, 2][:{n}], weights={u}, minlength={n})
V {o} = np.array([{s}, {t}, {s} * {t}, 1.0][:{n}])
V {o} = np.linspace({s}, {t}, {n})
V {o} = {u}.repeat(2)[::2] - {v}
V {o} = np.abs(np.fft.rfft({u})).sum() * {v}
V {o} = np.median({a}, axis={x})
V {o} = np.quantile({a}, 0.35, axis={x})
V {o} = np.logaddexp.reduce({a}, axis={x})
V {o} = np.array(list(map(lambda e: e * 0.5, {u})))
V {o} = np.inner({a}, {u})
V {o} = np.roll({u}, -{k}) * {v}
V {o} = {a}.flat[:{n}] * 1.0
V {o} = np.piecewise({u}, [{u} < 0.0, {u} >= 0.0], [0.5, 2.0]) + {v}
S {o} = {a}.sum() * 0.1
S {o} = {u} @ {v}
S {o} = {u}[{k}] * {a}[0, {k}]
S {o} = {a}.mean() + {b}.std()
S {o} = np.linalg.det({a} * 0.3 + np.eye({n}))
S {o} = np.linalg.slogdet({a} * 0.1 + 2.0 * np.eye({n}))[1]
S {o} = np.linalg.norm({a})
S {o} = np.linalg.norm({u}, 3)
S {o} = np.linalg.norm({a}, {k})
S {o} = np.linalg.norm({a}, "nuc") * 0.3
S {o} = np.trace({a} @ {b})
S {o} = np.tanh({s}) * {t} + 0.3
S {o} = max({u}) - min({v})  # ?
S {o} = sum({u}) * 0.5
S {o} = np.median({a})
S {o} = np.vdot({a}, {b})
S {o} = np.einsum("ii", {a})
S {o} = np.quantile({u}, 0.3)
S {o} = {u}.prod()
S {o} = np.linalg.cond({a} + 3.0 * np.eye({n})) * 0.1
S {o} = special.logsumexp({u})
S {o} = np.amax({a}) * {s}
S {o} = np.ptp({u})
S {o} = {a}[{u}.argmax(), 0]
S {o} = np.nansum({u} * {v})
S {o} = np.cov({u}, {v})[0, 1]
C {o} = {a} + 1j * {b}
C {o} = {a} * np.exp(1j * {b})
C {o} = np.fft.fft({a}, axis={x}) * 0.3
C {o} = np.fft.fft2({a}) * {s} * 0.2
C {o} = {z} * np.conj({w}) + 0.2
C {o} = {z} @ {w}.T * 0.3
C {o} = {z} / (2.0 + np.abs({w}))
C {o} = np.tanh({z} * 0.2) + {w} * 1j
C {o} = np.sqrt({z} + 4.0) * {a}
C {o} = np.exp(0.2 * {z}) - np.log({w} + 5.0)
C {o} = np.sin({z} * 0.3) * np.cos(0.2 * {w})
C {o} = np.where({a} > 0.0, {z}, {w} * 0.5)
C {o} = {z} ** 2 * 0.3
C {o} = np.fft.ifft({z}, axis={x})
C {o} = np.linalg.inv({z} * 0.1 + 2.0 * np.eye({n}))
C {o} = np.linalg.solve({z} * 0.1 + 2j * np.eye({n}), {w})
C {o} = np.linalg.cholesky({z} @ {z}.conj().T * 0.1 + np.eye({n}))
C {o} = np.linalg.lstsq({z} + 4.0 * np.eye({n}), {w}, rcond=None)[0]
C {o} = np.linalg.qr({z} + 3.0 * np.eye({n}))[1]
C {o} = np.cumsum({z}, axis={x}) * {u}
C {o} = {z}.conj().T - {a}
C {o} = np.stack([{z}[0] * i for i in range({n})])
C {o} = np.prod(np.stack([{z}, 0.3 * {w} + 1.0]), axis=0)
C {o} = np.einsum("ij,jk->ik", {z}, 0.3 * {w})
C {o} = np.array([{z}[0], {w}[1], {z}[2], {w}[0]])[:{n}]
M {o} = np.abs({z}) * 0.3
M {o} = {z}.real * {w}.imag
M {o} = np.angle({z} + 3.0)
M {o} = ({z} * np.conj({z})).real * 0.2
M {o} = np.imag(np.exp(1j * {a})) + np.real({z})
V {o} = np.linalg.eigvalsh({z} @ {z}.conj().T + np.diag(np.arange({n}) * 3.0))
V {o} = np.linalg.svd({z}, compute_uv=False)
V {o} = np.abs({z} @ {u})
V {o} = np.linalg.norm({z}, axis={x})
S {o} = np.abs({z}.sum())
S {o} = np.abs(np.linalg.det(0.3 * {z} + np.eye({n})))
S {o} = np.linalg.slogdet({z} * 0.1 + np.eye({n}))[1]
S {o} = np.vdot({z}, {w}).real * 0.2
S {o} = np.linalg.norm({z})
"""

# of several lines: writes, views, loops, containers
_LONGER = """
M
{o} = {a}.copy()
{o}[{k}:] *= {b}[{k}:]
{o}[:, 0] = {u}
---
M
{o} = np.zeros(({n}, {n}))
{o}[:, {k}] = {a}[{k}]
{o} += {b}
---
M
{o} = {a} * 1.0
{q} = {o}[1:, :2]
{q} *= 0.5
{o}[0] += {u} * {q}[0, 0]
---
M
{o} = {a} + 0.0
{q} = {o}.T
{q}[1:] -= {b}[1:]
{o}[0] = {q}[1]
---
M
{o} = {a} - 0.1
{q} = {o}.reshape(-1)
{q}[::2] = np.sin({q}[::2])
---
M
{o} = {a} - 0.1
{o}.ravel()[1:{n}] = {u}[1:] * 2.0
---
M
{o} = {a} * 1.0
{o}.flat[::{n} + 1] = {u}
---
M
{o} = {a} - 0.1
np.add.at({o}, np.array([0, 1, 0]), {b}[:3])
---
M
{o} = {a} * 0.9
np.fill_diagonal({o}, 0.3)
{o} = {o} * {b}
---
M
{o} = {a} * 1.0
{o}[{o} > 0.4] = 0.1
---
M
{o} = {a} * 1.0
{o}[{b} > 0.0] *= {s}
---
M
{o} = {a} * 1.0
{o}[np.arange({n}), np.arange({n})[::-1]] += {u}
---
M
{o} = {a} * 1.0
{o}[[0, 2], [1, 1]] = {u}[:2]
---
M
{o} = {a} * 1.0
np.put_along_axis({o}, {b}.argmax(axis=1)[:, None], {u}[:, None], axis=1)
---
M
{o} = np.empty_like({a})
np.multiply({a}, {b}, out={o})
---
M
{o} = {a} + 1.0
np.sin({b}, out={o}, where={c} > 0.0)
---
M
{o} = np.zeros_like({a})
np.add({a}[1:], {u}, out={o}[1:])
np.matmul({a}, {b}, out={o}[:]) if {k} == 1 else None
---
M
{o} = np.empty(({n}, {n}))
np.matmul({a}, {b}, out={o})
np.tanh({o}, out={o})
---
M
{o} = np.empty_like({a})
np.cumsum({a}, axis={x}, out={o})
np.clip({o}, -1.0, 1.0, out={o})
---
M
{o} = {a} * 1.0
np.sum({b}, axis=0, out={o}[0])
---
M
{o} = {a} * 1.0
np.copyto({o}, {b}, where={c} > 0.2)
---
M
{o} = {a} * 1.0
np.maximum({o}, {b}, out={o})
{o} **= 2
---
M
{o} = {a}
for i in range({n}):
    {o} = np.tanh({o} @ {b} * 0.5) + {u}[i]
---
M
{o} = {a} * 1.0
for i in range(1, {n}):
    {o}[i] = {o}[i - 1] * 0.5 + {b}[i]
---
M
{o} = {a} * 1.0
for i in range({n}):
    for j in range(i):
        {o}[i, j] -= {o}[j, i] * {u}[j]
---
M
{q} = []
for row in {a}:
    {q}.append(row * row.sum())
{o} = np.array({q})
---
M
{q} = {{"a": {a}, "b": {b}}}
{q}["c"] = {q}["a"] * {q}["b"]
{q}["a"] = np.sin({q}["c"])
{o} = sum({q}.values())
---
M
{q} = [{a}, {b}]
{q}.extend([{a} * {b}])
{q}[0], {q}[1] = {q}[1], {q}[0] * 0.5
{o} = {q}.pop() - {q}[-1]
---
M
def {q}(m, depth):
    return m if depth == 0 else np.sin({q}(m * {b}, depth - 1))
{o} = {q}({a}, {k})
---
M
{q} = np.zeros((2, {n}, {n}))
{q}[0] = {a}
{q}[1, 1:] = {b}[1:]
{q}[1] -= {q}[0]
{o} = {q}.sum(axis=0) * {q}[1]
---
M
{q} = np.zeros(({n} + 1, {n}))
for i in range({n}):
    {q}[i + 1] = {q}[i] * 0.7 + {a}[i]
{o} = {q}[1:]
---
M
{o} = {a}.copy()
{q} = {o}[::-1]
{o} += {q} * 0.5
---
M
{o} = {a}.copy()
{o}[1:] = {o}[:-1]
{o}[:, :-1] += {o}[:, 1:] * {s}
---
M
{q} = np.split({a}, [1, 2])
{q}[0] = {q}[0] * 2.0
{o} = np.concatenate({q}[::-1])
---
V
{o} = {u} * 1.0
{o}[0], {o}[1] = {o}[1] * 0.5, {o}[0]
---
V
{o} = np.zeros({n})
for i, e in enumerate({v}):
    {o}[i] = e * {u}[i] + {o}[i - 1]
---
V
{o} = np.empty({n})
np.dot({a}, {u}, out={o})
{o} -= {o}.mean()
---
S
{o} = 0.0
for i in range({n}):
    {o} = {o} * 0.5 + {u}[i] * {v}[-i]
---
S
{o} = 1.0
for e in {u}:
    {o} *= 1.0 + 0.3 * e
---
S
{q} = [e * e for e in {u}]
{o} = sum({q}) / len({q})
---
C
{o} = np.zeros(({n}, {n}), complex)
{o}[:, 0] = {u}
{o} += 1j * {a}
---
C
{o} = {z} * 1.0
{o}.real[1:] *= 0.5
{o}.imag = {a}
---
C
{o} = {z} * 1.0
{o}[{k}:] += {a}[{k}:]
{o}[0] = np.conj({o}[1])
---
C
{o} = {z} * 0.5
for i in range(2):
    {o} = {o} * {w} * 0.3 + {z}
---
M
if {s} > {r}:  # ?
    {o} = {a} * 2.0
else:
    {o} = np.sin({a}) + {b}
---
M
{o} = {a} * 1.0
if {o}[0, 0] < {u}[0]:  # ?
    {o}[0] *= {s}
---
M
{o} = {a} * 1.0
for i in range({n}):
    if {o}[i, 0] > 0:  # ?
        {o}[i] = {o}[i] * {u}
    elif {o}[i, 1] > 0.5:
        continue
    else:
        {o}[i] -= 0.1
---
M
{o}, {q} = {a} * 0.5, 0
while np.abs({o}).max() < 3.0 and {q} < 6:  # ?
    {o} = {o} * 1.7 + 0.1 * {b}
    {q} += 1
---
S
{o}, {q} = {s} * 1.0, 0
while abs({o}) < 2.0 and {q} < 8:  # ?
    {o} = {o} * 1.5 + {t} * 0.1 + 0.1
    {q} += 1
---
V
{o} = {u}[{u} > 0.0].sum() * {v}  # ?
---
V
{o} = np.array([e * 2.0 if e > 0.0 else np.sin(e) for e in {u}])  # ?
---
V
try:
    {o} = {u} * 0.5 if {u}.sum() > 0.0 else {u} / 0  # ?
    assert {u}[0] > 0.0
except AssertionError:
    {o} = {v} * 2.0
---
M
{o} = {a} * float({u}.size)
print(end="")  # ?
{o} = {o} + {b}
---
M
{q} = np.linalg.eigh({a} + {a}.T + np.diag(np.arange({n}) * 4.0))
{o} = ({q}[1] * np.tanh({q}[0])) @ {q}[1].T
---
M
{q} = np.linalg.svd({a} + np.diag(np.arange({n}) * 3.0 + 1.0), full_matrices=False)
{o} = ({q}[0] * np.tanh({q}[1])) @ {q}[2]
---
M
{q} = np.linalg.svd({a} + np.diag(np.arange({n}) * 3.0 + 1.0))
{o} = ({q}[0] * np.tanh({q}[1])) @ {q}[2]
---
C
{q} = np.linalg.svd({z} + np.diag(np.arange({n}) * 3.0))
{o} = ({q}[0] * np.tanh({q}[1])) @ {q}[2]
---
C
{q} = np.linalg.eigh({z} + {z}.conj().T + np.diag(np.arange({n}) * 4.0))
{o} = ({q}[1] * np.tanh({q}[0])) @ {q}[1].conj().T
"""

# writes into a value that was made before
_CHANGES = """
M {o}[{k}] = {u}
M {o}[:] = {o} * 0.5
M {o} += {a} * 0.3
M {o} *= {s}
M {o}[0, 1:] -= {u}[1:]
M {o}[1:, 0] = 0.2
M np.tanh({o}, out={o})
V {o} += {u}
V {o}[{k}] = {s}
V {o}[1:] *= {v}[1:]
C {o} *= 0.5
C {o}[0] = {u}
"""

ENDS = [
    "{a}.sum()",
    "({a} ** 2).mean()",
    "np.linalg.norm({a})",
    "{a}.max() + {b}.min()",
    "({a} * {b}).sum()",
    "np.log(np.exp(np.tanh({a})).sum())",
    "{a}.var() + np.median({b})",
    "np.trace({a} @ {b}) + ({u} ** 2).sum()",
    "({u} * {v}).sum() + {s}",
    "({u} @ {a} @ {v}) * {s}",
    "np.sum({a} * np.arange({n})) + np.sin({u}).sum() + {s} * {t}",
]


def _longer() -> list[tuple[str, str]]:
    found = []
    for block in _LONGER.strip().split("\n---\n"):
        kind, *lines = block.splitlines()
        found.append((kind, "\n    ".join(lines)))
    return found


def _lines(text: str) -> list[tuple[str, str]]:
    return [(line[0], line[2:]) for line in text.strip().splitlines()]


STATEMENTS = [*_lines(_PLAIN), *_longer(), *_longer()]
CHANGES = _lines(_CHANGES)

# ruff: noqa: E501
"""Small NumPy programs, one or more for every function, method and attribute with a rule.

Written as text so that test ids read as the program; ``X`` below gives the arguments. ``loose``: the
memory order of results, or sharing of memory, is knowingly not NumPy's.
"""

from __future__ import annotations

import numpy as np

_rng = np.random.default_rng(7)


def arguments() -> dict[str, object]:
    """Arguments by name; fresh ones for every call."""
    rng = np.random.default_rng(7)
    x = rng.uniform(0.1, 2.0, (3, 4))
    n = rng.integers(-9, 9, (3, 4))
    holes = x.copy()
    holes[0, 1] = np.nan
    holes[2, 3] = np.nan
    return {
        "x": x,
        "y": rng.uniform(-1, 1, 4),
        "c": rng.uniform(-1, 1, (3, 1)),
        "f": x.astype(np.float32),
        "h": x.astype(np.float16),
        "n": n,
        "u": np.abs(n).astype(np.uint8),
        "b": n > 0,
        "z": x + 1j * rng.uniform(-1, 1, (3, 4)),
        "s": np.float64(1.75),
        "k": np.int64(2),
        "zero": np.array(2.5),
        "t": rng.uniform(0.1, 2.0, (2, 3, 4)),
        "w": np.asfortranarray(x)[::-1, ::2],
        "holes": holes,
        "m": x[:, :3] @ x[:, :3].T + 3 * np.eye(3),
        "e": np.zeros((0, 3)),
        "i": np.array([2, 0, 1, 1]),
        "edge": np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.5, -2.5, 3.5]),
    }


PROGRAMS = """
np.add(x, y)
np.add(x, c) + zero
np.subtract(n, 2) * 3
np.multiply(f, 2.5)
np.divide(n, 4)
np.floor_divide(n, 4), np.remainder(n, 4), np.mod(n, -3), np.fmod(n, 4)
np.divmod(n, 3)
np.divmod(x, 0.3)
np.power(x, 3), np.power(x, 0.5), np.power(x, 2), np.power(x, -1), np.power(x, y)
np.float_power(n, 2)
n ** 2, n ** 3, x ** 2, b ** 2, u ** 2, x ** 0.5, x ** -1
2 ** x, 2.0 ** f
np.negative(x), np.positive(x), np.absolute(y), np.fabs(y), np.sign(y), np.sign(n)
np.sqrt(x), np.square(n), np.cbrt(y), np.reciprocal(x)
np.exp(f), np.exp2(x), np.expm1(x), np.log(x), np.log2(x), np.log10(x), np.log1p(x)
np.sin(x), np.cos(x), np.tan(x), np.arcsin(y), np.arccos(y), np.arctan(x), np.arctan2(x, y)
np.sinh(x), np.cosh(x), np.tanh(x), np.arcsinh(x), np.arccosh(x + 1), np.arctanh(y)
np.sin(n), np.sqrt(u), np.exp(b)
np.hypot(x, y), np.copysign(x, y), np.nextafter(x, y), np.heaviside(y, 0.5)
np.logaddexp(x, y), np.logaddexp2(x, y)
np.degrees(x), np.radians(f), np.deg2rad(h), np.rad2deg(x)
np.maximum(x, y), np.minimum(n, 0), np.fmax(holes, 1.0), np.fmin(holes, 1.0)
np.equal(n, 0), np.not_equal(n, 0), np.less(x, y), np.less_equal(x, 1), np.greater(x, 1), np.greater_equal(n, u)
np.logical_and(n, b), np.logical_or(x, b), np.logical_xor(n, b), np.logical_not(n)
np.bitwise_and(n, 3), np.bitwise_or(u, 3), np.bitwise_xor(b, True), np.invert(n), np.invert(b)
np.left_shift(n, 2), np.right_shift(n, 1), n << 1, n >> 1, n & 3, n | 4, n ^ 1, ~n
np.gcd(n, 6), np.lcm(u, np.uint8(4))
np.isnan(edge), np.isinf(edge), np.isfinite(edge), np.signbit(edge), np.isnan(n), np.isfinite(n)
np.floor(edge), np.ceil(edge), np.trunc(edge), np.rint(edge), np.floor(n), np.fix(edge)
np.modf(x * 3), np.modf(edge)
np.ldexp(x, n)
np.spacing(x)
np.conjugate(z), np.conj(x), abs(z), np.angle(z), np.angle(y), np.angle(z, deg=True)
z * z, z / (z + 1), np.exp(z), np.sqrt(z), z == z, z.conj()
np.bitwise_count(n)
u + 1, u + np.int16(300), u - u, u < -1, u == 300, 300 > u
x + k, f + s, f + 1.5, f * np.float64(2), n / 2, n // 2, n % 3, -n, +x
1 - x, 2 / x, 7 // n.clip(1), 3 % n.clip(1), x @ y
abs(n), x > 1, x != 1, y <= c
np.add(x, 1, dtype=np.float32, casting='same_kind')
np.add(f, f, dtype='f8')
np.matmul(x, y), np.matmul(t, x.T), x.T @ x, np.matmul(y, x.T), np.matmul(t, t.transpose(0, 2, 1))
np.dot(x, y), np.dot(y, y), np.dot(x, x.T), np.dot(t, y), np.dot(2, x), x.dot(y)
np.vdot(y, y), np.vdot(z, z), np.inner(x, x), np.outer(y, y), np.vecdot(x, x)
np.tensordot(x, x.T, 1), np.tensordot(t, t, axes=([0, 1], [0, 1])), np.tensordot(t, x, axes=[[2], [1]])
np.kron(x, c)
np.cross(x[:, :3], x[:, 1:])
np.trace(x), np.trace(m, offset=1), m.trace()
np.linalg.norm(x), np.linalg.norm(x, axis=1), np.linalg.norm(n, 1, axis=0), np.linalg.norm(y, np.inf), np.linalg.norm(y, 3)
np.linalg.norm(x, 'fro'), np.linalg.norm(x, 1), np.linalg.norm(x, np.inf), np.linalg.norm(x, axis=1, keepdims=True)
np.linalg.solve(m, m[0]), np.linalg.solve(m, m[:, :2]), np.linalg.inv(m), np.linalg.det(m)
np.linalg.cholesky(m), np.linalg.eigvalsh(m), np.linalg.matrix_power(m, 3), np.linalg.matrix_rank(m)
np.linalg.multi_dot([x, x.T, x])
np.linalg.slogdet(m), np.linalg.pinv(x), np.linalg.svdvals(x)
x.sum(), x.sum(0), x.sum(axis=(0, 1)), x.sum(-1, keepdims=True), n.sum(), u.sum(), b.sum(), f.sum(0), u.sum(dtype='u1')
np.sum(x, where=b), np.sum(x, initial=5), np.sum(e), np.sum(e, axis=0), np.sum(zero), np.sum(s)
x.prod(), n.prod(1), np.prod(u)
x.max(), x.max(0), n.min(1, keepdims=True), np.max(x, initial=9), np.amin(x), np.max(x, where=b, initial=0), b.max()
x.any(), b.all(), b.any(0), np.all(n, axis=1), np.any(n > 8), x.all(keepdims=True)
x.mean(), n.mean(0), f.mean(1), h.mean(), x.mean(where=b), z.mean(), np.mean(x, dtype='f4')
x.var(), x.var(0, ddof=1), f.std(1), z.var(), n.std(), np.var(x, where=b), x.std(axis=1, keepdims=True)
np.average(x), np.average(x, axis=0), np.average(x, returned=True)
np.argmax(x), x.argmin(0), np.argmax(x, axis=1, keepdims=True), np.argmin(w)
np.ptp(x), np.ptp(n, axis=0)
np.count_nonzero(n), np.count_nonzero(n, axis=0), np.count_nonzero(n, keepdims=True)
np.cumsum(x), x.cumsum(0), np.cumprod(x, axis=1), np.cumsum(u, axis=0), np.cumsum(b), np.cumulative_sum(y, include_initial=True)
np.nansum(holes), np.nansum(holes, axis=0), np.nanprod(holes), np.nanmean(holes, axis=0), np.nanmax(holes), np.nanmin(holes, axis=1)
np.nanvar(holes), np.nanstd(holes, axis=0, ddof=1), np.nancumsum(holes), np.nancumprod(holes, axis=0), np.nanmean(n)
np.median(x), np.median(n, axis=0), np.median(x, axis=1, keepdims=True), np.median(f), np.median(t, axis=(0, 2)), np.median(holes, axis=0)
np.percentile(x, 30), np.percentile(x, [10, 50, 90], axis=0), np.quantile(f, 0.25), np.quantile(n, [0.1, 0.8]), np.percentile(f, 77.5, axis=1)
np.cov(x), np.cov(x, rowvar=False), np.cov(y), np.corrcoef(x), np.cov(y, y * 2)
np.add.reduce(x), np.multiply.reduce(x, axis=1), np.maximum.reduce(x, axis=None), np.logical_and.reduce(n), np.add.reduce(x, (0, 1))
np.add.accumulate(x), np.maximum.accumulate(n, axis=1), np.multiply.accumulate(y), np.minimum.accumulate(y), np.logical_or.accumulate(b)
np.add.outer(y, y), np.multiply.outer(y, x), np.subtract.outer(y, 2)
np.bitwise_or.reduce(b), np.logical_xor.reduce(b), np.fmax.reduce(holes)
np.zeros((2, 3)), np.ones(4, dtype=int), np.zeros((2, 3), order='F'), np.full((2, 2), 7), np.full(3, s), np.full((2, 4), y), np.ones(())
np.zeros_like(x), np.zeros_like(w), np.ones_like(n), np.full_like(n, 2.7), np.zeros_like(x, dtype='f4'), np.zeros_like(x.T), np.full_like(x, 1, shape=(2,))
np.empty((2, 3)).shape, np.empty_like(w).strides
np.eye(3), np.eye(3, 4, 1), np.identity(2), np.eye(3, k=-1, dtype=bool), np.tri(3, 4, 1)
np.arange(5), np.arange(2, 40, 3), np.arange(0, 1, 0.1), np.arange(30.0), np.arange(0.5, 9, 0.25, dtype='f4'), np.arange(40, 2, -1), np.arange(20, dtype='u1')
np.linspace(0, 1, 7), np.linspace(0, 1, 400), np.linspace(0, 5, 300, endpoint=False), np.linspace(s, 3, 9), np.linspace(y, 1, 5), np.linspace(0, 10, 11, dtype=int), np.linspace(0, 1, 5, retstep=True)
np.geomspace(1, 100, 4), np.hanning(5), np.hamming(6), np.blackman(5), np.fft.fftfreq(6), np.fft.rfftfreq(6, 0.1)
np.meshgrid(y, y[:2]), np.meshgrid(y, y[:2], indexing='ij'), np.meshgrid(y, y[:2], sparse=True)
np.indices((2, 3)), np.indices((2, 3), sparse=True), np.vander(y, 3), np.vander(y, 3, increasing=True)
np.array(x), np.array(x, dtype='f4'), np.array([1, 2.5]), np.array([[s, 1], [2, s]]), np.array([y, y]), np.array(3), np.array(s), np.array(x, ndmin=3), np.array(w), np.array([s, k])
np.array([w]), np.array([w, w]), np.array([[x.T, x.T]]), np.array((t.T, t.T)), w + [w], np.multiply([x.T], x.T)
np.asarray(x), np.asarray(x, dtype=float), np.asarray(w, order='C'), np.ascontiguousarray(x), np.ascontiguousarray(w), np.asfortranarray(x), np.asarray([1, 2]), np.asarray(2.0)
np.copy(w), x.copy(), w.copy(), w.copy('K'), np.copy(x, order='F'), s.copy()
x.reshape(4, 3), x.reshape((2, -1)), np.reshape(x, -1), x.T.reshape(12), x.reshape(2, 6, order='F'), x.reshape(3, 2, 2), w.reshape(-1), np.reshape(y, (2, 2)), x[:, :2].reshape(6), x[::2].reshape(2, 2, 2)
np.ravel(x), x.ravel('F'), w.ravel(), x[::2].ravel(), w.ravel('K'), x.flatten(), x.flatten('F'), y.ravel()
np.transpose(t), t.transpose(1, 0, 2), np.transpose(t, (2, 0, 1)), x.T, np.swapaxes(t, 0, 2), t.swapaxes(0, 1), np.moveaxis(t, 0, -1), np.moveaxis(t, [0, 1], [2, 0]), np.rollaxis(t, 2), np.matrix_transpose(t), t.mT, y.T
np.squeeze(c), c.squeeze(1), np.expand_dims(x, 1), np.expand_dims(x, (0, 3)), np.squeeze(x[None])
np.broadcast_to(y, (3, 4)), np.broadcast_to(c, (3, 5)) + 1, np.broadcast_arrays(x, y)
np.atleast_1d(s), np.atleast_1d(y), np.atleast_2d(y), np.atleast_3d(x), np.atleast_2d(zero, y)
np.flip(x), np.flip(x, 1), np.flipud(x), np.fliplr(x), np.rot90(x), np.rot90(x, 2), np.rot90(x, 3), np.rot90(t, 1, (1, 2)), np.flip(e)
np.roll(x, 1), np.roll(x, -2, axis=1), np.roll(x, (1, 2), axis=(0, 1)), np.roll(y, 5), np.roll(x, 1, axis=(0, 1))
np.tile(x, 2), np.tile(y, (2, 3)), np.tile(x, (2, 1, 2)), np.tile(s, 3)
np.repeat(x, 2), np.repeat(x, 3, axis=0), x.repeat(2, axis=1), np.repeat(y, [0, 2, 1, 3])
np.pad(x, 1), np.pad(x, ((0, 1), (2, 0)), constant_values=3), np.pad(y, 2, mode='edge'), np.pad(x, 1, mode='reflect'), np.pad(x, (1, 2), 'symmetric'), np.pad(y, 3, 'wrap'), np.pad(n, ((1, 1), (0, 0)))
np.resize(y, (2, 3)), np.resize(y, 3)
np.diagonal(x), x.diagonal(1), np.diag(y), np.diag(y, 1), np.diag(y, -2), np.diag(x), np.diagflat(c), np.diagonal(t, 0, 1, 2)
np.tril(x), np.tril(w), np.triu(x.T), np.triu(x, 1), np.tril(t, -1), np.triu(y)
np.concatenate([x, x]), np.concatenate((x, n), axis=1), np.concatenate([x, w.T[:2]], axis=None), np.concatenate([f, n, u]), np.concatenate((y, [1, 2]))
np.stack([x, x]), np.stack((y, y), axis=1), np.stack([y, y], -1), np.vstack([x, y]), np.hstack([x, c]), np.hstack((y, y)), np.dstack([x, x]), np.column_stack([y, y]), np.append(x, 1), np.append(x, x, 0), np.stack([s, 2.0]), np.concatenate([w, w])
np.block([[x, c], [x, c]])
np.split(x, 2, axis=1), np.array_split(y, 3), np.split(y, [1, 3]), np.hsplit(x, 2), np.vsplit(x, 3), np.dsplit(t, 2), np.unstack(x)
x[0], x[1, 2], x[-1], x[1:], x[:, ::2], x[::-1], x[..., 0], x[None], x[:, None, 1:3], x[1:1], x[5:], x[-2:, -3:-1], x[2::-2], y[()], zero[()], zero[...], x[0, ...], x[0, 1, ...]
x[[0, 2]], x[i[:3]], x[:, i], x[i[:3], i[:3]], x[[0, 1], [1, 2]], x[[[0], [2]], [1, 3]], t[:, [0, 1]], t[0, :, [1, 2]], t[:, 0, [1, 2]], t[[0, 1], :, [1, 2]], t[..., [0, 3]], x[1:, [0, 1]], x[None, [0, 1]], x[-1, [0, -1]], y[[True, False, True, True]], x[[]], t[[0], None, [1]]
np.take(x, [0, 2]), np.take(x, i, axis=1), x.take([[0, 1], [2, 0]], axis=0), np.take(y, 1), np.take(y, [5, -7], mode='clip'), np.take(y, [5, -7], mode='wrap')
np.take_along_axis(x, np.argsort(x, 1), 1), np.take_along_axis(x, np.argmax(x, 0, keepdims=True), 0)
x[np.ix_([0, 2], [1, 3])], np.unravel_index(np.argmax(x), (3, 4)), x[i[0], i[1]]
np.where(b, x, 0), np.where(x > 1, x, n), np.where(True, 1, 2.5), np.where(b, f, 1.0), np.where(n, x, y)
np.clip(x, 0.5, 1.0), np.clip(n, -2, 3), np.clip(x, None, 1), x.clip(1), np.clip(f, 0.5, y), np.clip(x, a_min=0.3, a_max=None), n.clip(0, 2.5)
np.round(x, 2), np.round(edge), x.round(1), np.around(f, 3), np.round(n), np.round(x * 100, -1)
x.real, x.imag, np.real(x), np.iscomplex(z), np.isreal(z), np.iscomplexobj(z), np.isrealobj(z)
np.nan_to_num(edge), np.nan_to_num(edge, nan=1.0, posinf=9.0), np.nan_to_num(n), np.isposinf(edge), np.isneginf(edge)
np.isclose(x, x + 1e-9), np.isclose(edge, edge), np.isclose(edge, edge, equal_nan=True), np.allclose(x, x), np.array_equal(x, x), np.array_equal(x, y), np.array_equal(n, n + 1), np.array_equiv(x, x)
np.select([x > 1.5, x > 0.7], [x, -x]), np.select([b, ~b], [n, 0], default=9), np.choose(i, [y, y * 2, y * 3], mode='clip')
np.sinc(y), np.sinc(n)
np.sort(x), np.sort(x, axis=0), np.sort(x, axis=None), np.argsort(x), np.argsort(n, axis=0, kind='stable'), x.argsort(1)
np.searchsorted(np.sort(y), [0.0, 0.5]), np.searchsorted(np.sort(y), 0.1, side='right'), np.digitize(x, [0.5, 1.0, 1.5]), np.digitize(x, [1.5, 1.0, 0.5], right=True)
np.interp(x, [0.5, 1.0, 1.5], [1, 3, 2]), np.interp(s, [1, 2], [3.0, 4.0]), np.interp(x, [0.5, 1.0], [2.0, 3.0], left=-1, right=9)
np.diff(x), np.diff(x, axis=0), np.diff(y, n=2), np.diff(b), np.diff(y, prepend=0), np.ediff1d(x), np.diff(n, append=1)
np.gradient(y), np.gradient(x), np.gradient(y, 0.5), np.gradient(x, axis=1, edge_order=2), np.gradient(n, 2.0, axis=0), np.gradient(y, np.array([0.0, 1.0, 1.5, 3.0])), np.gradient(x, y, axis=1, edge_order=2)
np.trapezoid(y), np.trapezoid(x, dx=0.5), np.trapezoid(x, y), np.trapezoid(x, axis=0)
np.convolve(y, [1, 2, 3]), np.convolve(y, y, 'same'), np.correlate(y, [1.0, 0.5], 'valid'), np.correlate(y, y, 'full')
np.polyval([1, 2, 3], x), np.polyval(y, 2.0), np.polyder(y), np.unwrap(y * 9), np.unwrap(x * 9, axis=0)
np.fft.fft(x), np.fft.ifft(z, axis=0), np.fft.rfft(f), np.fft.irfft(z), np.fft.fft(x, n=6, norm='ortho'), np.fft.rfft(n)
np.fft.fft2(x), np.fft.ifft2(z), np.fft.fftn(t), np.fft.rfft2(x), np.fft.irfft2(z), np.fft.rfftn(t, axes=(0, 2)), np.fft.fft2(x, s=(4, 4)), np.fft.hfft(z), np.fft.ihfft(x)
np.fft.fftshift(x), np.fft.ifftshift(x, axes=1), np.fft.fftshift(y)
x.shape, x.ndim, x.size, x.dtype, x.nbytes, x.itemsize, w.strides, len(x), np.shape(x), np.ndim(x), np.size(x, 0), np.isscalar(s), np.isfortran(x.T)
x.astype('f4'), x.astype(int), n.astype(float), n.astype(bool), x.astype(float, copy=False), w.astype('f4'), w.astype(complex), x.astype('f4', order='F'), np.astype(x, np.float32), s.astype(int)
x.item(0), n.item(1, 2), s.item(), y[:1].item(), y.tolist(), zero.item(), b.item(0), y[0].item()
np.float32(s), np.float64(f), np.int32(k), np.float32(x), np.int64(b), np.complex128(x), np.float32(0.5) * f, np.uint8(3) + u
np.result_type(x, f), np.promote_types('f4', 'i8'), np.finfo(x.dtype).eps * x, np.iinfo(n.dtype).max, np.issubdtype(x.dtype, np.floating), np.can_cast(n.dtype, 'f4')
s + 1, s * k, k ** 2, -s, abs(s), s > 1, k & 3, s // k, np.sqrt(s), np.exp(k), s + x, zero + 1, zero * zero
x.sum() / x.size, (x - x.mean()) / x.std(), x[x.argmax(1) * 0, 0], x.max() - x
np.einsum('ij,j->i', x, y), np.einsum('ij->j', x), np.einsum('ij->', x), np.einsum('ij,ij', x, x), np.einsum('i,j->ij', y, y), np.einsum('i,i', y, y)
np.partition(y, 2), np.partition(x, [0, 1], axis=0), np.argpartition(y, 1), x.argpartition(-1), np.logspace(0, 2, 5)
np.lib.stride_tricks.sliding_window_view(y, 3), np.lib.stride_tricks.sliding_window_view(x, (2, 2)).sum(axis=(2, 3)), np.lib.stride_tricks.sliding_window_view(x, 2, axis=1)
np.bartlett(4), np.kaiser(5, 2.0), np.tril_indices(3), np.triu_indices(3, 1), np.iterable(x), np.broadcast_shapes((3, 1), (4,))
"""

LOOSE = """
np.einsum('ij,kj->ik', x, x), np.einsum('bij,bkj->bik', t, t), np.einsum('...ij,kj->...ik', t, x), np.einsum('ij,jk,kl->il', x, x.T, x), np.einsum('bij->ib', t), np.einsum('ij,i->ji', x, y[:3])
np.einsum('ii->i', m), np.einsum('ii', m), np.einsum('ij->ji', x), np.einsum('ij,ij->i', n, n), np.einsum('i,j,k->ijk', y, y, y), np.einsum('ijk,ijk,ij->k', t, t, t[..., 0]), np.einsum('bij,jk', t, x.T)
np.real(z), np.imag(z), z.real, z.imag, z.real * 2, z.imag + 1, np.abs(z.real - z.imag)
np.linalg.svd(m)[1], np.linalg.eigh(m)[0], abs(np.linalg.qr(x)[1])
"""

# statements: what they do to their arguments counts as well
MUTATIONS = """
x += 1
x *= y
x -= c; x /= 2.0
x **= 2; x //= 0.3; x %= 0.2
n += 2; n *= n; n -= u; n //= 2; n %= 3; n <<= 1; n >>= 1; n |= 1; n &= 7; n ^= 5
f += x
u += 3
x[0] = 5
x[1, 2] = 7.5
x[:, 1] = y[:3]
x[1:, ::2] = 0
x[::-1] = x
x[1:] = x[:-1]
x[...] = 3
x[:] = [1, 2, 3, 4]
x[0] += 1; x[:, 1] *= 2
n[0] = 2.7
n[...] = x
f[1] = s
x[[0, 2]] = 1
x[[0, 1], [1, 2]] = [8, 9]
x[:, [0, 3]] = c
x[i, i] = 2.0 if False else 2
x[i] = y
x[0, [1, 2]] = y[:2]
t[:, [0, 1], 1] = 4
t[0, :, [1, 2]] = 1
x[x > 1] = 0
x[b] = -1
x[b, ] = 2; x[~b] = 3
x[b[:, 0]] = y
x[b[:, 0], 1] = 6
x[:, b[0]] = 6
t[:, b] = 1.5
t[b[0, :2]] = x
np.add(x, y, out=x)
np.add(x, y, out=f, casting='same_kind')
np.sqrt(x, out=x, where=b)
np.multiply(x, 2, x)
np.add(1, 2, out=x)
np.sum(x, axis=0, out=y)
np.mean(x, axis=0, out=y)
np.cumsum(x, axis=0, out=x)
np.max(x, axis=0, out=y)
np.clip(x, 0.5, 1, out=x)
np.dot(m, m, out=m)
np.matmul(m, m, out=m)
np.round(x, 1, out=x)
np.concatenate([x, x], out=np.zeros((6, 4)))
np.copyto(x, 3); np.copyto(x, y, where=b)
np.putmask(x, b, 0.25)
np.fill_diagonal(x, 9)
np.put_along_axis(x, np.argmax(x, 1, keepdims=True), 0, 1)
np.put(y, [0, 2], [5, 6])
np.add.at(y, i, 1)
np.add.at(x, (i[:3], i[:3]), y[:3])
np.subtract.at(y, [0, 0, 1], 2)
np.maximum.at(y, i, 0.5)
x.fill(2.5)
x.sort(); n.sort(axis=0)
y.partition(2)
y[:] = y[::-1].copy()
v = x[1:]; v += 1; v[0] = 2
v = x.T; v[0] = 1; r = v.reshape(-1)
v = x.ravel(); v[3] = 100
v = x.reshape(4, 3); v[:, 0] = 0; w2 = x[0] * 2
a = np.zeros(4); a[1:3] = y[1:3]; y[:] = a
a = np.zeros_like(x); a[0] = x[1]; x[:] = a
v = np.asarray(x); v[0] = 1
v = x[0]; x[0] = x[1]; y[:] = v
v = np.diagonal(x).copy(); v[0] = 5
z[0] = 1 + 2j; z *= 2
np.nan_to_num(edge, copy=False)
"""


def lines(text: str) -> list[str]:
    return [line for line in text.strip().splitlines() if line]

"""Physics-informed networks, neural differential equations and operators, fields, probabilistic models."""
# ruff: noqa: B007, E741, UP031  (as people write)

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import autograd
from torch.distributions import Categorical, Dirichlet, Gamma, MixtureSameFamily, Normal

from . import of


class PINN(nn.Module):
    """The residual of Burgers' equation."""

    def __init__(self, layers=(2, 12, 12, 1), nu=0.01):
        super().__init__()
        self.linears = nn.ModuleList([nn.Linear(layers[i], layers[i + 1]) for i in range(len(layers) - 1)])
        for i in range(len(layers) - 1):
            nn.init.xavier_normal_(self.linears[i].weight.data, gain=1.0)
            nn.init.zeros_(self.linears[i].bias.data)
        self.activation, self.nu, self.n = nn.Tanh(), nu, len(layers)

    def u(self, x, t):
        a = torch.cat([x, t], dim=1)
        for i in range(self.n - 2):
            a = self.activation(self.linears[i](a))
        return self.linears[-1](a)

    def forward(self, x, t):
        x = x.clone().requires_grad_()
        t = t.clone().requires_grad_()
        u = self.u(x, t)
        u_t = autograd.grad(u, t, grad_outputs=torch.ones_like(u), retain_graph=True, create_graph=True)[0]
        u_x = autograd.grad(u, x, grad_outputs=torch.ones_like(u), retain_graph=True, create_graph=True)[0]
        u_xx = autograd.grad(u_x, x, grad_outputs=torch.ones_like(u_x), retain_graph=True, create_graph=True)[
            0
        ]
        f = u_t + u * u_x - self.nu * u_xx
        return torch.mean(f**2)


class Sine(nn.Module):
    def __init__(self, w0=1.0):
        super().__init__()
        self.w0 = w0

    def forward(self, x):
        return torch.sin(self.w0 * x)


class SIREN(nn.Module):
    """Returns coordinates, too, to differentiate by them."""

    def __init__(self, in_features=2, hidden=16, layers=2, out=3, w0=30):
        super().__init__()
        self.net = []
        for k in range(layers):
            lin = nn.Linear(in_features if k == 0 else hidden, hidden)
            with torch.no_grad():
                b = 1 / in_features if k == 0 else np.sqrt(6 / hidden) / w0
                lin.weight.uniform_(-b, b)
            self.net += [lin, Sine(w0)]
        self.net = nn.Sequential(*self.net, nn.Linear(hidden, out))

    def forward(self, coords):
        coords = coords.clone().detach().requires_grad_(True)
        output = self.net(coords)
        return output, coords


class SIRENLaplace(SIREN):
    def forward(self, coords):
        y, x = super().forward(coords)
        grad = torch.autograd.grad(y, [x], grad_outputs=torch.ones_like(y), create_graph=True)[0]
        div = 0.0
        for i in range(grad.shape[-1]):
            div += torch.autograd.grad(grad[..., i], x, torch.ones_like(grad[..., i]), create_graph=True)[0][
                ..., i : i + 1
            ]
        return div


class ODEFunc(nn.Module):
    def __init__(self, d=3):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, 8), nn.Tanh(), nn.Linear(8, d))
        self.nfe = 0

    def forward(self, t, y):
        self.nfe += 1
        return self.net(y**3)


class NeuralODE(nn.Module):
    def __init__(self, method="rk4", steps=4):
        super().__init__()
        self.func, self.method, self.steps = ODEFunc(), method, steps

    def step(self, t, y, h):
        f = self.func
        if self.method == "euler":
            return y + h * f(t, y)
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h * k1 / 2)
        k3 = f(t + h / 2, y + h * k2 / 2)
        k4 = f(t + h, y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def forward(self, y0, ts=None):
        ts = torch.linspace(0.0, 1.0, self.steps) if ts is None else ts
        ys, y = [y0], y0
        for t0, t1 in zip(ts[:-1], ts[1:]):
            y = self.step(t0, y, t1 - t0)
            ys.append(y)
        return torch.stack(ys)


class AdaptiveODE(nn.Module):
    """Steps until the error is small: the number depends on data."""

    def __init__(self):
        super().__init__()
        self.f = ODEFunc()

    def forward(self, y, tol=1e-2):
        t, h, n = 0.0, 0.5, 0
        while t < 1.0 and n < 20:
            k1 = self.f(t, y)
            k2 = self.f(t + h, y + h * k1)
            err = (h * (k2 - k1) / 2).abs().max().item()
            if err < tol:
                y, t = y + h * (k1 + k2) / 2, t + h
            h = min(max(0.9 * h * math.sqrt(tol / (err + 1e-9)), 1e-2), 1.0 - t + 1e-6)
            n += 1
        return y


class HamiltonianNN(nn.Module):
    def __init__(self, d=4):
        super().__init__()
        self.h = nn.Sequential(nn.Linear(d, 16), nn.Softplus(), nn.Linear(16, 1))
        M = torch.eye(d)
        self.M = torch.cat([M[d // 2 :], -M[: d // 2]])

    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_(True)
            H = self.h(x)
            dH = torch.autograd.grad(H.sum(), x, create_graph=True)[0]
        return dH @ self.M.t().to(x)


class CNF(nn.Module):
    """Trace of the Jacobian by a loop over dimensions, or by Hutchinson."""

    def __init__(self, d=2, exact=True):
        super().__init__()
        self.net, self.exact = nn.Sequential(nn.Linear(d + 1, 8), nn.Tanh(), nn.Linear(8, d)), exact

    def forward(self, z):
        with torch.set_grad_enabled(True):
            z = z.clone().requires_grad_(True)
            dz = self.net(torch.cat([torch.ones_like(z[:, :1]) * 0.5, z], 1))
            if self.exact:
                tr = sum(
                    torch.autograd.grad(dz[:, i].sum(), z, create_graph=True)[0][:, i]
                    for i in range(z.shape[1])
                )
            else:
                e = torch.randn_like(z)
                tr = (torch.autograd.grad(dz, z, e, create_graph=True)[0] * e).sum(1)
        return dz, -tr.view(z.shape[0], 1)


class SpectralConv2d(nn.Module):
    def __init__(self, in_channels, out_channels, modes1, modes2):
        super().__init__()
        self.in_channels, self.out_channels, self.modes1, self.modes2 = (
            in_channels,
            out_channels,
            modes1,
            modes2,
        )
        scale = 1 / (in_channels * out_channels)
        shape = (in_channels, out_channels, modes1, modes2)
        self.weights1 = nn.Parameter(scale * torch.rand(*shape, dtype=torch.cfloat))
        self.weights2 = nn.Parameter(scale * torch.rand(*shape, dtype=torch.cfloat))

    def compl_mul2d(self, input, weights):
        return torch.einsum("bixy,ioxy->boxy", input, weights)

    def forward(self, x):
        batchsize = x.shape[0]
        x_ft = torch.fft.rfft2(x)
        out_ft = torch.zeros(
            batchsize, self.out_channels, x.size(-2), x.size(-1) // 2 + 1, dtype=torch.cfloat, device=x.device
        )
        out_ft[:, :, : self.modes1, : self.modes2] = self.compl_mul2d(
            x_ft[:, :, : self.modes1, : self.modes2], self.weights1
        )
        out_ft[:, :, -self.modes1 :, : self.modes2] = self.compl_mul2d(
            x_ft[:, :, -self.modes1 :, : self.modes2], self.weights2
        )
        return torch.fft.irfft2(out_ft, s=(x.size(-2), x.size(-1)))


class FNO2d(nn.Module):
    def __init__(self, modes=3, width=4):
        super().__init__()
        self.p = nn.Linear(3, width)
        self.convs = nn.ModuleList([SpectralConv2d(width, width, modes, modes) for _ in range(2)])
        self.ws = nn.ModuleList([nn.Conv2d(width, width, 1) for _ in range(2)])
        self.q = nn.Linear(width, 1)

    def get_grid(self, shape, device):
        batchsize, size_x, size_y = shape[0], shape[1], shape[2]
        gridx = torch.tensor(np.linspace(0, 1, size_x), dtype=torch.float)
        gridx = gridx.reshape(1, size_x, 1, 1).repeat([batchsize, 1, size_y, 1])
        gridy = torch.tensor(np.linspace(0, 1, size_y), dtype=torch.float)
        gridy = gridy.reshape(1, 1, size_y, 1).repeat([batchsize, size_x, 1, 1])
        return torch.cat((gridx, gridy), dim=-1).to(device)

    def forward(self, x):
        x = torch.cat((x, self.get_grid(x.shape, x.device)), dim=-1)
        x = self.p(x).permute(0, 3, 1, 2)
        for i, (conv, w) in enumerate(zip(self.convs, self.ws)):
            x = conv(x) + w(x)
            if i < 1:
                x = F.gelu(x)
        return self.q(x.permute(0, 2, 3, 1))


class FNO1d(nn.Module):
    def __init__(self, modes=4, ch=3):
        super().__init__()
        self.modes = modes
        self.weights = nn.Parameter(torch.view_as_real(torch.rand(ch, ch, modes, dtype=torch.cfloat)))

    def forward(self, x):
        B, C, N = x.shape
        ft = torch.fft.rfft(x, norm="ortho")
        out = torch.zeros(B, C, N // 2 + 1, device=x.device, dtype=torch.cfloat)
        out[..., : self.modes] = torch.einsum(
            "bix,iox->box", ft[..., : self.modes], torch.view_as_complex(self.weights)
        )
        return torch.fft.irfft(out, n=x.size(-1), norm="ortho")


class DeepONet(nn.Module):
    def __init__(self, m=6, p=5):
        super().__init__()
        mlp = lambda n: nn.Sequential(nn.Linear(n, 8), nn.GELU(), nn.Linear(8, p))  # noqa: E731
        self.branch, self.trunk, self.b = mlp(m), mlp(1), nn.Parameter(torch.tensor(0.0))

    def forward(self, u, y):
        return torch.einsum("bi,ni->bn", self.branch(u), self.trunk(y)) + self.b


class Embedder:
    """NeRF's: a plain object with a list of functions."""

    def __init__(self, multires, input_dims=3, include_input=True):
        embed_fns, out_dim = [], 0
        if include_input:
            embed_fns.append(lambda x: x)
            out_dim += input_dims
        freq_bands = 2.0 ** torch.linspace(0.0, multires - 1, steps=multires)
        for freq in freq_bands:
            for p_fn in [torch.sin, torch.cos]:
                embed_fns.append(lambda x, p_fn=p_fn, freq=freq: p_fn(x * freq))
                out_dim += input_dims
        self.embed_fns, self.out_dim = embed_fns, out_dim

    def embed(self, inputs):
        return torch.cat([fn(inputs) for fn in self.embed_fns], -1)


class NeRF(nn.Module):
    def __init__(self, D=4, W=16, skips=(2,), use_viewdirs=True):
        super().__init__()
        self.embedder, self.embeddirs = Embedder(3), Embedder(2)
        self.input_ch, self.views_ch = self.embedder.out_dim, self.embeddirs.out_dim
        self.skips, self.use_viewdirs = skips, use_viewdirs
        self.pts_linears = nn.ModuleList(
            [nn.Linear(self.input_ch, W)]
            + [
                nn.Linear(W, W) if i not in self.skips else nn.Linear(W + self.input_ch, W)
                for i in range(D - 1)
            ]
        )
        self.views_linears = nn.ModuleList([nn.Linear(self.views_ch + W, W // 2)])
        self.feature_linear, self.alpha_linear, self.rgb_linear = (
            nn.Linear(W, W),
            nn.Linear(W, 1),
            nn.Linear(W // 2, 3),
        )

    def forward(self, x, dirs):
        x = torch.cat([self.embedder.embed(x), self.embeddirs.embed(dirs)], -1)
        input_pts, input_views = torch.split(x, [self.input_ch, self.views_ch], dim=-1)
        h = input_pts
        for i, l in enumerate(self.pts_linears):  # noqa: E741
            h = self.pts_linears[i](h)
            h = F.relu(h)
            if i in self.skips:
                h = torch.cat([input_pts, h], -1)
        alpha = self.alpha_linear(h)
        h = torch.cat([self.feature_linear(h), input_views], -1)
        for i, l in enumerate(self.views_linears):  # noqa: E741
            h = F.relu(l(h))
        return torch.cat([self.rgb_linear(h), alpha], -1)


class VolumeRenderer(nn.Module):
    """Stratified samples along rays, then samples by their weights."""

    def __init__(self, n=6, n_fine=4):
        super().__init__()
        self.net, self.n, self.n_fine = nn.Linear(3, 4), n, n_fine

    def raw2outputs(self, raw, z_vals, rays_d):
        dists = z_vals[..., 1:] - z_vals[..., :-1]
        dists = torch.cat([dists, torch.Tensor([1e10]).expand(dists[..., :1].shape)], -1)
        dists = dists * torch.norm(rays_d[..., None, :], dim=-1)
        rgb = torch.sigmoid(raw[..., :3])
        alpha = 1.0 - torch.exp(-F.relu(raw[..., 3]) * dists)
        T = torch.cumprod(torch.cat([torch.ones((alpha.shape[0], 1)), 1.0 - alpha + 1e-10], -1), -1)[:, :-1]
        weights = alpha * T
        depth = torch.sum(weights * z_vals, -1)
        disp = 1.0 / torch.max(1e-10 * torch.ones_like(depth), depth / torch.sum(weights, -1))
        return torch.sum(weights[..., None] * rgb, -2), disp, weights

    def sample_pdf(self, bins, weights, N_samples):
        weights = weights + 1e-5
        pdf = weights / torch.sum(weights, -1, keepdim=True)
        cdf = torch.cumsum(pdf, -1)
        cdf = torch.cat([torch.zeros_like(cdf[..., :1]), cdf], -1)
        u = torch.rand(list(cdf.shape[:-1]) + [N_samples]).contiguous()
        inds = torch.searchsorted(cdf, u, right=True)
        below = torch.max(torch.zeros_like(inds - 1), inds - 1)
        above = torch.min((cdf.shape[-1] - 1) * torch.ones_like(inds), inds)
        inds_g = torch.stack([below, above], -1)
        matched_shape = [inds_g.shape[0], inds_g.shape[1], cdf.shape[-1]]
        cdf_g = torch.gather(cdf.unsqueeze(1).expand(matched_shape), 2, inds_g)
        bins_g = torch.gather(bins.unsqueeze(1).expand(matched_shape), 2, inds_g)
        denom = cdf_g[..., 1] - cdf_g[..., 0]
        denom = torch.where(denom < 1e-5, torch.ones_like(denom), denom)
        t = (u - cdf_g[..., 0]) / denom
        return bins_g[..., 0] + t * (bins_g[..., 1] - bins_g[..., 0])

    def forward(self, rays_o, rays_d):
        N = rays_o.shape[0]
        t_vals = torch.linspace(0.0, 1.0, steps=self.n)
        z_vals = (2.0 * (1.0 - t_vals) + 6.0 * t_vals).expand([N, self.n])
        if self.training:
            mids = 0.5 * (z_vals[..., 1:] + z_vals[..., :-1])
            upper, lower = torch.cat([mids, z_vals[..., -1:]], -1), torch.cat([z_vals[..., :1], mids], -1)
            z_vals = lower + (upper - lower) * torch.rand(z_vals.shape)
        pts = rays_o[..., None, :] + rays_d[..., None, :] * z_vals[..., :, None]
        _, _, weights = self.raw2outputs(self.net(pts), z_vals, rays_d)
        z_mid = 0.5 * (z_vals[..., 1:] + z_vals[..., :-1])
        z_samples = self.sample_pdf(z_mid, weights[..., 1:-1], self.n_fine).detach()
        z_vals, _ = torch.sort(torch.cat([z_vals, z_samples], -1), -1)
        rgb, disp, _ = self.raw2outputs(
            self.net(rays_o[..., None, :] + rays_d[..., None, :] * z_vals[..., None]), z_vals, rays_d
        )
        return rgb, disp


class HashGrid(nn.Module):
    """Multiresolution hash encoding."""

    def __init__(self, levels=3, log2_size=5, feats=2):
        super().__init__()
        self.levels, self.log2 = levels, log2_size
        self.embeddings = nn.ModuleList([nn.Embedding(2**log2_size, feats) for _ in range(levels)])
        self.resolutions = [4 * 2**i for i in range(levels)]
        self.register_buffer(
            "box", torch.tensor([[i, j, k] for i in [0, 1] for j in [0, 1] for k in [0, 1]]), persistent=False
        )

    def hash(self, coords):
        primes = [1, 2654435761, 805459861]
        xor_result = torch.zeros_like(coords)[..., 0]
        for i in range(coords.shape[-1]):
            xor_result ^= coords[..., i] * primes[i]
        return torch.tensor((1 << self.log2) - 1).to(xor_result.device) & xor_result

    def forward(self, x):
        out = []
        for emb, res in zip(self.embeddings, self.resolutions):
            p = x * res
            base = torch.floor(p).int().long()
            w = p - base
            feats = emb(self.hash(base.unsqueeze(1) + self.box))
            ww = torch.where(self.box.bool()[None], w.unsqueeze(1), 1 - w.unsqueeze(1)).prod(-1, keepdim=True)
            out.append((feats * ww).sum(1))
        return torch.cat(out, dim=-1)


class FourierFeatures(nn.Module):
    def __init__(self, n=2, m=6, scale=10):
        super().__init__()
        self.register_buffer("B", torch.randn(n, m) * scale)
        self.mlp = nn.Sequential(nn.Linear(2 * m, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, v):
        x_proj = torch.matmul(2 * math.pi * v, self.B)
        return self.mlp(torch.cat([torch.sin(x_proj), torch.cos(x_proj)], -1))


class KANLinear(nn.Module):
    """Splines on a grid, by the recursion of de Boor."""

    def __init__(self, in_features=3, out_features=4, grid_size=4, spline_order=3, grid_range=(-1, 1)):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.grid_size, self.spline_order = grid_size, spline_order
        h = (grid_range[1] - grid_range[0]) / grid_size
        grid = torch.arange(-spline_order, grid_size + spline_order + 1) * h + grid_range[0]
        self.register_buffer("grid", grid.expand(in_features, -1).contiguous())
        self.base_weight = nn.Parameter(torch.randn(out_features, in_features))
        self.spline_weight = nn.Parameter(
            torch.randn(out_features, in_features, grid_size + spline_order) * 0.1
        )
        self.spline_scaler = nn.Parameter(torch.rand(out_features, in_features))
        self.base_activation = nn.SiLU()

    def b_splines(self, x):
        assert x.dim() == 2 and x.size(1) == self.in_features
        grid: torch.Tensor = self.grid
        x = x.unsqueeze(-1)
        bases = ((x >= grid[:, :-1]) & (x < grid[:, 1:])).to(x.dtype)
        for k in range(1, self.spline_order + 1):
            bases = ((x - grid[:, : -(k + 1)]) / (grid[:, k:-1] - grid[:, : -(k + 1)]) * bases[:, :, :-1]) + (
                (grid[:, k + 1 :] - x) / (grid[:, k + 1 :] - grid[:, 1:(-k)]) * bases[:, :, 1:]
            )
        assert bases.size() == (x.size(0), self.in_features, self.grid_size + self.spline_order)
        return bases.contiguous()

    @property
    def scaled_spline_weight(self):
        return self.spline_weight * self.spline_scaler.unsqueeze(-1)

    def forward(self, x):
        original_shape = x.shape
        x = x.reshape(-1, self.in_features)
        base_output = F.linear(self.base_activation(x), self.base_weight)
        spline = F.linear(
            self.b_splines(x).view(x.size(0), -1), self.scaled_spline_weight.view(self.out_features, -1)
        )
        output = base_output + spline
        return output.reshape(*original_shape[:-1], self.out_features)


class ChebyKAN(nn.Module):
    def __init__(self, n=3, out=4, degree=3):
        super().__init__()
        self.coeffs, self.degree, self.n = nn.Parameter(torch.randn(n, out, degree + 1)), degree, n
        self.register_buffer("arange", torch.arange(0, degree + 1, 1))

    def forward(self, x):
        x = torch.tanh(x)
        x = x.view((-1, self.n, 1)).expand(-1, -1, self.degree + 1)
        x = x.acos()
        x *= self.arange
        x = x.cos()
        return torch.einsum("bid,iod->bo", x, self.coeffs)


class HyperNetwork(nn.Module):
    def __init__(self, z=4, n=3, h=5):
        super().__init__()
        self.shapes = [(h, n), (h,), (1, h), (1,)]
        self.gen = nn.Linear(z, sum(math.prod(s) for s in self.shapes))

    def forward(self, z, x):
        flat, params, i = self.gen(z), [], 0
        for s in self.shapes:
            k = math.prod(s)
            params.append(flat[i : i + k].view(*s))
            i += k
        w1, b1, w2, b2 = params
        return F.linear(torch.tanh(F.linear(x, w1, b1)), w2, b2)


class MDN(nn.Module):
    def __init__(self, n=2, k=3):
        super().__init__()
        self.z_h = nn.Sequential(nn.Linear(n, 8), nn.Tanh())
        self.z_pi, self.z_mu, self.z_sigma = nn.Linear(8, k), nn.Linear(8, k), nn.Linear(8, k)

    def forward(self, x, y):
        h = self.z_h(x)
        mix = Categorical(logits=self.z_pi(h))
        comp = Normal(self.z_mu(h), torch.exp(self.z_sigma(h)))
        return -MixtureSameFamily(mix, comp).log_prob(y).mean()


class MDNByHand(MDN):
    oneDivSqrtTwoPI = 1.0 / np.sqrt(2.0 * np.pi)

    def forward(self, x, y):
        h = self.z_h(x)
        pi, sigma, mu = F.softmax(self.z_pi(h), -1), torch.exp(self.z_sigma(h)), self.z_mu(h)
        result = (y.unsqueeze(1).expand_as(mu) - mu) * torch.reciprocal(sigma)
        result = -0.5 * (result * result)
        result = (torch.exp(result) * torch.reciprocal(sigma)) * self.oneDivSqrtTwoPI
        return torch.mean(-torch.log(torch.sum(result * pi, dim=1)))


class BayesLinear(nn.Module):
    """Bayes by backprop."""

    def __init__(self, n=4, out=3):
        super().__init__()
        self.weight_mu, self.weight_rho = (
            nn.Parameter(torch.randn(out, n)),
            nn.Parameter(torch.full((out, n), -3.0)),
        )
        self.prior = Normal(0, 0.1)
        self.kl = 0

    def forward(self, x, sample=True):
        sigma = torch.log1p(torch.exp(self.weight_rho))
        if self.training or sample:
            w = self.weight_mu + sigma * torch.empty_like(sigma).normal_(0, 1)
        else:
            w = self.weight_mu
        q = Normal(self.weight_mu, sigma)
        self.kl = (q.log_prob(w) - self.prior.log_prob(w)).sum().detach()
        return F.linear(x, w)


class GPRegression(nn.Module):
    """The marginal likelihood by Cholesky."""

    def __init__(self):
        super().__init__()
        self.ls, self.var, self.noise = (nn.Parameter(torch.tensor(v)) for v in (0.0, 0.0, -2.0))

    def rbf(self, a, b):
        d = torch.cdist(a, b).pow(2)
        return self.var.exp() * torch.exp(-0.5 * d / self.ls.exp() ** 2)

    def forward(self, X, y):
        n = X.shape[0]
        K = self.rbf(X, X) + (self.noise.exp() + 1e-5) * torch.eye(n)
        L = torch.linalg.cholesky(K)
        alpha = torch.cholesky_solve(y.unsqueeze(-1), L)
        return 0.5 * (y @ alpha.squeeze(-1)) + L.diagonal().log().sum() + 0.5 * n * math.log(2 * math.pi)


class EvidentialRegression(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.lin = nn.Linear(n, 4)

    def forward(self, x, y):
        mu, logv, loga, logb = torch.split(self.lin(x), 1, dim=-1)
        v, alpha, beta = F.softplus(logv), F.softplus(loga) + 1, F.softplus(logb)
        twoBlambda = 2 * beta * (1 + v)
        nll = (
            0.5 * torch.log(np.pi / v)
            - alpha * torch.log(twoBlambda)
            + (alpha + 0.5) * torch.log(v * (y - mu) ** 2 + twoBlambda)
            + torch.lgamma(alpha)
            - torch.lgamma(alpha + 0.5)
        )
        return nll.mean() + 0.01 * (torch.abs(y - mu) * (2 * v + alpha)).mean()


class DirichletTopics(nn.Module):
    def __init__(self, vocab=8, topics=3):
        super().__init__()
        self.enc, self.beta = nn.Linear(vocab, topics), nn.Linear(topics, vocab, bias=False)
        self.bn = nn.BatchNorm1d(vocab, affine=False)

    def forward(self, x):
        alpha = F.softplus(self.enc(x)) + 0.1
        q = Dirichlet(alpha)
        theta = q.mean
        word = F.log_softmax(self.bn(self.beta(theta)), dim=1)
        kl = torch.distributions.kl_divergence(q, Dirichlet(torch.ones_like(alpha)))
        return (-(x * word).sum(1) + kl).mean()


class Kalman(nn.Module):
    def __init__(self, d=3, o=2):
        super().__init__()
        self.A, self.C = nn.Parameter(torch.eye(d) * 0.9), nn.Parameter(torch.randn(o, d))
        self.q, self.r = nn.Parameter(torch.zeros(d)), nn.Parameter(torch.zeros(o))

    def forward(self, ys):
        m, P = torch.zeros(3), torch.eye(3)
        Q, R, ll = torch.diag(self.q.exp()), torch.diag(self.r.exp()), 0.0
        for y in ys:
            m, P = self.A @ m, self.A @ P @ self.A.T + Q
            S = self.C @ P @ self.C.T + R
            K = torch.linalg.solve(S, self.C @ P).T
            v = y - self.C @ m
            ll = ll - 0.5 * (v @ torch.linalg.inv(S) @ v + torch.logdet(S))
            m, P = m + K @ v, (torch.eye(3) - K @ self.C) @ P
        return ll, m


class GammaPoisson(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.lin = nn.Linear(n, 2)

    def forward(self, x, counts):
        conc, rate = F.softplus(self.lin(x)).add(1e-3).unbind(-1)
        lam = Gamma(conc, rate)
        pois = torch.distributions.Poisson(lam.mean)
        nb = torch.distributions.NegativeBinomial(total_count=conc, logits=-torch.log(rate))
        return -(pois.log_prob(counts) + nb.log_prob(counts)).mean(), lam.variance


class Sinkhorn(nn.Module):
    def __init__(self, iters=5, eps=0.1):
        super().__init__()
        self.f, self.iters, self.eps = nn.Linear(2, 2), iters, eps

    def forward(self, x, y):
        C = torch.cdist(self.f(x), y) ** 2
        mu, nu = torch.full((len(x),), 1 / len(x)), torch.full((len(y),), 1 / len(y))
        u, v = torch.zeros_like(mu), torch.zeros_like(nu)
        M = lambda u, v: (-C + u.unsqueeze(-1) + v.unsqueeze(-2)) / self.eps  # noqa: E731
        for _ in range(self.iters):
            u = self.eps * (torch.log(mu + 1e-8) - torch.logsumexp(M(u, v), dim=-1)) + u
            v = self.eps * (torch.log(nu + 1e-8) - torch.logsumexp(M(u, v).transpose(-2, -1), dim=-1)) + v
        pi = torch.exp(M(u, v))
        return torch.sum(pi * C), pi


class DEQ(nn.Module):
    """Fixed point until it is close, then one step for gradients."""

    def __init__(self, d=4):
        super().__init__()
        self.W, self.U = nn.Linear(d, d), nn.Linear(d, d)
        self.W.weight.data.mul_(0.3)

    def f(self, z, x):
        return torch.tanh(self.W(z) + self.U(x))

    def forward(self, x, tol=1e-3, max_iter=30):
        with torch.no_grad():
            z = torch.zeros_like(x)
            for _ in range(max_iter):
                z_next = self.f(z, x)
                if torch.norm(z_next - z) < tol:
                    break
                z = z_next
        return self.f(z.detach(), x)


CASES = [
    of("pinn_burgers", PINN, lambda: (torch.rand(5, 1), torch.rand(5, 1)), grad=True),
    of("siren", SIREN, lambda: torch.rand(5, 2)),
    of("siren_laplace", SIRENLaplace, lambda: torch.rand(5, 2), grad=True),
    of("neural_ode_rk4", NeuralODE, lambda: torch.randn(2, 3)),
    of("neural_ode_euler", lambda: NeuralODE("euler"), lambda: (torch.randn(2, 3), torch.linspace(0, 2, 5))),
    of("ode_adaptive", AdaptiveODE, lambda: torch.randn(2, 3)),
    of("hamiltonian", HamiltonianNN, lambda: torch.randn(3, 4)),
    of("cnf_exact", CNF, lambda: torch.randn(3, 2)),
    of("cnf_hutchinson", lambda: CNF(exact=False), lambda: torch.randn(3, 2)),
    of("fno2d", FNO2d, lambda: torch.randn(2, 8, 8, 1)),
    of("fno1d", FNO1d, lambda: torch.randn(2, 3, 16)),
    of("deep_onet", DeepONet, lambda: (torch.randn(3, 6), torch.rand(4, 1))),
    of("nerf", NeRF, lambda: (torch.randn(5, 3), F.normalize(torch.randn(5, 3), dim=-1))),
    of("volume_renderer", VolumeRenderer, lambda: (torch.randn(4, 3), torch.randn(4, 3))),
    of("hash_grid", HashGrid, lambda: torch.rand(5, 3)),
    of("fourier_features", FourierFeatures, lambda: torch.rand(5, 2)),
    of("kan_linear", KANLinear, lambda: torch.rand(5, 3) * 2 - 1),
    of("cheby_kan", ChebyKAN, lambda: torch.randn(5, 3)),
    of("hyper_network", HyperNetwork, lambda: (torch.randn(4), torch.randn(6, 3))),
    of("mdn_distributions", MDN, lambda: (torch.randn(4, 2), torch.randn(4))),
    of("mdn_by_hand", MDNByHand, lambda: (torch.randn(4, 2), torch.randn(4))),
    of("bayes_linear", BayesLinear, lambda: torch.randn(5, 4)),
    of("gp_regression", GPRegression, lambda: (torch.rand(6, 2), torch.randn(6))),
    of("evidential", EvidentialRegression, lambda: (torch.randn(4, 3), torch.randn(4, 1))),
    of("dirichlet_topics", DirichletTopics, lambda: torch.rand(4, 8)),
    of("kalman", Kalman, lambda: torch.randn(4, 2)),
    of("gamma_poisson", GammaPoisson, lambda: (torch.randn(4, 3), torch.tensor([0.0, 1.0, 3.0, 2.0]))),
    of("sinkhorn", Sinkhorn, lambda: (torch.randn(4, 2), torch.randn(5, 2))),
    of("deep_equilibrium", DEQ, lambda: torch.randn(3, 4)),
]

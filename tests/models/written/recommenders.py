"""Recommender systems and time series."""
# ruff: noqa: B007, E741, UP031  (as people write)

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from . import of


class FeaturesLinear(nn.Module):
    def __init__(self, field_dims, output_dim=1):
        super().__init__()
        self.fc = nn.Embedding(sum(field_dims), output_dim)
        self.bias = nn.Parameter(torch.zeros((output_dim,)))
        self.offsets = np.array((0, *np.cumsum(field_dims)[:-1]), dtype=np.int64)

    def forward(self, x):
        x = x + x.new_tensor(self.offsets).unsqueeze(0)
        return torch.sum(self.fc(x), dim=1) + self.bias


class FeaturesEmbedding(nn.Module):
    def __init__(self, field_dims, embed_dim):
        super().__init__()
        self.embedding = nn.Embedding(sum(field_dims), embed_dim)
        self.offsets = np.array((0, *np.cumsum(field_dims)[:-1]), dtype=np.int64)
        nn.init.xavier_uniform_(self.embedding.weight.data)

    def forward(self, x):
        return self.embedding(x + x.new_tensor(self.offsets).unsqueeze(0))


class FM(nn.Module):
    def __init__(self, field_dims=(5, 7, 3), embed_dim=4):
        super().__init__()
        self.embedding, self.linear = FeaturesEmbedding(field_dims, embed_dim), FeaturesLinear(field_dims)

    def forward(self, x):
        e = self.embedding(x)
        square_of_sum = torch.sum(e, dim=1) ** 2
        sum_of_square = torch.sum(e**2, dim=1)
        ix = torch.sum(square_of_sum - sum_of_square, dim=1, keepdim=True)
        return torch.sigmoid((self.linear(x) + 0.5 * ix).squeeze(1))


class DeepFM(FM):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(12, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)
        )

    def forward(self, x):
        return super().forward(x) + self.mlp(self.embedding(x).view(-1, 12)).squeeze(1)


class DCN(nn.Module):
    def __init__(self, d=6, layers=3):
        super().__init__()
        self.w = nn.ModuleList([nn.Linear(d, 1, bias=False) for _ in range(layers)])
        self.b = nn.ParameterList([nn.Parameter(torch.zeros((d,))) for _ in range(layers)])

    def forward(self, x):
        x0 = x
        for i in range(len(self.w)):
            xw = self.w[i](x)
            x = x0 * xw + self.b[i] + x
        return x


class InnerProducts(nn.Module):
    """PNN: pairs of fields by two lists of indices."""

    def __init__(self):
        super().__init__()
        self.emb = FeaturesEmbedding((5, 7, 3), 4)

    def forward(self, x):
        x = self.emb(x)
        num_fields = x.shape[1]
        row, col = list(), list()
        for i in range(num_fields - 1):
            for j in range(i + 1, num_fields):
                row.append(i), col.append(j)
        return torch.sum(x[:, row] * x[:, col], dim=2)


class CIN(nn.Module):
    """xDeepFM."""

    def __init__(self, fields=3, d=4):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv1d(fields * 3, 4, 1), nn.Conv1d(fields * 2, 4, 1)])
        self.fc = nn.Linear(6, 1)

    def forward(self, x):
        xs, x0, h = [], x.unsqueeze(2), x
        for i, conv in enumerate(self.convs):
            x = x0 * h.unsqueeze(1)
            b, f0, fin, d = x.shape
            x = F.relu(conv(x.view(b, f0 * fin, d)))
            if i != len(self.convs) - 1:
                x, h = torch.split(x, x.shape[1] // 2, dim=1)
            xs.append(x)
        return self.fc(torch.sum(torch.cat(xs, dim=1), 2))


class NCF(nn.Module):
    def __init__(self, users=6, items=8, d=4):
        super().__init__()
        self.ug, self.ig = nn.Embedding(users, d), nn.Embedding(items, d)
        self.um, self.im = nn.Embedding(users, d), nn.Embedding(items, d)
        self.mlp, self.out = nn.Sequential(nn.Linear(2 * d, d), nn.ReLU()), nn.Linear(2 * d, 1)

    def forward(self, user, item):
        gmf = self.ug(user) * self.ig(item)
        mlp = self.mlp(torch.cat((self.um(user), self.im(item)), -1))
        return self.out(torch.cat((gmf, mlp), -1)).view(-1)


class BPR(NCF):
    def forward(self, user, pos, neg):
        u, i, j = self.ug(user), self.ig(pos), self.ig(neg)
        reg = (u.norm(2).pow(2) + i.norm(2).pow(2) + j.norm(2).pow(2)) / float(len(user))
        return -F.logsigmoid((u * i).sum(1) - (u * j).sum(1)).mean() + 1e-4 * reg


class SASRec(nn.Module):
    def __init__(self, items=9, d=8, maxlen=5):
        super().__init__()
        self.item_emb, self.pos_emb = nn.Embedding(items + 1, d, padding_idx=0), nn.Embedding(maxlen, d)
        self.ln, self.att = nn.LayerNorm(d), nn.MultiheadAttention(d, 2, 0.0)

    def forward(self, log_seqs):
        seqs = self.item_emb(log_seqs) * self.item_emb.embedding_dim**0.5
        positions = np.tile(np.array(range(log_seqs.shape[1])), [log_seqs.shape[0], 1])
        seqs = seqs + self.pos_emb(torch.LongTensor(positions))
        timeline_mask = log_seqs == 0
        seqs = seqs * ~timeline_mask.unsqueeze(-1)
        tl = seqs.shape[1]
        attention_mask = ~torch.tril(torch.ones((tl, tl), dtype=torch.bool))
        seqs = torch.transpose(seqs, 0, 1)
        out, _ = self.att(self.ln(seqs), seqs, seqs, attn_mask=attention_mask)
        return torch.transpose(seqs + out, 0, 1) * ~timeline_mask.unsqueeze(-1)


class DIN(nn.Module):
    """Attention over a history with a mask, Dice."""

    def __init__(self, d=4):
        super().__init__()
        self.emb = nn.Embedding(10, d, padding_idx=0)
        self.lin, self.alpha, self.bn = nn.Linear(4 * d, 1), nn.Parameter(torch.zeros(d)), nn.BatchNorm1d(d)

    def forward(self, history, target):
        k, q = self.emb(history), self.emb(target)
        mask = (history > 0).float().unsqueeze(-1)
        q = q.unsqueeze(1).expand_as(k)
        w = self.lin(torch.cat([q, k, q - k, q * k], dim=-1))
        w = torch.where(mask == 0, torch.ones_like(w) * (-(2**32) + 1), w)
        h = torch.matmul(F.softmax(w, 1).transpose(1, 2), k).squeeze(1)
        p = torch.sigmoid(self.bn(h))
        return p * h + self.alpha * (1 - p) * h


class MMoE(nn.Module):
    def __init__(self, d=5, experts=3, tasks=2):
        super().__init__()
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(d, 4), nn.ReLU()) for _ in range(experts)])
        self.w_gates = nn.ParameterList([nn.Parameter(torch.randn(d, experts)) for _ in range(tasks)])
        self.towers = nn.ModuleList([nn.Linear(4, 1) for _ in range(tasks)])
        self.softmax = nn.Softmax(dim=1)

    def forward(self, x):
        o = torch.stack([e(x) for e in self.experts])
        gates = [self.softmax(x @ g) for g in self.w_gates]
        ti = [g.t().unsqueeze(2).expand(-1, -1, 4) * o for g in gates]
        ti = [torch.sum(t, dim=0) for t in ti]
        return [t(h) for t, h in zip(self.towers, ti)]


class AutoRec(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(6, 3), nn.Linear(3, 6)

    def forward(self, r, mask):
        out = self.decoder(torch.sigmoid(self.encoder(r)))
        cost = ((out - r) * mask).pow(2).sum()
        return cost + 0.5 * (torch.norm(self.encoder.weight) ** 2 + torch.norm(self.decoder.weight) ** 2)


class MultVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.p = nn.Linear(8, 6), nn.Linear(3, 8)

    def forward(self, x):
        h = F.dropout(F.normalize(x), 0.5, training=self.training)
        mu, logvar = self.q(h)[:, :3], self.q(h)[:, 3:]
        z = mu
        if self.training:
            z = torch.randn_like(logvar).mul(torch.exp(0.5 * logvar)).add_(mu)
        bce = -torch.mean(torch.sum(F.log_softmax(self.p(z), 1) * x, -1))
        return bce - 0.5 * torch.mean(torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1))


class SeriesDecomp(nn.Module):
    def __init__(self, kernel_size=5):
        super().__init__()
        self.kernel_size, self.avg = kernel_size, nn.AvgPool1d(kernel_size=kernel_size, stride=1, padding=0)

    def forward(self, x):
        front = x[:, 0:1, :].repeat(1, (self.kernel_size - 1) // 2, 1)
        end = x[:, -1:, :].repeat(1, (self.kernel_size - 1) // 2, 1)
        mean = self.avg(torch.cat([front, x, end], dim=1).permute(0, 2, 1)).permute(0, 2, 1)
        return x - mean, mean


class DLinear(nn.Module):
    def __init__(self, seq=8, pred=4, channels=2, individual=True):
        super().__init__()
        self.decomp, self.channels, self.pred, self.individual = SeriesDecomp(), channels, pred, individual
        self.seasonal = nn.ModuleList([nn.Linear(seq, pred) for _ in range(channels)])
        self.trend = nn.ModuleList([nn.Linear(seq, pred) for _ in range(channels)])

    def forward(self, x):
        s, t = (v.permute(0, 2, 1) for v in self.decomp(x))
        so = torch.zeros([s.size(0), s.size(1), self.pred], dtype=s.dtype).to(s.device)
        to = torch.zeros([t.size(0), t.size(1), self.pred], dtype=t.dtype).to(t.device)
        for i in range(self.channels):
            so[:, i, :] = self.seasonal[i](s[:, i, :])
            to[:, i, :] = self.trend[i](t[:, i, :])
        return (so + to).permute(0, 2, 1)


class RevIN(nn.Module):
    def __init__(self, n=2, eps=1e-5):
        super().__init__()
        self.eps, self.w, self.b, self.lin = (
            eps,
            nn.Parameter(torch.ones(n)),
            nn.Parameter(torch.zeros(n)),
            nn.Linear(8, 4),
        )

    def forward(self, x):
        dim2reduce = tuple(range(1, x.ndim - 1))
        self.mean = torch.mean(x, dim=dim2reduce, keepdim=True).detach()
        self.stdev = torch.sqrt(
            torch.var(x, dim=dim2reduce, keepdim=True, unbiased=False) + self.eps
        ).detach()
        y = (x - self.mean) / self.stdev * self.w + self.b
        y = self.lin(y.transpose(1, 2)).transpose(1, 2)
        return (y - self.b) / (self.w + self.eps * self.eps) * self.stdev + self.mean


class PatchTST(nn.Module):
    def __init__(self, patch=4, stride=2, d=8):
        super().__init__()
        self.patch, self.stride = patch, stride
        self.proj, self.pos = nn.Linear(patch, d), nn.Parameter(torch.randn(4, d) * 0.02)
        self.pad, self.enc = (
            nn.ReplicationPad1d((0, stride)),
            nn.TransformerEncoderLayer(d, 2, 16, 0.0, batch_first=True),
        )
        self.head = nn.Linear(4 * d, 3)

    def forward(self, x):
        b, l, c = x.shape
        x = self.pad(x.permute(0, 2, 1)).unfold(dimension=-1, size=self.patch, step=self.stride)
        x = self.proj(x)
        u = torch.reshape(x, (x.shape[0] * x.shape[1], x.shape[2], x.shape[3]))
        z = self.enc(u + self.pos)
        z = torch.reshape(z, (-1, c, z.shape[-2], z.shape[-1])).permute(0, 1, 3, 2)
        return self.head(z.flatten(start_dim=-2)).permute(0, 2, 1)


class NBeats(nn.Module):
    def __init__(self, back=6, fore=3):
        super().__init__()
        self.fcs = nn.ModuleList(
            [nn.Sequential(nn.Linear(back, 8), nn.ReLU(), nn.Linear(8, 4)) for _ in range(2)]
        )
        lin = torch.linspace(0, 1, back + fore)
        self.register_buffer(
            "T",
            torch.stack([lin**i for i in range(2)] + [torch.cos(2 * math.pi * i * lin) for i in range(2)]),
        )
        self.back, self.fore = back, fore

    def forward(self, x):
        residual, forecast = x.flip(dims=(1,)), x[:, -1:]
        for fc in self.fcs:
            b, f = (fc(residual) @ self.T).split([self.back, self.fore], 1)
            residual = residual - b
            forecast = forecast + f
        return forecast


class AutoCorrelation(nn.Module):
    """Autoformer: delays by the FFT, rolled by their scores."""

    def __init__(self, factor=1):
        super().__init__()
        self.factor, self.q = factor, nn.Linear(4, 4)

    def forward(self, x):
        q = self.q(x).permute(0, 2, 1).contiguous()
        q_fft = torch.fft.rfft(q, dim=-1)
        corr = torch.fft.irfft(q_fft * torch.conj(q_fft), n=q.shape[-1], dim=-1)
        top_k = int(self.factor * math.log(q.shape[-1]))
        mean_value = torch.mean(corr, dim=1)
        weights, delay = torch.topk(torch.mean(mean_value, dim=0), top_k, dim=-1)
        tmp_corr = torch.softmax(torch.stack([mean_value[:, d] for d in delay], dim=-1), dim=-1)
        index = torch.arange(q.shape[-1]).view(1, 1, -1)
        values = torch.cat([q, q], -1)
        out = torch.zeros_like(q).float()
        for i in range(top_k):
            pattern = torch.gather(values, dim=-1, index=(index + delay[i]).expand_as(q))
            out = out + pattern * tmp_corr[:, i].unsqueeze(1).unsqueeze(1).repeat(1, q.shape[1], q.shape[2])
        return out


class ProbSparse(nn.Module):
    """Informer: queries chosen by a sample of keys."""

    def forward(self, Q, K, V):
        B, H, L, D = Q.shape
        sample_k = min(3, L)
        K_expand = K.unsqueeze(-3).expand(B, H, L, L, D)
        index_sample = torch.randint(L, (L, sample_k))
        K_sample = K_expand[:, :, torch.arange(L).unsqueeze(1), index_sample, :]
        Q_K = torch.matmul(Q.unsqueeze(-2), K_sample.transpose(-2, -1)).squeeze(-2)
        M = Q_K.max(-1)[0] - torch.div(Q_K.sum(-1), L)
        M_top = M.topk(2, sorted=False)[1]
        Q_reduce = Q[torch.arange(B)[:, None, None], torch.arange(H)[None, :, None], M_top, :]
        attn = torch.softmax(torch.matmul(Q_reduce, K.transpose(-2, -1)) / math.sqrt(D), dim=-1)
        context = V.mean(dim=-2).unsqueeze(-2).expand(B, H, L, V.shape[-1]).clone()
        context[torch.arange(B)[:, None, None], torch.arange(H)[None, :, None], M_top, :] = torch.matmul(
            attn, V
        )
        return context


class GRN(nn.Module):
    """Gated residual network of the temporal fusion transformer, and quantile loss."""

    def __init__(self, d=5, q=(0.1, 0.5, 0.9)):
        super().__init__()
        self.fc1, self.fc2, self.gate = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, 2 * d)
        self.norm, self.out, self.q = nn.LayerNorm(d), nn.Linear(d, len(q)), q

    def forward(self, x, y):
        h = self.norm(x + F.glu(self.gate(self.fc2(F.elu(self.fc1(x)))), -1))
        preds, losses = self.out(h), []
        for i, q in enumerate(self.q):
            errors = y - preds[:, i]
            losses.append(torch.max((q - 1) * errors, q * errors).unsqueeze(1))
        return torch.mean(torch.sum(torch.cat(losses, dim=1), dim=1))


class DeepAR(nn.Module):
    def __init__(self, h=6):
        super().__init__()
        self.lstm, self.mu, self.sigma = nn.LSTMCell(2, h), nn.Linear(h, 1), nn.Linear(h, 1)

    def forward(self, x):
        hidden = torch.zeros(x.size(0), 6), torch.zeros(x.size(0), 6)
        loss, prev = 0, x[:, 0]
        for t in range(1, x.size(1)):
            hidden = self.lstm(torch.stack([prev, x[:, t]], 1), hidden)
            mu, sigma = self.mu(hidden[0]).squeeze(1), F.softplus(self.sigma(hidden[0])).squeeze(1)
            d = torch.distributions.Normal(mu, sigma)
            loss = loss - torch.mean(d.log_prob(x[:, t]))
            prev = x[:, t]
        return loss, d.sample()


def fields(b=4):
    return torch.randint(0, 3, (b, 3))


CASES = [
    of("rec_fm", FM, fields),
    of("rec_deepfm", DeepFM, fields),
    of("rec_dcn", DCN, lambda: torch.randn(4, 6)),
    of("rec_pnn", InnerProducts, fields),
    of("rec_cin", CIN, lambda: torch.randn(4, 3, 4)),
    of("rec_ncf", NCF, lambda: (torch.tensor([0, 1, 5, 2]), torch.tensor([7, 1, 0, 2]))),
    of("rec_bpr", BPR, lambda: tuple(torch.randint(0, 6, (4,)) for _ in range(3))),
    of("rec_sasrec", SASRec, lambda: torch.randint(0, 9, (4, 5))),
    of("rec_din", DIN, lambda: (torch.randint(0, 9, (4, 5)), torch.randint(1, 9, (4,)))),
    of("rec_mmoe", MMoE, lambda: torch.randn(4, 5)),
    of("rec_autorec", AutoRec, lambda: (torch.rand(4, 6), (torch.rand(4, 6) > 0.5).float())),
    of("rec_multvae", MultVAE, lambda: (torch.rand(4, 8) > 0.5).float()),
    of("ts_dlinear", DLinear, lambda: torch.randn(4, 8, 2)),
    of("ts_revin", RevIN, lambda: torch.randn(4, 8, 2)),
    of("ts_patchtst", PatchTST, lambda: torch.randn(4, 8, 2)),
    of("ts_nbeats", NBeats, lambda: torch.randn(4, 6)),
    of("ts_autocorrelation", AutoCorrelation, lambda: torch.randn(4, 8, 4)),
    of("ts_prob_sparse", ProbSparse, lambda: tuple(torch.randn(4, 2, 6, 4) for _ in range(3))),
    of("ts_grn_quantile", GRN, lambda: (torch.randn(4, 5), torch.randn(4))),
    of("ts_deepar", DeepAR, lambda: torch.randn(4, 5)),
]

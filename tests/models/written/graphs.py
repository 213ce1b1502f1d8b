"""Graph networks by hand, sets, point clouds, trees."""
# ruff: noqa: B007, E741, UP031  (as people write)

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parameter import Parameter

from . import of


class GraphConvolution(nn.Module):
    """Simple GCN layer, similar to https://arxiv.org/abs/1609.02907"""

    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        if bias:
            self.bias = Parameter(torch.FloatTensor(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        support = torch.mm(input, self.weight)
        output = torch.spmm(adj, support)
        return output + self.bias if self.bias is not None else output

    def __repr__(self):
        return self.__class__.__name__ + " (" + str(self.in_features) + " -> " + str(self.out_features) + ")"


class GCN(nn.Module):
    def __init__(self, nfeat=5, nhid=8, nclass=3, dropout=0.5):
        super().__init__()
        self.gc1, self.gc2 = GraphConvolution(nfeat, nhid), GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        x = self.gc2(x, adj)
        return F.log_softmax(x, dim=1)


class NormalizedGCN(nn.Module):
    def __init__(self, n=5, h=4):
        super().__init__()
        self.lin = nn.Linear(n, h)

    def forward(self, x, adj):
        adj = adj + torch.eye(adj.size(0), device=adj.device)
        deg = adj.sum(1)
        d_inv_sqrt = torch.pow(deg, -0.5)
        d_inv_sqrt[torch.isinf(d_inv_sqrt)] = 0.0
        d_mat = torch.diag(d_inv_sqrt)
        return d_mat @ adj @ d_mat @ self.lin(x)


class GATLayer(nn.Module):
    """Dense attention, with a constant for no edge."""

    def __init__(self, in_features=5, out_features=4, dropout=0.3, alpha=0.2, concat=True):
        super().__init__()
        self.dropout, self.out_features, self.concat = dropout, out_features, concat
        self.W = nn.Parameter(torch.empty(size=(in_features, out_features)))
        nn.init.xavier_uniform_(self.W.data, gain=1.414)
        self.a = nn.Parameter(torch.empty(size=(2 * out_features, 1)))
        nn.init.xavier_uniform_(self.a.data, gain=1.414)
        self.leakyrelu = nn.LeakyReLU(alpha)

    def forward(self, h, adj):
        Wh = torch.mm(h, self.W)
        Wh1 = torch.matmul(Wh, self.a[: self.out_features, :])
        Wh2 = torch.matmul(Wh, self.a[self.out_features :, :])
        e = self.leakyrelu(Wh1 + Wh2.T)
        zero_vec = -9e15 * torch.ones_like(e)
        attention = torch.where(adj > 0, e, zero_vec)
        attention = F.softmax(attention, dim=1)
        attention = F.dropout(attention, self.dropout, training=self.training)
        h_prime = torch.matmul(attention, Wh)
        return F.elu(h_prime) if self.concat else h_prime


class GAT(nn.Module):
    def __init__(self):
        super().__init__()
        self.attentions = [GATLayer() for _ in range(2)]
        for i, attention in enumerate(self.attentions):
            self.add_module(f"attention_{i}", attention)
        self.out_att = GATLayer(8, 3, concat=False)

    def forward(self, x, adj):
        x = F.dropout(x, 0.3, training=self.training)
        x = torch.cat([att(x, adj) for att in self.attentions], dim=1)
        return F.log_softmax(F.elu(self.out_att(x, adj)), dim=1)


class EdgeGAT(nn.Module):
    """Edge index, edge softmax by scatter."""

    def __init__(self, n=5, out=4, heads=2):
        super().__init__()
        self.lin, self.heads, self.out = nn.Linear(n, heads * out, bias=False), heads, out
        self.src, self.dst = (
            nn.Parameter(torch.randn(1, heads, out)),
            nn.Parameter(torch.randn(1, heads, out)),
        )

    def edge_softmax(self, scores, trg_index, num_nodes):
        scores = (scores - scores.max()).exp()
        index = trg_index.unsqueeze(-1).expand_as(scores)
        neigh = torch.zeros((num_nodes, scores.shape[1]), dtype=scores.dtype, device=scores.device)
        neigh.scatter_add_(0, index, scores)
        return scores / (neigh.index_select(0, trg_index) + 1e-16)

    def forward(self, x, edge_index):
        N = x.size(0)
        h = self.lin(x).view(-1, self.heads, self.out)
        s, d = (h * self.src).sum(-1), (h * self.dst).sum(-1)
        src, dst = edge_index[0], edge_index[1]
        a = self.edge_softmax(F.leaky_relu(s.index_select(0, src) + d.index_select(0, dst), 0.2), dst, N)
        out = torch.zeros(N, self.heads, self.out, dtype=x.dtype, device=x.device)
        out.index_add_(0, dst, h[src] * a.unsqueeze(-1))
        return out.mean(dim=1)


def scatter_mean(src, index, dim_size):
    out = src.new_zeros(dim_size, src.size(1))
    count = src.new_zeros(dim_size, src.size(1))
    index = index.unsqueeze(-1).expand_as(src)
    out.scatter_add_(0, index, src)
    count.scatter_add_(0, index, torch.ones_like(src))
    return out / count.clamp(min=1)


class EGNN(nn.Module):
    def __init__(self, hid=6):
        super().__init__()
        act = nn.SiLU()
        self.edge_mlp = nn.Sequential(nn.Linear(2 * hid + 1, hid), act, nn.Linear(hid, hid), act)
        self.node_mlp = nn.Sequential(nn.Linear(2 * hid, hid), act, nn.Linear(hid, hid))
        layer = nn.Linear(hid, 1, bias=False)
        torch.nn.init.xavier_uniform_(layer.weight, gain=0.001)
        self.coord_mlp = nn.Sequential(nn.Linear(hid, hid), act, layer)

    def forward(self, h, edge_index, coord):
        row, col = edge_index
        coord_diff = coord[row] - coord[col]
        radial = torch.sum(coord_diff**2, 1).unsqueeze(1)
        edge_feat = self.edge_mlp(torch.cat([h[row], h[col], radial], dim=1))
        coord = coord + scatter_mean(coord_diff * self.coord_mlp(edge_feat), row, dim_size=coord.size(0))
        agg = h.new_zeros(h.size(0), edge_feat.size(1)).scatter_add_(
            0, row[:, None].expand(-1, edge_feat.size(1)), edge_feat
        )
        return h + self.node_mlp(torch.cat([h, agg], dim=1)), coord


class GraphSAGE(nn.Module):
    def __init__(self, n=5, h=6, aggr="max"):
        super().__init__()
        self.l, self.r, self.aggr = nn.Linear(n, h), nn.Linear(n, h, bias=False), aggr

    def forward(self, x, edge_index):
        src, dst = edge_index
        index = dst[:, None].expand(-1, x.shape[1])
        if self.aggr == "max":
            agg = torch.full_like(x, float("-inf")).scatter_reduce(
                0, index, x[src], reduce="amax", include_self=True
            )
            agg = torch.where(torch.isinf(agg), torch.zeros_like(agg), agg)
        else:
            agg = torch.zeros_like(x).scatter_reduce(0, index, x[src], reduce=self.aggr, include_self=False)
        return F.normalize(self.l(agg) + self.r(x), p=2.0, dim=-1)


class GIN(nn.Module):
    def __init__(self, n=5, graphs=2):
        super().__init__()
        self.eps = nn.Parameter(torch.zeros(1))
        self.mlp = nn.Sequential(nn.Linear(n, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, n))
        self.head = nn.Linear(n, 2)

    def forward(self, x, edge_index, batch):
        agg = torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
        x = self.mlp((1 + self.eps) * x + agg)
        size = int(batch.max()) + 1
        pooled = torch.zeros(size, x.size(1)).index_add_(0, batch, x)
        return self.head(pooled)


class MPNN(nn.Module):
    """Edge networks and GRU updates, set2set read out."""

    def __init__(self, n=4, e=3, steps=2):
        super().__init__()
        self.edge_net, self.gru, self.steps, self.n = nn.Linear(e, n * n), nn.GRUCell(n, n), steps, n
        self.lstm = nn.LSTM(2 * n, n)

    def forward(self, x, edge_index, edge_attr):
        h = x
        A = self.edge_net(edge_attr).view(-1, self.n, self.n)
        for _ in range(self.steps):
            m = torch.bmm(A, h[edge_index[0]].unsqueeze(2)).squeeze(2)
            h = self.gru(torch.zeros_like(h).index_add_(0, edge_index[1], m), h)
        q_star, state = h.new_zeros(1, 2 * self.n), None
        for _ in range(2):
            q, state = self.lstm(q_star.unsqueeze(0), state)
            q = q.view(1, self.n)
            a = torch.softmax((h * q).sum(-1, keepdim=True), 0)
            q_star = torch.cat([q, (a * h).sum(0, keepdim=True)], dim=-1)
        return q_star


class LightGCN(nn.Module):
    def __init__(self, users=4, items=5, dim=6, n_layers=2):
        super().__init__()
        self.num_users, self.num_items, self.n_layers = users, items, n_layers
        self.embedding_user, self.embedding_item = nn.Embedding(users, dim), nn.Embedding(items, dim)
        R = (torch.rand(users, items) > 0.5).float()
        A = torch.zeros(users + items, users + items)
        A[:users, users:], A[users:, :users] = R, R.t()
        d = A.sum(1).clamp(min=1).pow(-0.5)
        self.register_buffer("Graph", d[:, None] * A * d[None])

    def computer(self):
        all_emb = torch.cat([self.embedding_user.weight, self.embedding_item.weight])
        embs = [all_emb]
        for _ in range(self.n_layers):
            all_emb = torch.mm(self.Graph, all_emb)
            embs.append(all_emb)
        light_out = torch.mean(torch.stack(embs, dim=1), dim=1)
        return torch.split(light_out, [self.num_users, self.num_items])

    def forward(self, users, items):
        all_users, all_items = self.computer()
        return torch.sum(torch.mul(all_users[users], all_items[items]), dim=1)


class ChebConv(nn.Module):
    def __init__(self, n=4, out=3, K=3):
        super().__init__()
        self.weight = nn.Parameter(torch.Tensor(K, 1, n, out))
        nn.init.xavier_normal_(self.weight)
        self.K = K

    def forward(self, inputs, graph):
        L = torch.eye(graph.size(0)) - torch.diag(1 / graph.sum(-1).clamp(min=1e-6)).mm(graph)
        N = L.size(0)
        multi = torch.zeros([self.K, N, N], device=L.device, dtype=torch.float)
        multi[0] = torch.eye(N, device=L.device)
        if self.K > 1:
            multi[1] = L
            for k in range(2, self.K):
                multi[k] = 2 * torch.mm(L, multi[k - 1]) - multi[k - 2]
        result = torch.matmul(multi.unsqueeze(1), inputs)
        result = torch.matmul(result, self.weight)
        return torch.sum(result, dim=0)


class STGCNBlock(nn.Module):
    def __init__(self, c=2, s=3, t=4, nodes=5):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(c, t, (1, 3)), nn.Conv2d(c, t, (1, 3))
        self.Theta1 = nn.Parameter(torch.randn(t, s))
        self.batch_norm = nn.BatchNorm2d(nodes)

    def forward(self, X, A_hat):
        X = X.permute(0, 3, 1, 2)
        out = F.relu(self.conv1(X) + torch.sigmoid(self.conv2(X))).permute(0, 2, 3, 1)
        lfs = torch.einsum("ij,jklm->kilm", [A_hat, out.permute(1, 0, 2, 3)])
        t2 = F.relu(torch.matmul(lfs, self.Theta1))
        return self.batch_norm(t2)


class PointNet(nn.Module):
    """With its transformation net, and a regularizer."""

    def __init__(self, k=3):
        super().__init__()
        self.conv1, self.conv2, self.k = nn.Conv1d(k, 8, 1), nn.Conv1d(8, 16, 1), k
        self.fc1, self.fc2 = nn.Linear(16, 8), nn.Linear(8, k * k)
        self.bn1, self.bn2, self.bn3 = nn.BatchNorm1d(8), nn.BatchNorm1d(16), nn.BatchNorm1d(8)

    def forward(self, x):
        batchsize = x.size()[0]
        h = F.relu(self.bn1(self.conv1(x)))
        h = F.relu(self.bn2(self.conv2(h)))
        h = torch.max(h, 2, keepdim=True)[0]
        h = h.view(-1, 16)
        h = self.fc2(F.relu(self.bn3(self.fc1(h))))
        iden = torch.eye(self.k).flatten().view(1, self.k * self.k).repeat(batchsize, 1)
        if h.is_cuda:
            iden = iden.cuda()
        trans = (h + iden).view(-1, self.k, self.k)
        x = torch.bmm(x.transpose(2, 1), trans)
        I = torch.eye(self.k)[None, :, :]  # noqa: E741
        loss = torch.mean(torch.norm(torch.bmm(trans, trans.transpose(2, 1)) - I, dim=(1, 2)))
        return x, loss


def knn(x, k):
    inner = -2 * torch.matmul(x.transpose(2, 1), x)
    xx = torch.sum(x**2, dim=1, keepdim=True)
    pairwise_distance = -xx - inner - xx.transpose(2, 1)
    return pairwise_distance.topk(k=k, dim=-1)[1]


class EdgeConv(nn.Module):
    """DGCNN."""

    def __init__(self, k=3):
        super().__init__()
        self.k = k
        self.conv = nn.Sequential(
            nn.Conv2d(6, 8, 1, bias=False), nn.BatchNorm2d(8), nn.LeakyReLU(negative_slope=0.2)
        )

    def forward(self, x):
        batch_size, num_dims, num_points = x.size()
        x = x.view(batch_size, -1, num_points)
        idx = knn(x, k=self.k)
        idx_base = torch.arange(0, batch_size, device=x.device).view(-1, 1, 1) * num_points
        idx = (idx + idx_base).view(-1)
        x = x.transpose(2, 1).contiguous()
        feature = x.view(batch_size * num_points, -1)[idx, :].view(batch_size, num_points, self.k, num_dims)
        x = x.view(batch_size, num_points, 1, num_dims).repeat(1, 1, self.k, 1)
        feature = torch.cat((feature - x, x), dim=3).permute(0, 3, 1, 2).contiguous()
        return self.conv(feature).max(dim=-1, keepdim=False)[0]


class SetAbstraction(nn.Module):
    """Farthest points, a ball query, grouped features."""

    def __init__(self, npoint=4, radius=0.8, nsample=5):
        super().__init__()
        self.npoint, self.radius, self.nsample = npoint, radius, nsample
        self.mlp = nn.Conv2d(3, 8, 1)

    @staticmethod
    def index_points(points, idx):
        B = points.shape[0]
        view_shape = list(idx.shape)
        view_shape[1:] = [1] * (len(view_shape) - 1)
        repeat_shape = list(idx.shape)
        repeat_shape[0] = 1
        batch_indices = torch.arange(B, dtype=torch.long).view(view_shape).repeat(repeat_shape)
        return points[batch_indices, idx, :]

    def farthest(self, xyz):
        B, N, C = xyz.shape
        centroids = torch.zeros(B, self.npoint, dtype=torch.long)
        distance = torch.ones(B, N) * 1e10
        farthest = torch.zeros(B, dtype=torch.long)
        batch_indices = torch.arange(B, dtype=torch.long)
        for i in range(self.npoint):
            centroids[:, i] = farthest
            centroid = xyz[batch_indices, farthest, :].view(B, 1, 3)
            dist = torch.sum((xyz - centroid) ** 2, -1)
            mask = dist < distance
            distance[mask] = dist[mask]
            farthest = torch.max(distance, -1)[1]
        return centroids

    def forward(self, xyz):
        B, N, C = xyz.shape
        new_xyz = self.index_points(xyz, self.farthest(xyz))
        sqrdists = torch.cdist(new_xyz, xyz) ** 2
        group_idx = torch.arange(N, dtype=torch.long).view(1, 1, N).repeat([B, self.npoint, 1])
        group_idx[sqrdists > self.radius**2] = N
        group_idx = group_idx.sort(dim=-1)[0][:, :, : self.nsample]
        group_first = group_idx[:, :, 0].view(B, self.npoint, 1).repeat([1, 1, self.nsample])
        mask = group_idx == N
        group_idx[mask] = group_first[mask]
        grouped = self.index_points(xyz, group_idx) - new_xyz.view(B, self.npoint, 1, C)
        return torch.max(F.relu(self.mlp(grouped.permute(0, 3, 2, 1))), 2)[0]


class DeepSets(nn.Module):
    def __init__(self, d=4, pool="mean"):
        super().__init__()
        self.phi, self.rho, self.pool = nn.Linear(d, 8), nn.Linear(8, 2), pool

    def forward(self, x, mask=None):
        h = F.elu(self.phi(x))
        if mask is not None:
            h = h * mask.unsqueeze(-1)
        if self.pool == "max":
            h, _ = h.max(1)
        elif self.pool == "mean":
            h = h.sum(1) / mask.sum(1, keepdim=True) if mask is not None else h.mean(1)
        return self.rho(h)


class ISAB(nn.Module):
    """Set transformer."""

    class MAB(nn.Module):
        def __init__(self, dim, heads, ln=True):
            super().__init__()
            self.dim_V, self.num_heads = dim, heads
            self.fc_q, self.fc_k, self.fc_v, self.fc_o = (nn.Linear(dim, dim) for _ in range(4))
            if ln:
                self.ln0 = nn.LayerNorm(dim)

        def forward(self, Q, K):
            Q = self.fc_q(Q)
            K, V = self.fc_k(K), self.fc_v(K)
            dim_split = self.dim_V // self.num_heads
            Q_ = torch.cat(Q.split(dim_split, 2), 0)
            K_ = torch.cat(K.split(dim_split, 2), 0)
            V_ = torch.cat(V.split(dim_split, 2), 0)
            A = torch.softmax(Q_.bmm(K_.transpose(1, 2)) / math.sqrt(self.dim_V), 2)
            O = torch.cat((Q_ + A.bmm(V_)).split(Q.size(0), 0), 2)  # noqa: E741
            O = O if getattr(self, "ln0", None) is None else self.ln0(O)  # noqa: E741
            return O + F.relu(self.fc_o(O))

    def __init__(self, dim=8, heads=2, num_inds=3):
        super().__init__()
        self.I = nn.Parameter(torch.Tensor(1, num_inds, dim))
        nn.init.xavier_uniform_(self.I)
        self.mab0, self.mab1 = self.MAB(dim, heads), self.MAB(dim, heads, ln=False)

    def forward(self, X):
        H = self.mab0(self.I.repeat(X.size(0), 1, 1), X)
        return self.mab1(X, H)


class RGCN(nn.Module):
    def __init__(self, n=4, out=3, rels=3, bases=2):
        super().__init__()
        self.comp = nn.Parameter(torch.randn(rels, bases))
        self.bases = nn.Parameter(torch.randn(bases, n, out))
        self.root, self.rels = nn.Linear(n, out), rels

    def forward(self, x, edge_index, edge_type):
        weight = torch.einsum("rb,bio->rio", self.comp, self.bases)
        out = self.root(x)
        for r in range(self.rels):
            m = edge_type == r
            src, dst = edge_index[:, m]
            if src.numel() == 0:
                continue
            out = out.index_add(0, dst, x[src] @ weight[r])
        return out


class SchNet(nn.Module):
    def __init__(self, h=6, gaussians=5, cutoff=3.0):
        super().__init__()
        self.embedding = nn.Embedding(10, h, padding_idx=0)
        offset = torch.linspace(0.0, cutoff, gaussians)
        self.coeff, self.cutoff = -0.5 / (offset[1] - offset[0]).item() ** 2, cutoff
        self.register_buffer("offset", offset)
        self.filter, self.lin, self.out = nn.Linear(gaussians, h), nn.Linear(h, h), nn.Linear(h, 1)

    def forward(self, z, pos):
        h = self.embedding(z)
        dist = (pos[:, None] - pos[None]).pow(2).sum(-1).add(1e-9).sqrt()
        i, j = torch.where((dist < self.cutoff) & ~torch.eye(len(z), dtype=torch.bool))
        rbf = torch.exp(self.coeff * torch.pow(dist[i, j].view(-1, 1) - self.offset.view(1, -1), 2))
        C = 0.5 * (torch.cos(dist[i, j] * math.pi / self.cutoff) + 1.0)
        W = F.softplus(self.filter(rbf)) - math.log(2)
        h = h + torch.zeros_like(h).index_add_(0, i, self.lin(h)[j] * W * C.view(-1, 1))
        return self.out(h).sum()


class TopKPool(nn.Module):
    def __init__(self, n=5, ratio=0.5):
        super().__init__()
        self.p, self.ratio = nn.Parameter(torch.randn(n)), ratio

    def forward(self, x, adj):
        score = torch.tanh(x @ self.p / self.p.norm(p=2, dim=-1))
        values, idx = torch.topk(score, max(2, int(self.ratio * x.shape[0])))
        new = x[idx, :] * values.unsqueeze(-1)
        adj = adj[idx, :][:, idx]
        return new, adj / adj.sum(1, keepdim=True).clamp(min=1e-9), idx


class DiffPool(nn.Module):
    def __init__(self, n=5, k=2):
        super().__init__()
        self.assign, self.embed = nn.Linear(n, k), nn.Linear(n, n)

    def forward(self, x, adj):
        s = torch.softmax(self.assign(adj @ x), -1)
        out, out_adj = s.t() @ self.embed(adj @ x), s.t() @ adj @ s
        link_loss = torch.norm(adj - torch.matmul(s, s.t()), p=2) / adj.numel()
        ent_loss = (-s * torch.log(s + 1e-15)).sum(dim=-1).mean()
        return out, out_adj, link_loss + ent_loss


class TreeLSTM(nn.Module):
    """Recursion over nested tuples."""

    def __init__(self, vocab=10, h=5):
        super().__init__()
        self.emb, self.iou, self.f, self.u = (
            nn.Embedding(vocab, h),
            nn.Linear(h, 3 * h),
            nn.Linear(h, h),
            nn.Linear(h, h),
        )

    def node(self, tree, tokens):
        if isinstance(tree, int):
            x = self.emb(tokens[tree])
            return torch.tanh(x), x
        children = [self.node(t, tokens) for t in tree]
        h_sum = sum(h for h, _ in children)
        i, o, u = self.iou(h_sum).chunk(3, -1)
        c = torch.sigmoid(i) * torch.tanh(u) + sum(torch.sigmoid(self.f(h)) * c for h, c in children)
        return torch.sigmoid(o) * torch.tanh(c), c

    def forward(self, tokens, tree):
        return self.node(tree, tokens)[0]


def edges(n=6, m=12):
    return torch.stack((torch.randint(0, n, (m,)), torch.arange(m) % n))


def adj(n=6):
    a = (torch.rand(n, n) > 0.5).float()
    return ((a + a.t()) > 0).float() + torch.eye(n)


CASES = [
    of("gcn", GCN, lambda: (torch.randn(6, 5), adj())),
    of("gcn_sparse", GCN, lambda: (torch.randn(6, 5), adj().to_sparse())),
    of("gcn_normalized", NormalizedGCN, lambda: (torch.randn(6, 5), adj())),
    of("gat_dense", GAT, lambda: (torch.randn(6, 5), adj())),
    of("gat_edges", EdgeGAT, lambda: (torch.randn(6, 5), edges())),
    of("egnn", EGNN, lambda: (torch.randn(6, 6), edges(), torch.randn(6, 3))),
    of("graph_sage_max", GraphSAGE, lambda: (torch.randn(6, 5), edges())),
    of("graph_sage_mean", lambda: GraphSAGE(aggr="mean"), lambda: (torch.randn(6, 5), edges())),
    of("gin", GIN, lambda: (torch.randn(6, 5), edges(), torch.tensor([0, 0, 0, 1, 1, 1]))),
    of("mpnn", MPNN, lambda: (torch.randn(6, 4), edges(), torch.randn(12, 3))),
    of("light_gcn", LightGCN, lambda: (torch.tensor([0, 2, 3]), torch.tensor([1, 4, 0]))),
    of("cheb_conv", ChebConv, lambda: (torch.randn(2, 6, 4), adj())),
    of("stgcn_block", STGCNBlock, lambda: (torch.randn(2, 5, 6, 2), adj(5))),
    of("point_net", PointNet, lambda: torch.randn(2, 3, 7)),
    of("edge_conv", EdgeConv, lambda: torch.randn(2, 3, 7)),
    of("set_abstraction", SetAbstraction, lambda: torch.rand(2, 8, 3)),
    of("deep_sets", DeepSets, lambda: (torch.randn(2, 5, 4), torch.ones(2, 5))),
    of("deep_sets_max", lambda: DeepSets(pool="max"), lambda: torch.randn(2, 5, 4)),
    of("isab", ISAB, lambda: torch.randn(2, 5, 8)),
    of("rgcn", RGCN, lambda: (torch.randn(6, 4), edges(), torch.arange(12) % 3)),
    of("schnet", SchNet, lambda: (torch.randint(1, 10, (5,)), torch.randn(5, 3))),
    of("topk_pool", TopKPool, lambda: (torch.randn(6, 5), adj())),
    of("diff_pool", DiffPool, lambda: (torch.randn(6, 5), adj())),
    of("tree_lstm", TreeLSTM, lambda: (torch.randint(0, 10, (4,)), ((0, 1), (2, 3)))),
]

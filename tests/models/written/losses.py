"""Losses and metrics, most of them as modules of their own behind a small head."""
# ruff: noqa: B007, E741, UP031  (as people write)

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from . import of


class WithHead(nn.Module):
    """A linear layer, then the loss."""

    def __init__(self, loss, n=6, out=4):
        super().__init__()
        self.head, self.criterion = nn.Linear(n, out), loss

    def forward(self, x, *targets):
        return self.criterion(self.head(x), *targets)


class FocalLoss(nn.Module):
    def __init__(self, gamma=2, alpha=None, size_average=True):
        super().__init__()
        self.gamma, self.alpha = gamma, alpha
        if isinstance(alpha, (float, int)):
            self.alpha = torch.Tensor([alpha, 1 - alpha])
        if isinstance(alpha, list):
            self.alpha = torch.Tensor(alpha)
        self.size_average = size_average

    def forward(self, input, target):
        if input.dim() > 2:
            input = input.view(input.size(0), input.size(1), -1).transpose(1, 2)
            input = input.contiguous().view(-1, input.size(2))
        target = target.view(-1, 1)
        logpt = F.log_softmax(input, dim=1)
        logpt = logpt.gather(1, target)
        logpt = logpt.view(-1)
        pt = logpt.data.exp()
        if self.alpha is not None:
            if self.alpha.type() != input.data.type():
                self.alpha = self.alpha.type_as(input.data)
            at = self.alpha.gather(0, target.data.view(-1))
            logpt = logpt * at
        loss = -1 * (1 - pt) ** self.gamma * logpt
        return loss.mean() if self.size_average else loss.sum()


class BinaryFocal(nn.Module):
    def __init__(self, alpha=0.25, gamma=2.0, reduction="mean"):
        super().__init__()
        self.alpha, self.gamma, self.reduction = alpha, gamma, reduction

    def forward(self, inputs, targets):
        p = torch.sigmoid(inputs)
        ce = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
        p_t = p * targets + (1 - p) * (1 - targets)
        loss = ce * ((1 - p_t) ** self.gamma)
        if self.alpha >= 0:
            loss = (self.alpha * targets + (1 - self.alpha) * (1 - targets)) * loss
        return {"mean": torch.mean, "sum": torch.sum}.get(self.reduction, lambda x: x)(loss)


class DiceLoss(nn.Module):
    def __init__(self, smooth=1.0, multiclass=False):
        super().__init__()
        self.smooth, self.multiclass = smooth, multiclass

    def forward(self, logits, target):
        if self.multiclass:
            probs = F.softmax(logits, dim=1)
            target = F.one_hot(target, num_classes=logits.shape[1]).movedim(-1, 1).float()
            dims = (0,) + tuple(range(2, target.ndimension()))
            inter = torch.sum(probs * target, dims)
            card = torch.sum(probs + target, dims)
            return (1 - (2.0 * inter / (card + 1e-7))).mean()
        m1 = torch.sigmoid(logits).view(logits.size(0), -1)
        m2 = target.view(target.size(0), -1)
        score = 2.0 * ((m1 * m2).sum(1) + self.smooth) / (m1.sum(1) + m2.sum(1) + self.smooth)
        return 1 - score.sum() / target.size(0)


class TripletHard(nn.Module):
    """Batch-hard mining."""

    def __init__(self, margin=0.3):
        super().__init__()
        self.margin = margin
        self.ranking_loss = nn.MarginRankingLoss(margin=margin)

    def forward(self, inputs, targets):
        n = inputs.size(0)
        dist = torch.pow(inputs, 2).sum(dim=1, keepdim=True).expand(n, n)
        dist = dist + dist.t()
        dist.addmm_(inputs, inputs.t(), beta=1, alpha=-2)
        dist = dist.clamp(min=1e-12).sqrt()
        mask = targets.expand(n, n).eq(targets.expand(n, n).t())
        dist_ap, dist_an = [], []
        for i in range(n):
            dist_ap.append(dist[i][mask[i]].max().unsqueeze(0))
            dist_an.append(dist[i][mask[i] == 0].min().unsqueeze(0))
        dist_ap, dist_an = torch.cat(dist_ap), torch.cat(dist_an)
        return self.ranking_loss(dist_an, dist_ap, torch.ones_like(dist_an))


class NTXent(nn.Module):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def forward(self, z):
        z = F.normalize(z, dim=1)
        n = z.size(0)
        sim = torch.mm(z, z.t().contiguous()) / self.temperature
        mask = torch.eye(n, dtype=torch.bool)
        sim = sim.masked_fill(mask, -9e15)
        pos_mask = mask.roll(shifts=n // 2, dims=0)
        nll = -sim[pos_mask] + torch.logsumexp(sim, dim=-1)
        return nll.mean()


class SimCLR(nn.Module):
    """Positives and negatives picked by boolean masks."""

    def forward(self, features, n_views=2, temperature=0.07):
        batch = features.shape[0] // n_views
        labels = torch.cat([torch.arange(batch) for i in range(n_views)], dim=0)
        labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
        features = F.normalize(features, dim=1)
        similarity_matrix = torch.matmul(features, features.T)
        mask = torch.eye(labels.shape[0], dtype=torch.bool)
        labels = labels[~mask].view(labels.shape[0], -1)
        similarity_matrix = similarity_matrix[~mask].view(similarity_matrix.shape[0], -1)
        positives = similarity_matrix[labels.bool()].view(labels.shape[0], -1)
        negatives = similarity_matrix[~labels.bool()].view(similarity_matrix.shape[0], -1)
        logits = torch.cat([positives, negatives], dim=1) / temperature
        return F.cross_entropy(logits, torch.zeros(logits.shape[0], dtype=torch.long))


class SupCon(nn.Module):
    def __init__(self, temperature=0.07, base_temperature=0.07):
        super().__init__()
        self.temperature, self.base_temperature = temperature, base_temperature

    def forward(self, features, labels):
        features = F.normalize(features, dim=-1)
        labels = labels.contiguous().view(-1, 1)
        mask = torch.eq(labels, labels.T).float()
        dot = torch.div(torch.matmul(features, features.T), self.temperature)
        logits_max, _ = torch.max(dot, dim=1, keepdim=True)
        logits = dot - logits_max.detach()
        logits_mask = torch.scatter(torch.ones_like(mask), 1, torch.arange(len(features)).view(-1, 1), 0)
        mask = mask * logits_mask
        log_prob = logits - torch.log((torch.exp(logits) * logits_mask).sum(1, keepdim=True))
        pairs = mask.sum(1)
        pairs = torch.where(pairs < 1e-6, 1, pairs)
        return -(self.temperature / self.base_temperature) * ((mask * log_prob).sum(1) / pairs).mean()


class CLIPLoss(nn.Module):
    def __init__(self, n=6, d=4):
        super().__init__()
        self.img, self.txt = nn.Linear(n, d), nn.Linear(n, d)
        self.logit_scale = nn.Parameter(torch.ones([]) * math.log(1 / 0.07))

    def forward(self, image, text):
        i, t = self.img(image), self.txt(text)
        i = i / i.norm(dim=1, keepdim=True)
        t = t / t.norm(dim=1, keepdim=True)
        logits = self.logit_scale.exp() * i @ t.t()
        labels = torch.arange(len(logits), device=logits.device)
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2


class MoCo(nn.Module):
    """A momentum encoder and a queue."""

    def __init__(self, n=6, dim=4, K=8, m=0.9, T=0.07):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.encoder_q, self.encoder_k = nn.Linear(n, dim), nn.Linear(n, dim)
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data.copy_(param_q.data)
            param_k.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _momentum_update_key_encoder(self):
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data = param_k.data * self.m + param_q.data * (1.0 - self.m)

    @torch.no_grad()
    def _dequeue_and_enqueue(self, keys):
        batch_size = keys.shape[0]
        ptr = int(self.queue_ptr)
        assert self.K % batch_size == 0
        self.queue[:, ptr : ptr + batch_size] = keys.T
        self.queue_ptr[0] = (ptr + batch_size) % self.K

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            self._momentum_update_key_encoder()
            k = F.normalize(self.encoder_k(im_k), dim=1)
        l_pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
        logits = torch.cat([l_pos, l_neg], dim=1)
        logits /= self.T
        labels = torch.zeros(logits.shape[0], dtype=torch.long)
        self._dequeue_and_enqueue(k)
        return logits, labels


class BarlowTwins(nn.Module):
    def __init__(self, d=4):
        super().__init__()
        self.net, self.bn = nn.Linear(6, d), nn.BatchNorm1d(d, affine=False)

    def off_diagonal(self, x):
        n, m = x.shape
        assert n == m
        return x.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten()

    def forward(self, y1, y2):
        c = self.bn(self.net(y1)).T @ self.bn(self.net(y2))
        c.div_(y1.shape[0])
        on_diag = torch.diagonal(c).add_(-1).pow_(2).sum()
        return on_diag + 0.0051 * self.off_diagonal(c).pow_(2).sum()


class VICReg(nn.Module):
    def forward(self, x, y):
        repr_loss = F.mse_loss(x, y)
        x, y = x - x.mean(dim=0), y - y.mean(dim=0)
        std_x, std_y = torch.sqrt(x.var(dim=0) + 0.0001), torch.sqrt(y.var(dim=0) + 0.0001)
        std_loss = torch.mean(F.relu(1 - std_x)) / 2 + torch.mean(F.relu(1 - std_y)) / 2
        cov = (x.T @ x) / (x.shape[0] - 1)
        n = cov.shape[0]
        cov_loss = cov.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten().pow_(2).sum().div(n)
        return 25 * repr_loss + 25 * std_loss + cov_loss


class DINOLoss(nn.Module):
    def __init__(self, out_dim=4, student_temp=0.1, center_momentum=0.9):
        super().__init__()
        self.student_temp, self.center_momentum = student_temp, center_momentum
        self.register_buffer("center", torch.zeros(1, out_dim))

    def forward(self, student_output, teacher_output):
        student_out = (student_output / self.student_temp).chunk(2)
        teacher_out = F.softmax((teacher_output - self.center) / 0.04, dim=-1).detach().chunk(2)
        total_loss, n_loss_terms = 0, 0
        for iq, q in enumerate(teacher_out):
            for v in range(len(student_out)):
                if v == iq:
                    continue
                loss = torch.sum(-q * F.log_softmax(student_out[v], dim=-1), dim=-1)
                total_loss += loss.mean()
                n_loss_terms += 1
        self.update_center(teacher_output)
        return total_loss / n_loss_terms

    @torch.no_grad()
    def update_center(self, teacher_output):
        batch_center = torch.sum(teacher_output, dim=0, keepdim=True) / len(teacher_output)
        self.center = self.center * self.center_momentum + batch_center * (1 - self.center_momentum)


class ArcFace(nn.Module):
    def __init__(self, n=6, classes=4, s=30.0, m=0.5):
        super().__init__()
        self.weight = nn.Parameter(torch.FloatTensor(classes, n))
        nn.init.xavier_uniform_(self.weight)
        self.s, self.m = s, m
        self.cos_m, self.sin_m = math.cos(m), math.sin(m)
        self.th, self.mm = math.cos(math.pi - m), math.sin(math.pi - m) * m

    def forward(self, input, label):
        cosine = F.linear(F.normalize(input), F.normalize(self.weight))
        sine = torch.sqrt((1.0 - torch.pow(cosine, 2)).clamp(0, 1))
        phi = cosine * self.cos_m - sine * self.sin_m
        phi = torch.where(cosine > self.th, phi, cosine - self.mm)
        one_hot = torch.zeros(cosine.size())
        one_hot.scatter_(1, label.view(-1, 1).long(), 1)
        output = (one_hot * phi) + ((1.0 - one_hot) * cosine)
        output *= self.s
        return F.cross_entropy(output, label)


class CenterLoss(nn.Module):
    def __init__(self, classes=4, d=6):
        super().__init__()
        self.num_classes, self.centers = classes, nn.Parameter(torch.randn(classes, d))

    def forward(self, x, labels):
        b = x.size(0)
        distmat = (
            torch.pow(x, 2).sum(dim=1, keepdim=True).expand(b, self.num_classes)
            + torch.pow(self.centers, 2).sum(dim=1, keepdim=True).expand(self.num_classes, b).t()
        )
        distmat.addmm_(x, self.centers.t(), beta=1, alpha=-2)
        classes = torch.arange(self.num_classes).long()
        mask = labels.unsqueeze(1).expand(b, self.num_classes).eq(classes.expand(b, self.num_classes))
        return (distmat * mask.float()).clamp(min=1e-12, max=1e12).sum() / b


class LabelSmoothing(nn.Module):
    """KL against a distribution built in place."""

    def __init__(self, size=4, padding_idx=0, smoothing=0.1):
        super().__init__()
        self.criterion = nn.KLDivLoss(reduction="sum")
        self.padding_idx, self.confidence, self.smoothing, self.size = (
            padding_idx,
            1.0 - smoothing,
            smoothing,
            size,
        )
        self.true_dist = None

    def forward(self, x, target):
        assert x.size(1) == self.size
        x = x.log_softmax(-1)
        true_dist = x.data.clone()
        true_dist.fill_(self.smoothing / (self.size - 2))
        true_dist.scatter_(1, target.data.unsqueeze(1), self.confidence)
        true_dist[:, self.padding_idx] = 0
        mask = torch.nonzero(target.data == self.padding_idx)
        if mask.dim() > 0:
            true_dist.index_fill_(0, mask.squeeze(-1), 0.0)
        return self.criterion(x, true_dist.clone().detach())


class KnowledgeDistillation(nn.Module):
    def __init__(self, T=3.0, alpha=0.7):
        super().__init__()
        self.T, self.alpha = T, alpha

    def forward(self, outputs, labels, teacher_outputs):
        return nn.KLDivLoss(reduction="batchmean")(
            F.log_softmax(outputs / self.T, dim=1), F.softmax(teacher_outputs / self.T, dim=1)
        ) * (self.alpha * self.T * self.T) + F.cross_entropy(outputs, labels) * (1.0 - self.alpha)


class CTC(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.fc = nn.GRU(4, 5, bidirectional=True), nn.Linear(10, 6)
        self.loss = nn.CTCLoss(blank=0, zero_infinity=True)

    def forward(self, x, targets, target_lengths):
        y, _ = self.rnn(x)
        log_probs = self.fc(y).log_softmax(2)
        input_lengths = torch.full(size=(x.size(1),), fill_value=x.size(0), dtype=torch.long)
        return self.loss(log_probs, targets, input_lengths, target_lengths)


class SSIM(nn.Module):
    def __init__(self, window_size=5, channel=3):
        super().__init__()
        g = torch.Tensor(
            [math.exp(-((x - window_size // 2) ** 2) / float(2 * 1.5**2)) for x in range(window_size)]
        )
        g = (g / g.sum()).unsqueeze(1)
        w = g.mm(g.t()).float().unsqueeze(0).unsqueeze(0)
        self.window_size, self.channel = window_size, channel
        self.window = w.expand(channel, 1, window_size, window_size).contiguous()

    def forward(self, img1, img2):
        (_, channel, _, _) = img1.size()
        window = self.window.type_as(img1)
        conv = lambda x: F.conv2d(x, window, padding=self.window_size // 2, groups=channel)  # noqa: E731
        mu1, mu2 = conv(img1), conv(img2)
        mu1_sq, mu2_sq, mu1_mu2 = mu1.pow(2), mu2.pow(2), mu1 * mu2
        s1, s2, s12 = conv(img1 * img1) - mu1_sq, conv(img2 * img2) - mu2_sq, conv(img1 * img2) - mu1_mu2
        C1, C2 = 0.01**2, 0.03**2
        return (((2 * mu1_mu2 + C1) * (2 * s12 + C2)) / ((mu1_sq + mu2_sq + C1) * (s1 + s2 + C2))).mean()


class LovaszHinge(nn.Module):
    def forward(self, logits, labels):
        logits, labels = logits.flatten(), labels.flatten()
        signs = 2.0 * labels.float() - 1.0
        errors = 1.0 - logits * signs
        errors_sorted, perm = torch.sort(errors, dim=0, descending=True)
        gt_sorted = labels[perm.data]
        gts = gt_sorted.sum()
        intersection = gts - gt_sorted.float().cumsum(0)
        union = gts + (1 - gt_sorted).float().cumsum(0)
        jaccard = 1.0 - intersection / union
        if len(gt_sorted) > 1:
            jaccard[1:] = jaccard[1:] - jaccard[:-1]
        return torch.dot(F.relu(errors_sorted), jaccard)


class TVLoss(nn.Module):
    def forward(self, x):
        b, _, h, w = x.size()
        count_h, count_w = x[:, :, 1:, :].numel() / b, x[:, :, :, 1:].numel() / b
        h_tv = torch.pow((x[:, :, 1:, :] - x[:, :, : h - 1, :]), 2).sum()
        w_tv = torch.pow((x[:, :, :, 1:] - x[:, :, :, : w - 1]), 2).sum()
        return 2 * (h_tv / count_h + w_tv / count_w) / b


class GramLoss(nn.Module):
    """Content and style, kept by the module as it goes."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.register_buffer("target", torch.rand(4, 4))

    def gram_matrix(self, input):
        a, b, c, d = input.size()
        features = input.view(a, b, c * d)
        return torch.bmm(features, features.transpose(1, 2)).div(b * c * d)

    def forward(self, input):
        x = F.relu(self.conv(input))
        self.loss = F.mse_loss(self.gram_matrix(x), self.target.expand(x.size(0), -1, -1))
        return x, self.loss


def bbox_iou(box1, box2, GIoU=False, DIoU=False, CIoU=False, eps=1e-7):
    (x1, y1, w1, h1), (x2, y2, w2, h2) = box1.chunk(4, -1), box2.chunk(4, -1)
    b1_x1, b1_x2, b1_y1, b1_y2 = x1 - w1 / 2, x1 + w1 / 2, y1 - h1 / 2, y1 + h1 / 2
    b2_x1, b2_x2, b2_y1, b2_y2 = x2 - w2 / 2, x2 + w2 / 2, y2 - h2 / 2, y2 + h2 / 2
    inter = (torch.min(b1_x2, b2_x2) - torch.max(b1_x1, b2_x1)).clamp(0) * (
        torch.min(b1_y2, b2_y2) - torch.max(b1_y1, b2_y1)
    ).clamp(0)
    union = w1 * h1 + w2 * h2 - inter + eps
    iou = inter / union
    if CIoU or DIoU or GIoU:
        cw, ch = (
            torch.max(b1_x2, b2_x2) - torch.min(b1_x1, b2_x1),
            torch.max(b1_y2, b2_y2) - torch.min(b1_y1, b2_y1),
        )
        if CIoU or DIoU:
            c2 = cw**2 + ch**2 + eps
            rho2 = ((b2_x1 + b2_x2 - b1_x1 - b1_x2) ** 2 + (b2_y1 + b2_y2 - b1_y1 - b1_y2) ** 2) / 4
            if CIoU:
                v = (4 / math.pi**2) * torch.pow(torch.atan(w2 / h2) - torch.atan(w1 / h1), 2)
                with torch.no_grad():
                    alpha = v / (v - iou + (1 + eps))
                return iou - (rho2 / c2 + v * alpha)
            return iou - rho2 / c2
        c_area = cw * ch + eps
        return iou - (c_area - union) / c_area
    return iou


class BoxLoss(nn.Module):
    def __init__(self, **kinds):
        super().__init__()
        self.kinds = kinds

    def forward(self, pred, target):
        return (1.0 - bbox_iou(pred.sigmoid(), target, **self.kinds)).mean()


class Uncertainty(nn.Module):
    """Weights of several losses, learned."""

    def __init__(self, n=2):
        super().__init__()
        self.log_vars = nn.Parameter(torch.zeros(n))

    def forward(self, x, y, t):
        losses = [F.smooth_l1_loss(x, y), F.cross_entropy(x, t)]
        total = 0
        for i, loss in enumerate(losses):
            precision = torch.exp(-self.log_vars[i])
            total += precision * loss + self.log_vars[i]
        return total, {f"loss_{i}": loss.detach() for i, loss in enumerate(losses)}


class PolyLoss(nn.Module):
    def forward(self, logits, labels, epsilon=2.0):
        labels_onehot = F.one_hot(labels, num_classes=logits.shape[-1]).to(
            device=logits.device, dtype=logits.dtype
        )
        pt = torch.sum(labels_onehot * F.softmax(logits, dim=-1), dim=-1)
        CE = F.cross_entropy(input=logits, target=labels, reduction="none", label_smoothing=0.1)
        return (CE + epsilon * (1 - pt)).mean()


class AsymmetricLoss(nn.Module):
    def __init__(self, gamma_neg=4, gamma_pos=1, clip=0.05, disable_torch_grad_focal_loss=True):
        super().__init__()
        self.gamma_neg, self.gamma_pos, self.clip = gamma_neg, gamma_pos, clip
        self.disable_torch_grad_focal_loss = disable_torch_grad_focal_loss

    def forward(self, x, y):
        x_sigmoid = torch.sigmoid(x)
        xs_pos, xs_neg = x_sigmoid, 1 - x_sigmoid
        if self.clip is not None and self.clip > 0:
            xs_neg = (xs_neg + self.clip).clamp(max=1)
        loss = y * torch.log(xs_pos.clamp(min=1e-8)) + (1 - y) * torch.log(xs_neg.clamp(min=1e-8))
        if self.gamma_neg > 0 or self.gamma_pos > 0:
            if self.disable_torch_grad_focal_loss:
                torch.set_grad_enabled(False)
            pt = xs_pos * y + xs_neg * (1 - y)
            one_sided_w = torch.pow(1 - pt, self.gamma_pos * y + self.gamma_neg * (1 - y))
            if self.disable_torch_grad_focal_loss:
                torch.set_grad_enabled(True)
            loss *= one_sided_w
        return -loss.sum()


class MMD(nn.Module):
    def __init__(self, kernel_mul=2.0, kernel_num=3):
        super().__init__()
        self.kernel_num, self.kernel_mul = kernel_num, kernel_mul

    def forward(self, source, target):
        n = int(source.size()[0])
        total = torch.cat([source, target], dim=0)
        total0 = total.unsqueeze(0).expand(int(total.size(0)), int(total.size(0)), int(total.size(1)))
        total1 = total.unsqueeze(1).expand(int(total.size(0)), int(total.size(0)), int(total.size(1)))
        L2 = ((total0 - total1) ** 2).sum(2)
        bandwidth = torch.sum(L2.data) / (4 * n**2 - 2 * n)
        bandwidth /= self.kernel_mul ** (self.kernel_num // 2)
        kernels = sum(torch.exp(-L2 / (bandwidth * self.kernel_mul**i)) for i in range(self.kernel_num))
        return torch.mean(kernels[:n, :n] + kernels[n:, n:] - kernels[:n, n:] - kernels[n:, :n])


class GradientReversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.alpha, None


class DANN(nn.Module):
    def __init__(self):
        super().__init__()
        self.feature, self.cls, self.domain = nn.Linear(6, 5), nn.Linear(5, 3), nn.Linear(5, 2)

    def forward(self, x, alpha=0.5):
        f = torch.tanh(self.feature(x))
        return F.log_softmax(self.cls(f), 1), F.log_softmax(self.domain(GradientReversal.apply(f, alpha)), 1)


class Accuracy(nn.Module):
    """Top-k accuracies and a confusion matrix."""

    def forward(self, output, target, topk=(1, 2)):
        with torch.no_grad():
            maxk = max(topk)
            batch_size = target.size(0)
            _, pred = output.topk(maxk, 1, True, True)
            pred = pred.t()
            correct = pred.eq(target.view(1, -1).expand_as(pred))
            res = []
            for k in topk:
                correct_k = correct[:k].reshape(-1).float().sum(0, keepdim=True)
                res.append(correct_k.mul_(100.0 / batch_size))
            n = output.size(1)
            hist = torch.bincount(n * target + output.argmax(1), minlength=n**2).reshape(n, n)
            iu = torch.diag(hist) / (hist.sum(1) + hist.sum(0) - torch.diag(hist))
            return res, hist, iu


class WingLoss(nn.Module):
    def __init__(self, omega=10, epsilon=2):
        super().__init__()
        self.omega, self.epsilon = omega, epsilon

    def forward(self, pred, target):
        delta_y = (target - pred).abs()
        delta_y1, delta_y2 = delta_y[delta_y < self.omega], delta_y[delta_y >= self.omega]
        loss1 = self.omega * torch.log(1 + delta_y1 / self.epsilon)
        C = self.omega - self.omega * math.log(1 + self.omega / self.epsilon)
        loss2 = delta_y2 - C
        return (loss1.sum() + loss2.sum()) / (len(loss1) + len(loss2))


class SoftDTW(nn.Module):
    def __init__(self, gamma=1.0):
        super().__init__()
        self.gamma = gamma

    def forward(self, x, y):
        D = ((x.unsqueeze(2) - y.unsqueeze(1)) ** 2).sum(-1)
        B, N, M = D.shape
        R = [[None] * (M + 1) for _ in range(N + 1)]
        inf = torch.full((B,), 1e6)
        for i in range(N + 1):
            for j in range(M + 1):
                R[i][j] = inf
        R[0][0] = torch.zeros(B)
        for i in range(1, N + 1):
            for j in range(1, M + 1):
                r = torch.stack([R[i - 1][j - 1], R[i - 1][j], R[i][j - 1]])
                R[i][j] = D[:, i - 1, j - 1] - self.gamma * torch.logsumexp(-r / self.gamma, 0)
        return R[N][M].mean()


def x(b=4, n=6):
    return torch.randn(b, n)


def cls(b=4, n=4):
    return torch.arange(b) % n


def boxes():
    return torch.rand(4, 4) * 0.5 + 0.2


CASES = [
    of("focal", lambda: WithHead(FocalLoss()), lambda: (x(), cls())),
    of("focal_alpha", lambda: WithHead(FocalLoss(alpha=[0.1, 0.2, 0.3, 0.4])), lambda: (x(), cls())),
    of("focal_binary", lambda: WithHead(BinaryFocal()), lambda: (x(), torch.rand(4, 4).round())),
    of("dice", lambda: WithHead(DiceLoss()), lambda: (x(), torch.rand(4, 4).round())),
    of("dice_multiclass", lambda: WithHead(DiceLoss(multiclass=True)), lambda: (x(), cls())),
    of("triplet_hard", lambda: WithHead(TripletHard()), lambda: (x(), torch.tensor([0, 0, 1, 1]))),
    of("nt_xent", lambda: WithHead(NTXent()), x),
    of("simclr", lambda: WithHead(SimCLR()), x),
    of("sup_con", lambda: WithHead(SupCon()), lambda: (x(), torch.tensor([0, 0, 1, 1]))),
    of("clip_loss", CLIPLoss, lambda: (x(), x())),
    of("moco", MoCo, lambda: (x(), x())),
    of("barlow_twins", BarlowTwins, lambda: (x(), x())),
    of("vicreg", lambda: WithHead(VICReg()), lambda: (x(), x(n=4))),
    of("dino_loss", lambda: WithHead(DINOLoss()), lambda: (x(), x(n=4))),
    of("arc_face", ArcFace, lambda: (x(), cls())),
    of("center_loss", CenterLoss, lambda: (x(), cls())),
    of("label_smoothing_kl", lambda: WithHead(LabelSmoothing()), lambda: (x(), cls())),
    of("distillation", lambda: WithHead(KnowledgeDistillation()), lambda: (x(), cls(), x(n=4))),
    of("ctc", CTC, lambda: (torch.randn(7, 2, 4), torch.randint(1, 6, (2, 3)), torch.tensor([3, 2]))),
    of("ssim", SSIM, lambda: (torch.rand(2, 3, 12, 12), torch.rand(2, 3, 12, 12))),
    of("lovasz_hinge", lambda: WithHead(LovaszHinge()), lambda: (x(), torch.rand(4, 4).round().long())),
    of("tv_loss", TVLoss, lambda: torch.rand(2, 3, 6, 6)),
    of("gram_loss", GramLoss, lambda: torch.rand(2, 3, 6, 6)),
    of("iou", lambda: WithHead(BoxLoss()), lambda: (x(), boxes())),
    of("giou", lambda: WithHead(BoxLoss(GIoU=True)), lambda: (x(), boxes())),
    of("ciou", lambda: WithHead(BoxLoss(CIoU=True)), lambda: (x(), boxes())),
    of("uncertainty_weights", lambda: WithHead(Uncertainty()), lambda: (x(), x(n=4), cls())),
    of("poly_loss", lambda: WithHead(PolyLoss()), lambda: (x(), cls())),
    of("asymmetric_loss", lambda: WithHead(AsymmetricLoss()), lambda: (x(), torch.rand(4, 4).round())),
    of("mmd", lambda: WithHead(MMD()), lambda: (x(), x(n=4))),
    of("dann", DANN, x),
    of("accuracy", lambda: WithHead(Accuracy()), lambda: (x(), cls())),
    of("wing_loss", lambda: WithHead(WingLoss(omega=1)), lambda: (x(), x(n=4))),
    of("soft_dtw", SoftDTW, lambda: (torch.randn(2, 3, 2), torch.randn(2, 4, 2))),
]

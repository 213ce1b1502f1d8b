"""Recurrent networks, sequence to sequence, tagging, convolutions over time."""
# ruff: noqa: B007, E741, UP031  (as people write)

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable
from torch.nn.utils import weight_norm
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from . import of


class LSTMClassifier(nn.Module):
    def __init__(self, input_size=6, hidden_size=8, num_layers=2, num_classes=3):
        super().__init__()
        self.hidden_size, self.num_layers = hidden_size, num_layers
        self.lstm = nn.LSTM(input_size, hidden_size, num_layers, batch_first=True)
        self.fc = nn.Linear(hidden_size, num_classes)

    def forward(self, x):
        h0 = torch.zeros(self.num_layers, x.size(0), self.hidden_size).to(x.device)
        c0 = torch.zeros(self.num_layers, x.size(0), self.hidden_size).to(x.device)
        out, _ = self.lstm(x, (h0, c0))
        return self.fc(out[:, -1, :])


class TextLSTM(nn.Module):
    """Sentences of several lengths, packed."""

    def __init__(self, vocab=30, emb=8, hidden=8, bidirectional=True):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb, padding_idx=0)
        self.rnn = nn.LSTM(emb, hidden, num_layers=1, bidirectional=bidirectional, batch_first=True)
        self.fc = nn.Linear(hidden * (1 + bidirectional), 2)
        self.dropout = nn.Dropout(0.3)

    def forward(self, text, text_lengths):
        embedded = self.dropout(self.embedding(text))
        packed = pack_padded_sequence(embedded, text_lengths.cpu(), batch_first=True, enforce_sorted=False)
        packed_output, (hidden, cell) = self.rnn(packed)
        output, output_lengths = pad_packed_sequence(packed_output, batch_first=True)
        hidden = self.dropout(torch.cat((hidden[-2, :, :], hidden[-1, :, :]), dim=1))
        return self.fc(hidden), output


class GRUStateful(nn.Module):
    """Keeps its state between calls."""

    def __init__(self, n=5, h=6):
        super().__init__()
        self.gru, self.out = nn.GRU(n, h), nn.Linear(h, n)
        self.hidden, self.h = None, h

    def init_hidden(self, batch):
        return Variable(torch.zeros(1, batch, self.h))

    def forward(self, x):
        if self.hidden is None or self.hidden.size(1) != x.size(1):
            self.hidden = self.init_hidden(x.size(1))
        y, h = self.gru(x, self.hidden)
        self.hidden = h.detach()
        return self.out(y)


class LSTMCellByHand(nn.Module):
    def __init__(self, input_sz=4, hidden_sz=6):
        super().__init__()
        self.hidden_size = hidden_sz
        self.W = nn.Parameter(torch.Tensor(input_sz, hidden_sz * 4))
        self.U = nn.Parameter(torch.Tensor(hidden_sz, hidden_sz * 4))
        self.bias = nn.Parameter(torch.Tensor(hidden_sz * 4))
        for p in self.parameters():
            if p.data.ndimension() >= 2:
                nn.init.xavier_uniform_(p.data)
            else:
                nn.init.zeros_(p.data)

    def forward(self, x, init_states=None):
        """Assumes x is of shape (batch, sequence, feature)"""
        bs, seq_sz, _ = x.size()
        hidden_seq = []
        if init_states is None:
            h_t, c_t = (
                torch.zeros(bs, self.hidden_size).to(x.device),
                torch.zeros(bs, self.hidden_size).to(x.device),
            )
        else:
            h_t, c_t = init_states
        HS = self.hidden_size
        for t in range(seq_sz):
            x_t = x[:, t, :]
            gates = x_t @ self.W + h_t @ self.U + self.bias
            i_t, f_t, g_t, o_t = (
                torch.sigmoid(gates[:, :HS]),
                torch.sigmoid(gates[:, HS : HS * 2]),
                torch.tanh(gates[:, HS * 2 : HS * 3]),
                torch.sigmoid(gates[:, HS * 3 :]),
            )
            c_t = f_t * c_t + i_t * g_t
            h_t = o_t * torch.tanh(c_t)
            hidden_seq.append(h_t.unsqueeze(0))
        hidden_seq = torch.cat(hidden_seq, dim=0).transpose(0, 1).contiguous()
        return hidden_seq, (h_t, c_t)


class CellStack(nn.Module):
    """nn.LSTMCell and nn.GRUCell in a loop with layer norm."""

    def __init__(self, n=4, h=6, steps=3):
        super().__init__()
        self.lstm, self.gru, self.norm, self.steps = (
            nn.LSTMCell(n, h),
            nn.GRUCell(h, h),
            nn.LayerNorm(h),
            steps,
        )
        self.out = nn.Linear(h, n)

    def forward(self, input, future=2):
        outputs = []
        h_t = torch.zeros(input.size(0), 6)
        c_t = torch.zeros(input.size(0), 6)
        h2 = torch.zeros_like(h_t)
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm(input_t.squeeze(1), (h_t, c_t))
            h2 = self.gru(self.norm(h_t), h2)
            output = self.out(h2)
            outputs += [output]
        for _ in range(future):  # if we should predict the future
            h_t, c_t = self.lstm(output, (h_t, c_t))
            h2 = self.gru(self.norm(h_t), h2)
            output = self.out(h2)
            outputs += [output]
        return torch.stack(outputs, 1)


class BahdanauAttention(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.Wa, self.Ua, self.Va = nn.Linear(h, h), nn.Linear(h, h), nn.Linear(h, 1)

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        scores = scores.squeeze(2).unsqueeze(1)
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights, keys), weights


class Seq2Seq(nn.Module):
    """Encoder, attention decoder, teacher forcing by a coin."""

    MAX_LENGTH, SOS_token = 5, 1

    def __init__(self, vocab=20, h=8, ratio=1.0):
        super().__init__()
        self.emb = nn.Embedding(vocab, h)
        self.encoder, self.decoder = nn.GRU(h, h, batch_first=True), nn.GRU(2 * h, h, batch_first=True)
        self.attention, self.out = BahdanauAttention(h), nn.Linear(h, vocab)
        self.dropout, self.ratio = nn.Dropout(0.1), ratio

    def forward_step(self, input, hidden, encoder_outputs):
        embedded = self.dropout(self.emb(input))
        context, attn_weights = self.attention(hidden.permute(1, 0, 2), encoder_outputs)
        output, hidden = self.decoder(torch.cat((embedded, context), dim=2), hidden)
        return self.out(output), hidden, attn_weights

    def forward(self, source, target_tensor=None):
        encoder_outputs, decoder_hidden = self.encoder(self.dropout(self.emb(source)))
        decoder_input = torch.empty(source.size(0), 1, dtype=torch.long).fill_(self.SOS_token)
        decoder_outputs, attentions = [], []
        use_teacher_forcing = random.random() < self.ratio
        for i in range(self.MAX_LENGTH):
            decoder_output, decoder_hidden, w = self.forward_step(
                decoder_input, decoder_hidden, encoder_outputs
            )
            decoder_outputs.append(decoder_output)
            attentions.append(w)
            if target_tensor is not None and use_teacher_forcing:
                decoder_input = target_tensor[:, i].unsqueeze(1)
            else:
                _, topi = decoder_output.topk(1)
                decoder_input = topi.squeeze(-1).detach()
        decoder_outputs = torch.cat(decoder_outputs, dim=1)
        return F.log_softmax(decoder_outputs, dim=-1), decoder_hidden, torch.cat(attentions, dim=1)


class LuongDecoder(nn.Module):
    def __init__(self, h=8, method="general"):
        super().__init__()
        self.method, self.h = method, h
        if method == "general":
            self.attn = nn.Linear(h, h)
        elif method == "concat":
            self.attn, self.v = nn.Linear(h * 2, h), nn.Parameter(torch.randn(h))
        self.gru, self.concat = nn.GRU(h, h), nn.Linear(2 * h, h)

    def score(self, hidden, encoder_outputs):
        if self.method == "dot":
            return torch.sum(hidden * encoder_outputs, dim=2)
        if self.method == "general":
            return torch.sum(hidden * self.attn(encoder_outputs), dim=2)
        energy = self.attn(
            torch.cat((hidden.expand(encoder_outputs.size(0), -1, -1), encoder_outputs), 2)
        ).tanh()
        return torch.sum(self.v * energy, dim=2)

    def forward(self, step, last_hidden, encoder_outputs):
        rnn_output, hidden = self.gru(step, last_hidden)
        attn_weights = F.softmax(self.score(rnn_output, encoder_outputs).t(), dim=1).unsqueeze(1)
        context = attn_weights.bmm(encoder_outputs.transpose(0, 1))
        concat_output = torch.tanh(self.concat(torch.cat((rnn_output.squeeze(0), context.squeeze(1)), 1)))
        return concat_output, hidden, attn_weights


def log_sum_exp(x, dim=-1):
    m, _ = x.max(dim, keepdim=True)
    return (m + (x - m).exp().sum(dim, keepdim=True).log()).squeeze(dim)


class CRF(nn.Module):
    """Linear chain: the loss with a mask, and Viterbi decoding."""

    def __init__(self, num_tags=4, feats=5):
        super().__init__()
        self.num_tags = num_tags
        self.emit = nn.Linear(feats, num_tags)
        self.start_transitions, self.end_transitions = (
            nn.Parameter(torch.randn(num_tags) * 0.1) for _ in range(2)
        )
        self.transitions = nn.Parameter(torch.randn(num_tags, num_tags) * 0.1)

    def _compute_score(self, emissions, tags, mask):
        seq_length, batch_size = tags.shape
        mask = mask.float()
        score = self.start_transitions[tags[0]]
        score += emissions[0, torch.arange(batch_size), tags[0]]
        for i in range(1, seq_length):
            score += self.transitions[tags[i - 1], tags[i]] * mask[i]
            score += emissions[i, torch.arange(batch_size), tags[i]] * mask[i]
        seq_ends = mask.long().sum(dim=0) - 1
        last_tags = tags[seq_ends, torch.arange(batch_size)]
        score += self.end_transitions[last_tags]
        return score

    def _compute_normalizer(self, emissions, mask):
        score = self.start_transitions + emissions[0]
        for i in range(1, emissions.size(0)):
            next_score = score.unsqueeze(2) + self.transitions + emissions[i].unsqueeze(1)
            next_score = torch.logsumexp(next_score, dim=1)
            score = torch.where(mask[i].unsqueeze(1), next_score, score)
        return torch.logsumexp(score + self.end_transitions, dim=1)

    def forward(self, x, tags, mask):
        emissions = self.emit(x)
        llh = self._compute_score(emissions, tags, mask) - self._compute_normalizer(emissions, mask)
        return -llh.sum() / mask.float().sum()

    def decode(self, x, tags, mask):
        emissions = self.emit(x)
        seq_length, batch_size = mask.shape
        score, history = self.start_transitions + emissions[0], []
        for i in range(1, seq_length):
            next_score = score.unsqueeze(2) + self.transitions + emissions[i].unsqueeze(1)
            next_score, indices = next_score.max(dim=1)
            score = torch.where(mask[i].unsqueeze(1), next_score, score)
            history.append(indices)
        score += self.end_transitions
        seq_ends = mask.long().sum(dim=0) - 1
        best_tags_list = []
        for idx in range(batch_size):
            _, best_last_tag = score[idx].max(dim=0)
            best_tags = [best_last_tag.item()]
            for hist in reversed(history[: seq_ends[idx]]):
                best_last_tag = hist[idx][best_tags[-1]]
                best_tags.append(best_last_tag.item())
            best_tags.reverse()
            best_tags_list.append(best_tags)
        return best_tags_list


class Chomp1d(nn.Module):
    def __init__(self, chomp_size):
        super().__init__()
        self.chomp_size = chomp_size

    def forward(self, x):
        return x[:, :, : -self.chomp_size].contiguous()


class TemporalBlock(nn.Module):
    def __init__(self, n_inputs, n_outputs, kernel_size, dilation, dropout=0.2):
        super().__init__()
        padding = (kernel_size - 1) * dilation
        self.conv1 = weight_norm(
            nn.Conv1d(n_inputs, n_outputs, kernel_size, padding=padding, dilation=dilation)
        )
        self.net = nn.Sequential(self.conv1, Chomp1d(padding), nn.ReLU(), nn.Dropout(dropout))
        self.downsample = nn.Conv1d(n_inputs, n_outputs, 1) if n_inputs != n_outputs else None
        self.relu = nn.ReLU()

    def forward(self, x):
        out = self.net(x)
        res = x if self.downsample is None else self.downsample(x)
        return self.relu(out + res)


class TCN(nn.Module):
    def __init__(self, input_size=3, output_size=2, num_channels=(6, 6)):
        super().__init__()
        layers = []
        for i, c in enumerate(num_channels):
            layers += [TemporalBlock(input_size if i == 0 else num_channels[i - 1], c, 3, 2**i)]
        self.tcn = nn.Sequential(*layers)
        self.linear = nn.Linear(num_channels[-1], output_size)

    def forward(self, inputs):
        y1 = self.tcn(inputs)
        o = self.linear(y1[:, :, -1])
        return F.log_softmax(o, dim=1)


class WaveNet(nn.Module):
    def __init__(self, layers=3, blocks=1, ch=6, skip=8, classes=16):
        super().__init__()
        self.start_conv = nn.Conv1d(classes, ch, 1)
        self.dilations = [2**i for _ in range(blocks) for i in range(layers)]

        def mk(k, d, o):
            return nn.ModuleList(nn.Conv1d(ch, o, k, dilation=di if d else 1) for di in self.dilations)  # noqa: E731

        self.filter_convs, self.gate_convs = mk(2, True, ch), mk(2, True, ch)
        self.residual_convs, self.skip_convs = mk(1, False, ch), mk(1, False, skip)
        self.end_conv_1, self.end_conv_2 = nn.Conv1d(skip, skip, 1), nn.Conv1d(skip, classes, 1)

    def forward(self, input):
        x = self.start_conv(F.one_hot(input, 16).transpose(1, 2).float())
        skip = 0
        for i, d in enumerate(self.dilations):
            residual = F.pad(x, (d, 0))
            x_ = torch.tanh(self.filter_convs[i](residual)) * torch.sigmoid(self.gate_convs[i](residual))
            s = self.skip_convs[i](x_)
            try:
                skip = skip[:, :, -s.size(2) :]
            except TypeError:
                skip = 0
            skip = s + skip
            x = self.residual_convs[i](x_) + x
        x = F.relu(skip)
        return self.end_conv_2(F.relu(self.end_conv_1(x)))


class TextCNN(nn.Module):
    def __init__(self, vocab=30, d=8, kernel_sizes=(2, 3), kernel_num=5):
        super().__init__()
        self.embed, self.dropout = nn.Embedding(vocab, d), nn.Dropout(0.5)
        self.convs = nn.ModuleList([nn.Conv2d(1, kernel_num, (K, d)) for K in kernel_sizes])
        self.fc1 = nn.Linear(len(kernel_sizes) * kernel_num, 3)

    def forward(self, x):
        x = self.embed(x).unsqueeze(1)
        x = [F.relu(conv(x)).squeeze(3) for conv in self.convs]
        x = [F.max_pool1d(i, i.size(2)).squeeze(2) for i in x]
        x = torch.cat(x, 1)
        return self.fc1(self.dropout(x))


class ConvLSTMCell(nn.Module):
    def __init__(self, input_dim=2, hidden_dim=4):
        super().__init__()
        self.hidden_dim = hidden_dim
        self.conv = nn.Conv2d(input_dim + hidden_dim, 4 * hidden_dim, 3, padding=1)

    def forward(self, input_tensor, cur_state):
        h_cur, c_cur = cur_state
        combined_conv = self.conv(torch.cat([input_tensor, h_cur], dim=1))
        cc_i, cc_f, cc_o, cc_g = torch.split(combined_conv, self.hidden_dim, dim=1)
        c_next = torch.sigmoid(cc_f) * c_cur + torch.sigmoid(cc_i) * torch.tanh(cc_g)
        return torch.sigmoid(cc_o) * torch.tanh(c_next), c_next

    def init_hidden(self, batch_size, image_size):
        height, width = image_size
        return tuple(torch.zeros(batch_size, self.hidden_dim, height, width) for _ in range(2))


class ConvLSTM(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.cell_list = nn.ModuleList(ConvLSTMCell(2 if i == 0 else 4) for i in range(layers))

    def forward(self, input_tensor):
        b, seq_len, _, h, w = input_tensor.size()
        hidden_state = [cell.init_hidden(b, (h, w)) for cell in self.cell_list]
        layer_output_list, last_state_list = [], []
        cur_layer_input = input_tensor
        for layer_idx in range(len(self.cell_list)):
            h, c = hidden_state[layer_idx]
            output_inner = []
            for t in range(seq_len):
                h, c = self.cell_list[layer_idx](cur_layer_input[:, t, :, :, :], [h, c])
                output_inner.append(h)
            layer_output = torch.stack(output_inner, dim=1)
            cur_layer_input = layer_output
            layer_output_list.append(layer_output)
            last_state_list.append([h, c])
        return layer_output_list[-1:], last_state_list[-1:]


class IndRNN(nn.Module):
    def __init__(self, n=4, h=6):
        super().__init__()
        self.i, self.u = nn.Linear(n, h), nn.Parameter(torch.rand(h))

    def forward(self, x):
        h, ys = x.new_zeros(x.shape[0], self.u.shape[0]), []
        for xt in x.unbind(1):
            h = torch.relu(self.i(xt) + self.u * h)
            ys.append(h)
        return torch.stack(ys, 1)


class HighwayBiLSTM(nn.Module):
    def __init__(self, d=6):
        super().__init__()
        self.H, self.T = nn.Linear(d, d), nn.Linear(d, d)
        self.rnn = nn.LSTM(d, d // 2, num_layers=2, dropout=0.2, bidirectional=True)

    def forward(self, x, mask):
        t = torch.sigmoid(self.T(x))
        x = t * F.relu(self.H(x)) + (1 - t) * x
        self.rnn.flatten_parameters()
        y, (hn, cn) = self.rnn(x.transpose(0, 1))
        hn = hn.view(2, 2, x.size(0), -1)[-1]
        y = y.transpose(0, 1)
        y = y.masked_fill(~mask.unsqueeze(-1), -1e7)
        return torch.cat([y.max(1).values, hn[0], hn[1]], -1)


class AttentionPool(nn.Module):
    def __init__(self, d=6):
        super().__init__()
        self.w = nn.Parameter(torch.Tensor(d))
        nn.init.uniform_(self.w.data, -0.01, 0.01)

    def forward(self, x, lengths):
        scores = torch.exp(F.tanh(x.matmul(self.w)))
        idxes = torch.arange(0, x.size(1), dtype=torch.int64).unsqueeze(0)
        mask = (idxes < lengths.unsqueeze(1)).float()
        a = scores * mask
        a = a.div(a.sum(dim=1, keepdim=True))
        weighted = torch.mul(x, a.unsqueeze(-1).expand_as(x))
        return weighted.sum(1).squeeze(), a


class PointerNet(nn.Module):
    def __init__(self, h=6):
        super().__init__()
        self.cell, self.w1, self.w2, self.v = (
            nn.LSTMCell(2, h),
            nn.Linear(h, h),
            nn.Linear(h, h),
            nn.Linear(h, 1),
        )
        self.enc = nn.LSTM(2, h, batch_first=True)
        self.first = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        b, n, _ = x.shape
        enc, (h, c) = self.enc(x)
        h, c = h[0], c[0]
        inp, mask = self.first.expand(b, -1), torch.zeros(b, n, dtype=torch.bool)
        idxs, logps = [], []
        for _ in range(n):
            h, c = self.cell(inp, (h, c))
            u = self.v(torch.tanh(self.w1(enc) + self.w2(h).unsqueeze(1))).squeeze(-1)
            logp = F.log_softmax(u.masked_fill(mask, float("-inf")), -1)
            idx = logp.argmax(-1)
            mask = mask.scatter(1, idx.unsqueeze(1), True)
            inp = x[torch.arange(b), idx]
            idxs.append(idx)
            logps.append(logp.gather(1, idx[:, None]).squeeze(1))
        return torch.stack(idxs, 1), torch.stack(logps, 1).sum(1)


class NTMMemory(nn.Module):
    """Addressing of a neural Turing machine: circular convolution by roll."""

    def __init__(self, N=6, M=4, c=5):
        super().__init__()
        self.fc = nn.Linear(c, M + 1 + 1 + 3 + 1)
        self.N, self.M = N, M
        self.register_buffer("mem_bias", torch.empty(N, M).uniform_(-0.5, 0.5))

    def forward(self, controller, w_prev):
        b = controller.size(0)
        memory = self.mem_bias.repeat(b, 1, 1)
        k, beta, g, s, gamma = torch.split(self.fc(controller), [self.M, 1, 1, 3, 1], dim=1)
        beta, g, s, gamma = F.softplus(beta), torch.sigmoid(g), F.softmax(s, dim=1), 1 + F.softplus(gamma)
        wc = F.softmax(beta * F.cosine_similarity(memory + 1e-16, k.view(b, 1, -1) + 1e-16, dim=-1), dim=1)
        wg = g * wc + (1 - g) * w_prev
        ws = sum(s[:, i : i + 1] * torch.roll(wg, i - 1, dims=1) for i in range(3))
        w = ws**gamma
        w = torch.div(w, torch.sum(w, dim=1).view(-1, 1) + 1e-16)
        return torch.matmul(w.unsqueeze(1), memory).squeeze(1), w


class QRNN(nn.Module):
    def __init__(self, n=4, h=5):
        super().__init__()
        self.conv, self.h = nn.Conv1d(n, 3 * h, 2), h

    def forward(self, x):
        z, f, o = self.conv(F.pad(x.transpose(1, 2), (1, 0))).transpose(1, 2).chunk(3, -1)
        z, f, o = z.tanh(), f.sigmoid(), o.sigmoid()
        c, out = None, []
        for t, (zt, ft) in enumerate(zip(z.unbind(1), f.unbind(1))):
            c = (1 - ft) * zt if t == 0 else ft * c + (1 - ft) * zt
            out.append(c)
        return o * torch.stack(out, dim=1)


class CharRNN(nn.Module):
    """Samples characters one at a time."""

    def __init__(self, n=12, h=8):
        super().__init__()
        self.encoder, self.gru, self.decoder, self.h = nn.Embedding(n, h), nn.GRU(h, h, 1), nn.Linear(h, n), h

    def forward(self, input, hidden):
        batch_size = input.size(0)
        encoded = self.encoder(input)
        output, hidden = self.gru(encoded.view(1, batch_size, -1), hidden)
        return self.decoder(output.view(batch_size, -1)), hidden

    @torch.no_grad()
    def sample(self, prime, temperature=0.8):
        hidden = torch.zeros(1, 1, self.h)
        out, inp = [], prime
        for _ in range(4):
            output, hidden = self(inp, hidden)
            output_dist = output.data.view(-1).div(temperature).exp()
            top_i = torch.multinomial(output_dist, 1)[0]
            out.append(int(top_i))
            inp = top_i.view(1)
        return out


def lengths():
    return torch.tensor([5, 3, 4])


def crf():
    mask = torch.tensor([[1, 1, 1], [1, 1, 1], [1, 1, 0], [1, 0, 0]]).bool()
    return torch.randn(4, 3, 5), torch.randint(0, 4, (4, 3)), mask


CASES = [
    of("lstm_classifier", LSTMClassifier, lambda: torch.randn(3, 5, 6)),
    of("text_lstm_packed", TextLSTM, lambda: (torch.randint(1, 30, (3, 5)), lengths())),
    of("gru_stateful", GRUStateful, lambda: torch.randn(4, 2, 5)),
    of("lstm_by_hand", LSTMCellByHand, lambda: torch.randn(2, 5, 4)),
    of("cell_stack", CellStack, lambda: torch.randn(2, 4, 4)),
    of("seq2seq_forced", Seq2Seq, lambda: (torch.randint(0, 20, (2, 6)), torch.randint(0, 20, (2, 5)))),
    of("seq2seq_free", lambda: Seq2Seq(ratio=0.0), lambda: torch.randint(0, 20, (2, 6))),
    of(
        "luong_general",
        LuongDecoder,
        lambda: (torch.randn(1, 2, 8), torch.randn(1, 2, 8), torch.randn(5, 2, 8)),
    ),
    of(
        "luong_concat",
        lambda: LuongDecoder(method="concat"),
        lambda: (torch.randn(1, 2, 8), torch.randn(1, 2, 8), torch.randn(5, 2, 8)),
    ),
    of("crf_loss", CRF, crf),
    of("crf_decode", CRF, crf, method="decode"),
    of("tcn", TCN, lambda: torch.randn(2, 3, 9)),
    of("wavenet", WaveNet, lambda: torch.randint(0, 16, (2, 10))),
    of("text_cnn", TextCNN, lambda: torch.randint(0, 30, (2, 7))),
    of("conv_lstm", ConvLSTM, lambda: torch.randn(2, 3, 2, 6, 6)),
    of("ind_rnn", IndRNN, lambda: torch.randn(2, 5, 4)),
    of("highway_bilstm", HighwayBiLSTM, lambda: (torch.randn(2, 5, 6), torch.ones(2, 5).bool())),
    of("attention_pool", AttentionPool, lambda: (torch.randn(3, 5, 6), lengths())),
    of("pointer_net", PointerNet, lambda: torch.rand(2, 4, 2)),
    of("ntm_memory", NTMMemory, lambda: (torch.randn(2, 5), torch.rand(2, 6).softmax(-1))),
    of("qrnn", QRNN, lambda: torch.randn(2, 6, 4)),
    of("char_rnn", CharRNN, lambda: (torch.randint(0, 12, (2,)), torch.zeros(1, 2, 8))),
    of("char_rnn_sample", CharRNN, lambda: torch.tensor([3]), method="sample"),
]

"""Reinforcement learning."""
# ruff: noqa: B007, E741, UP031  (as people write)

from collections import namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Bernoulli, Beta, Categorical, Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform

from . import of

SavedAction = namedtuple("SavedAction", ["log_prob", "value"])
LOG_SIG_MAX, LOG_SIG_MIN, epsilon = 2, -20, 1e-6


def layer_init(layer, std=2**0.5, bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class DQN(nn.Module):
    def __init__(self, h=20, w=20, outputs=3):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 4, kernel_size=5, stride=2), nn.BatchNorm2d(4)
        self.conv2, self.bn2 = nn.Conv2d(4, 8, kernel_size=5, stride=2), nn.BatchNorm2d(8)

        def conv2d_size_out(size, kernel_size=5, stride=2):
            return (size - (kernel_size - 1) - 1) // stride + 1

        s = conv2d_size_out(conv2d_size_out(w))
        self.head = nn.Linear(s * s * 8, outputs)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return self.head(x.view(x.size(0), -1))


class DuelingDQN(nn.Module):
    def __init__(self):
        super().__init__()
        self.feature, self.advantage, self.value = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 1)

    def forward(self, x):
        x = self.feature(x).relu()
        advantage, value = self.advantage(x), self.value(x)
        return value + advantage - advantage.mean()

    def act(self, state, eps=0.0):
        with torch.no_grad():
            q_value = self.forward(state)
        return q_value.max(1)[1].data[0].item()


class NoisyLinear(nn.Module):
    def __init__(self, in_features=4, out_features=3, std_init=0.4):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight_mu = nn.Parameter(torch.empty(out_features, in_features).uniform_(-0.5, 0.5))
        self.weight_sigma = nn.Parameter(torch.full((out_features, in_features), std_init / in_features**0.5))
        self.register_buffer("weight_epsilon", torch.empty(out_features, in_features))
        self.bias_mu = nn.Parameter(torch.zeros(out_features))
        self.register_buffer("bias_epsilon", torch.empty(out_features))
        self.reset_noise()

    def _scale_noise(self, size):
        x = torch.randn(size)
        return x.sign().mul_(x.abs().sqrt_())

    def reset_noise(self):
        epsilon_in, epsilon_out = self._scale_noise(self.in_features), self._scale_noise(self.out_features)
        self.weight_epsilon.copy_(epsilon_out.outer(epsilon_in))
        self.bias_epsilon.copy_(epsilon_out)

    def forward(self, input):
        if self.training:
            self.reset_noise()
            w = self.weight_mu + self.weight_sigma * self.weight_epsilon
            return F.linear(input, w, self.bias_mu + 0.1 * self.bias_epsilon)
        return F.linear(input, self.weight_mu, self.bias_mu)


class C51(nn.Module):
    """The projection of the target distribution."""

    def __init__(self, n_actions=2, atoms=5, v_min=-2.0, v_max=2.0):
        super().__init__()
        self.net, self.n, self.atoms, self.v_min, self.v_max = (
            nn.Linear(4, n_actions * atoms),
            n_actions,
            atoms,
            v_min,
            v_max,
        )
        self.register_buffer("support", torch.linspace(v_min, v_max, atoms))
        self.delta = (v_max - v_min) / (atoms - 1)

    def forward(self, s, a, r, s2, done):
        b = s.size(0)
        with torch.no_grad():
            p2 = self.net(s2).view(b, self.n, self.atoms).softmax(-1)
            best = (p2 * self.support).sum(-1).argmax(1)
            p2 = p2[range(b), best] if isinstance(b, int) else p2
            Tz = (r.unsqueeze(1) + (1 - done).unsqueeze(1) * 0.99 * self.support).clamp(
                self.v_min, self.v_max
            )
            bj = (Tz - self.v_min) / self.delta
            l, u = bj.floor().long(), bj.ceil().long()  # noqa: E741
            l[(u > 0) * (l == u)] -= 1
            u[(l < (self.atoms - 1)) * (l == u)] += 1
            offset = torch.linspace(0, ((b - 1) * self.atoms), b).long().unsqueeze(1).expand(b, self.atoms)
            m = torch.zeros(b, self.atoms)
            m.view(-1).index_add_(0, (l + offset).view(-1), (p2 * (u.float() - bj)).view(-1))
            m.view(-1).index_add_(0, (u + offset).view(-1), (p2 * (bj - l.float())).view(-1))
        logp = self.net(s).view(b, self.n, self.atoms).log_softmax(-1)[torch.arange(b), a]
        return -(m * logp).sum(1).mean()


class Policy(nn.Module):
    """Of PyTorch's examples: saves what it did."""

    def __init__(self):
        super().__init__()
        self.affine1, self.action_head, self.value_head = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)
        self.saved_actions, self.rewards = [], []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)

    def select_action(self, state):
        probs, state_value = self(state)
        m = Categorical(probs)
        action = m.sample()
        self.saved_actions.append(SavedAction(m.log_prob(action), state_value))
        return action.item()


class PPOAgent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(
            layer_init(nn.Linear(4, 8)), nn.Tanh(), layer_init(nn.Linear(8, 1), std=1.0)
        )
        self.actor = nn.Sequential(
            layer_init(nn.Linear(4, 8)), nn.Tanh(), layer_init(nn.Linear(8, 2), std=0.01)
        )

    def get_action_and_value(self, x, action=None):
        logits = self.actor(x)
        probs = Categorical(logits=logits)
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)

    def forward(self, x, action=None):
        return self.get_action_and_value(x, action)


class PPOLoss(PPOAgent):
    def forward(self, obs, actions, logprobs, advantages, returns, values, clip_coef=0.2, norm_adv=True):
        _, newlogprob, entropy, newvalue = self.get_action_and_value(obs, actions.long())
        logratio = newlogprob - logprobs
        ratio = logratio.exp()
        with torch.no_grad():
            approx_kl = ((ratio - 1) - logratio).mean()
        if norm_adv:
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        pg_loss = torch.max(
            -advantages * ratio, -advantages * torch.clamp(ratio, 1 - clip_coef, 1 + clip_coef)
        ).mean()
        newvalue = newvalue.view(-1)
        v_clipped = values + torch.clamp(newvalue - values, -clip_coef, clip_coef)
        v_loss = 0.5 * torch.max((newvalue - returns) ** 2, (v_clipped - returns) ** 2).mean()
        return pg_loss - 0.01 * entropy.mean() + v_loss * 0.5, approx_kl


class ContinuousPPO(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor_mean = nn.Linear(4, 2)
        self.actor_logstd = nn.Parameter(torch.zeros(1, 2))

    def forward(self, x, action=None):
        action_mean = self.actor_mean(x)
        action_logstd = self.actor_logstd.expand_as(action_mean)
        probs = Normal(action_mean, torch.exp(action_logstd))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action).sum(1), probs.entropy().sum(1)


class SACActor(nn.Module):
    def __init__(self, action_scale=2.0):
        super().__init__()
        self.linear1, self.mean_linear, self.log_std_linear = (
            nn.Linear(4, 8),
            nn.Linear(8, 2),
            nn.Linear(8, 2),
        )
        self.action_scale, self.action_bias = torch.tensor(action_scale), torch.tensor(0.0)

    def forward(self, state):
        x = F.relu(self.linear1(state))
        mean = self.mean_linear(x)
        log_std = torch.clamp(self.log_std_linear(x), min=LOG_SIG_MIN, max=LOG_SIG_MAX)
        normal = Normal(mean, log_std.exp())
        x_t = normal.rsample()
        y_t = torch.tanh(x_t)
        action = y_t * self.action_scale + self.action_bias
        log_prob = normal.log_prob(x_t)
        log_prob -= torch.log(self.action_scale * (1 - y_t.pow(2)) + epsilon)
        return action, log_prob.sum(1, keepdim=True), torch.tanh(mean) * self.action_scale


class SquashedPolicy(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(4, 4)

    def forward(self, obs):
        mu, log_std = self.trunk(obs).chunk(2, dim=-1)
        log_std = torch.tanh(log_std)
        base = Normal(mu, log_std.exp())
        dist = TransformedDistribution(base, [TanhTransform(cache_size=1)])
        action = dist.rsample()
        return action, dist.log_prob(action).sum(-1, keepdim=True)


class TD3Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1 = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
        self.q2 = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
        self.target = nn.Linear(4, 2)

    def forward(self, state, action, reward, not_done):
        with torch.no_grad():
            noise = (torch.randn_like(action) * 0.2).clamp(-0.5, 0.5)
            next_action = (torch.tanh(self.target(state)) + noise).clamp(-1, 1)
            sa2 = torch.cat([state, next_action], 1)
            target_Q = reward + not_done * 0.99 * torch.min(self.q1(sa2), self.q2(sa2))
        sa = torch.cat([state, action], 1)
        return F.mse_loss(self.q1(sa), target_Q) + F.mse_loss(self.q2(sa), target_Q)


class SoftUpdate(nn.Module):
    def __init__(self, tau=0.1):
        super().__init__()
        self.net, self.target_net, self.tau = nn.Linear(4, 2), nn.Linear(4, 2), tau
        self.target_net.load_state_dict(self.net.state_dict())
        self.target_net.requires_grad_(False)

    def forward(self, x):
        with torch.no_grad():
            for target_param, param in zip(self.target_net.parameters(), self.net.parameters()):
                target_param.data.copy_(self.tau * param.data + (1.0 - self.tau) * target_param.data)
        return self.net(x) - self.target_net(x).detach()


class GAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Linear(4, 1)

    def forward(self, obs, rewards, dones, gamma=0.99, lam=0.95):
        values = self.critic(obs).squeeze(-1)
        with torch.no_grad():
            advantages = torch.zeros_like(rewards)
            lastgaelam = 0
            for t in reversed(range(rewards.size(0))):
                nextnonterminal = 1.0 - dones[t]
                nextvalues = values[t + 1] if t + 1 < rewards.size(0) else values[t]
                delta = rewards[t] + gamma * nextvalues * nextnonterminal - values[t]
                advantages[t] = lastgaelam = delta + gamma * lam * nextnonterminal * lastgaelam
            returns = advantages + values
        return F.mse_loss(values, returns), advantages


class Reinforce(nn.Module):
    def __init__(self):
        super().__init__()
        self.policy = nn.Linear(4, 2)

    def forward(self, obs, rewards):
        R, policy_loss, returns = 0, [], []
        dist = Categorical(logits=self.policy(obs))
        log_probs = dist.log_prob(dist.sample())
        for r in rewards.tolist()[::-1]:
            R = r + 0.99 * R
            returns.insert(0, R)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + 1e-9)
        for log_prob, R in zip(log_probs, returns):
            policy_loss.append(-log_prob * R)
        return torch.stack(policy_loss).sum()


class RunningMeanStd(nn.Module):
    """Observations normalized by moments that move."""

    def __init__(self, shape=(4,)):
        super().__init__()
        self.register_buffer("mean", torch.zeros(shape))
        self.register_buffer("var", torch.ones(shape))
        self.register_buffer("count", torch.tensor(1e-4))
        self.lin = nn.Linear(4, 2)

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                batch_mean, batch_var, n = x.mean(0), x.var(0, unbiased=False), x.shape[0]
                delta, tot = batch_mean - self.mean, self.count + n
                m2 = self.var * self.count + batch_var * n + delta**2 * self.count * n / tot
                self.mean.add_(delta * n / tot)
                self.var.copy_(m2 / tot)
                self.count.add_(n)
        return self.lin(((x - self.mean) / torch.sqrt(self.var + 1e-8)).clamp(-5, 5))


class MaskedActions(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 3)

    def forward(self, x, legal):
        logits = self.lin(x)
        logits = torch.where(legal, logits, torch.tensor(-1e8))
        d = Categorical(logits=logits)
        return d.entropy(), d.probs, d.mode


class BetaPolicy(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, a):
        alpha, beta = (F.softplus(self.lin(x)) + 1).chunk(2, -1)
        d = Beta(alpha, beta)
        return d.log_prob(a).sum(-1), d.mean, d.entropy()


class OptionCritic(nn.Module):
    def __init__(self, options=3):
        super().__init__()
        self.q, self.term, self.n = nn.Linear(4, options), nn.Linear(4, options), options
        self.w = nn.Parameter(torch.randn(options, 4, 2))

    def forward(self, x, option):
        beta = torch.sigmoid(self.term(x)).gather(1, option[:, None]).squeeze(1)
        stop = Bernoulli(probs=beta, validate_args=False).sample()
        nxt = torch.where(stop.bool(), self.q(x).argmax(1), option)
        logits = torch.bmm(x.unsqueeze(1), self.w[nxt]).squeeze(1)
        return F.log_softmax(logits, -1), beta, nxt


class DecisionTransformer(nn.Module):
    def __init__(self, d=8):
        super().__init__()
        self.er, self.es, self.ea, self.et = (
            nn.Linear(1, d),
            nn.Linear(4, d),
            nn.Linear(2, d),
            nn.Embedding(10, d),
        )
        self.block = nn.TransformerEncoderLayer(d, 2, 16, 0.0, batch_first=True)
        self.ln, self.out, self.d = nn.LayerNorm(d), nn.Linear(d, 2), d

    def forward(self, rtg, s, a, t):
        B, T = s.shape[0], s.shape[1]
        te = self.et(t)
        stacked = torch.stack((self.er(rtg) + te, self.es(s) + te, self.ea(a) + te), dim=1)
        x = self.ln(stacked.permute(0, 2, 1, 3).reshape(B, 3 * T, self.d))
        mask = torch.triu(torch.full((3 * T, 3 * T), float("-inf")), 1)
        x = self.block(x, src_mask=mask)
        return torch.tanh(self.out(x.reshape(B, T, 3, self.d).permute(0, 2, 1, 3)[:, 1]))


def o(b=4):
    return torch.randn(b, 4)


def ppo():
    return o(), torch.tensor([0, 1, 1, 0]), -torch.rand(4), torch.randn(4), torch.randn(4), torch.randn(4)


CASES = [
    of("dqn", DQN, lambda: torch.rand(2, 3, 20, 20)),
    of("dueling_dqn", DuelingDQN, o),
    of("dueling_dqn_act", DuelingDQN, o, method="act"),
    of("noisy_linear", NoisyLinear, o),
    of(
        "c51",
        C51,
        lambda: (o(), torch.tensor([0, 1, 1, 0]), torch.randn(4), o(), torch.tensor([0.0, 1, 0, 0])),
    ),
    of("policy", Policy, o),
    of("policy_select", Policy, lambda: torch.randn(4), method="select_action"),
    of("ppo_agent", PPOAgent, o),
    of("ppo_loss", PPOLoss, ppo),
    of("ppo_continuous", ContinuousPPO, lambda: (o(), torch.randn(4, 2))),
    of("sac_actor", SACActor, o),
    of("squashed_policy", SquashedPolicy, o),
    of("td3_critic", TD3Critic, lambda: (o(), torch.rand(4, 2), torch.randn(4, 1), torch.ones(4, 1))),
    of("soft_update", SoftUpdate, o),
    of("gae", GAE, lambda: (o(), torch.randn(4), torch.tensor([0.0, 0, 1, 0]))),
    of("reinforce", Reinforce, lambda: (o(), torch.randn(4))),
    of("running_mean_std", RunningMeanStd, o),
    of("masked_actions", MaskedActions, lambda: (o(), torch.rand(4, 3) > 0.3)),
    of("beta_policy", BetaPolicy, lambda: (o(), torch.rand(4, 2) * 0.8 + 0.1)),
    of("option_critic", OptionCritic, lambda: (o(), torch.tensor([0, 2, 1, 1]))),
    of(
        "decision_transformer",
        DecisionTransformer,
        lambda: (
            torch.randn(2, 3, 1),
            torch.randn(2, 3, 4),
            torch.randn(2, 3, 2),
            torch.arange(3).repeat(2, 1),
        ),
    ),
]

"""The yearly flow of the Nile as a level that walks at random, seen with noise: a Gaussian process."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

YEARS = np.arange(1871, 1971)
# Flow at Aswan in 10^8 cubic metres.
# fmt: off
FLOW = np.array([
    1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958,
    1140, 1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020,
    1050, 969, 831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796,
    1040, 759, 781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874,
    848, 890, 744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718,
    714, 740,
], float)
# fmt: on
DIFFUSE = 1e7  # variance of the level in the first year: nothing is known of it


def covariance(log_variances, years):
    """Of the flow in two years each."""
    walk, noise = np.exp(log_variances)
    since = years - years[0]
    together = np.minimum(since[:, None], since[None, :])
    return DIFFUSE + walk * together + noise * np.eye(len(years))


def negative_log_likelihood(log_variances, years, flow):
    factor = cho_factor(covariance(log_variances, years), lower=True)
    solved = cho_solve(factor, flow)
    log_det = 2 * np.log(np.diag(factor[0])).sum()
    return 0.5 * (flow @ solved + log_det + len(flow) * np.log(2 * np.pi))


def with_gradient(log_variances, years, flow):
    """The same with its gradient, by the formula in textbooks."""
    walk, noise = np.exp(log_variances)
    factor = cho_factor(covariance(log_variances, years), lower=True)
    inverse = cho_solve(factor, np.eye(len(flow)))
    solved = inverse @ flow
    log_det = 2 * np.log(np.diag(factor[0])).sum()
    value = 0.5 * (flow @ solved + log_det + len(flow) * np.log(2 * np.pi))
    since = years - years[0]
    together = np.minimum(since[:, None], since[None, :])
    inner = inverse - np.outer(solved, solved)
    return value, 0.5 * np.array([walk * (inner * together).sum(), noise * np.trace(inner)])


def level(log_variances, years, flow, at):
    """Mean and standard deviation of the level in the years ``at``, given the flow."""
    walk, _ = np.exp(log_variances)
    factor = cho_factor(covariance(log_variances, years), lower=True)
    across = DIFFUSE + walk * np.minimum(at[:, None] - years[0], years - years[0])
    mean = across @ cho_solve(factor, flow)
    own = DIFFUSE + walk * (at - years[0])
    variance = own - (across * cho_solve(factor, across.T).T).sum(axis=1)
    return mean, np.sqrt(np.maximum(variance, 0.0))


def kalman_log_likelihood(log_variances, flow):
    """The same likelihood by the filter, a step for each year."""
    walk, noise = np.exp(log_variances)
    mean, variance = 0.0, DIFFUSE
    total = 0.0
    for seen in flow:
        spread = variance + noise
        error = seen - mean
        total += np.log(2 * np.pi * spread) + error**2 / spread
        gain = variance / spread
        mean = mean + gain * error
        variance = (1 - gain) * variance + walk
    return 0.5 * total


def make_inputs(quick):
    n = 20 if quick else len(FLOW)
    return np.log([1000.0, 10000.0]), YEARS[:n], FLOW[:n]

"""The functions of torch that are called as routines by graphs (``calls``): they give new tensors that
depend on their arguments only, and change nothing."""

from __future__ import annotations

# fmt: off
_BOTH = (
    # order and selection
    "topk", "sort", "argsort", "msort", "kthvalue", "median", "nanmedian", "mode", "quantile",
    "nanquantile", "cummax", "cummin", "aminmax", "max", "min", "argmax", "argmin", "isin", "take",
    "take_along_dim", "gather",
    # scans and sums
    "cumsum", "cumprod", "logcumsumexp", "nansum", "nanmean", "count_nonzero", "prod", "norm", "trace",
    "renorm", "var", "std", "logsumexp", "softmax", "log_softmax", "diff", "cov", "corrcoef", "histc",
    # writing a copy
    "scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_fill", "index_put",
    "index_reduce", "masked_scatter", "masked_fill", "index_select",
    # arrangement
    "roll", "flip", "fliplr", "flipud", "rot90", "tile", "kron", "diag", "diag_embed", "diagflat",
    "repeat_interleave", "tril", "triu",
    # products
    "addbmm", "baddbmm", "addmv", "addr", "addmm", "bmm", "outer", "ger", "inner", "vdot", "cross",
    "matrix_power", "matrix_exp",
    # linear algebra
    "inverse", "pinverse", "cholesky", "cholesky_solve", "cholesky_inverse", "logdet", "slogdet", "det",
    "lu_solve", "qr",
    # element by element
    "acos", "addcdiv", "addcmul", "bitwise_left_shift", "bitwise_right_shift", "copysign", "deg2rad",
    "rad2deg", "dist", "erfinv", "float_power", "fmax", "fmin", "fmod", "frac", "frexp",
    "gcd", "lcm", "heaviside", "hypot", "igamma", "igammac", "isclose", "isneginf", "isposinf",
    "ldexp", "lerp", "logaddexp", "logaddexp2", "logit", "nan_to_num", "nextafter",
    "polygamma", "mvlgamma", "round", "remainder", "sgn", "sinc", "xlogy", "pow", "hardshrink", "clamp",
    "where", "div", "floor_divide",
)
_ONLY_FUNCTIONS = (
    "adaptive_avg_pool1d", "adaptive_max_pool1d", "avg_pool1d", "max_pool1d", "max_pool2d",
    "max_pool3d", "max_pool1d_with_indices", "bilinear", "block_diag", "bucketize", "searchsorted",
    "cartesian_prod", "cdist", "channel_shuffle", "column_stack", "hstack", "vstack", "dstack",
    "row_stack", "constant_pad_nd", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "cosine_similarity", "pairwise_distance", "pdist",
    "cosine_embedding_loss", "einsum", "embedding", "grid_sampler", "affine_grid_generator",
    "group_norm", "layer_norm", "native_layer_norm", "native_group_norm", "hinge_embedding_loss",
    "kl_div", "margin_ranking_loss", "poisson_nll_loss", "triplet_margin_loss",
    "binary_cross_entropy_with_logits", "logspace", "linspace", "pixel_shuffle",
    "pixel_unshuffle", "rsub", "std_mean", "var_mean", "tensordot", "threshold", "hann_window",
    "hamming_window", "bartlett_window", "blackman_window", "kaiser_window", "tril_indices",
    "triu_indices", "trapezoid", "trapz", "cumulative_trapezoid", "vander", "_weight_norm",
    "_grouped_mm", "celu", "selu", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell",
    "lstm", "gru", "rnn_tanh", "rnn_relu",
    "norm_except_dim", "chain_matmul", "combinations", "_C._linalg.linalg_norm",
    "_C._linalg.linalg_vector_norm", "_C._linalg.linalg_inv", "_C._linalg.linalg_solve",
    "_C._linalg.linalg_cholesky", "_C._linalg.linalg_qr", "_C._linalg.linalg_svdvals",
    "_C._linalg.linalg_eigh", "_C._linalg.linalg_eigvalsh", "_C._linalg.linalg_det",
    "_C._linalg.linalg_slogdet", "_C._linalg.linalg_matrix_norm", "_C._linalg.linalg_matrix_power",
    "_C._linalg.linalg_pinv", "_C._linalg.linalg_lstsq", "_C._linalg.linalg_multi_dot",
    "_C._linalg.linalg_cross", "_C._linalg.linalg_solve_triangular", "_C._linalg.linalg_matrix_exp",
    "_C._linalg.linalg_cond", "_C._linalg.linalg_cholesky_ex",
    "stft",
)
_OF_NN = (
    "adaptive_max_pool2d", "adaptive_max_pool3d", "adaptive_avg_pool3d", "adaptive_avg_pool2d",
    "avg_pool2d", "avg_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices", "max_unpool2d",
    "max_unpool3d", "binary_cross_entropy", "col2im", "im2col", "cross_entropy_loss", "elu", "glu",
    "hardsigmoid", "hardswish", "hardtanh", "huber_loss", "l1_loss", "leaky_relu", "log_sigmoid",
    "mish", "mse_loss", "multi_margin_loss", "multilabel_margin_loss", "nll_loss", "nll_loss2d",
    "nll_loss_nd", "one_hot", "pad", "pad_sequence", "reflection_pad1d", "reflection_pad2d",
    "reflection_pad3d", "replication_pad1d", "replication_pad2d", "replication_pad3d", "smooth_l1_loss",
    "soft_margin_loss",
    "softplus", "softshrink", "upsample_bicubic2d", "upsample_bilinear2d", "_upsample_bicubic2d_aa",
    "_upsample_bilinear2d_aa", "upsample_linear1d", "upsample_nearest1d", "upsample_nearest2d",
    "upsample_nearest3d", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d",
    "_upsample_nearest_exact3d", "upsample_trilinear3d",
)
_ONLY_METHODS = ("new_tensor",)
_WRITTEN = (
    "scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_fill", "index_put",
    "index_reduce", "masked_scatter", "cumsum", "cumprod", "addcdiv", "addcmul", "addmm", "addbmm",
    "baddbmm", "addmv", "addr", "fmod", "frac", "lerp", "logit", "nan_to_num", "remainder", "round",
    "tril", "triu", "xlogy", "copysign", "hypot", "renorm", "clamp_min", "clamp_max", "pow", "erfinv",
    "floor_divide", "sinc", "heaviside", "nextafter", "deg2rad", "rad2deg", "float_power", "ldexp",
    "gcd", "lcm", "sgn",
)
# fmt: on

# functions in Python whose own rules refuse some arguments
_IN_PYTHON = ("F.adaptive_avg_pool1d", "F.adaptive_avg_pool2d", "F.avg_pool1d", "F.avg_pool2d")

FUNCTIONS: tuple[str, ...] = (*_BOTH, *_ONLY_FUNCTIONS, *_IN_PYTHON, *(f"_C._nn.{name}" for name in _OF_NN))
METHODS: tuple[str, ...] = (*_BOTH, *_ONLY_METHODS)
IN_PLACE: tuple[str, ...] = _WRITTEN
# other such functions, which have rules of their own but under autocast
COMPOSED: tuple[str, ...] = ("_transformer_encoder_layer_fwd", "_native_multi_head_attention")
# those that draw random numbers where they are told to drop some of their values
RECURRENT = frozenset(("lstm", "gru", "rnn_tanh", "rnn_relu"))
# those that do not check that the sizes of their arguments go together
UNCHECKED = RECURRENT | {"_weight_norm"}
# Fourier transforms, and `eig`: without memory they give their results in another order than with it
_SIGNALS = "fft ifft rfft irfft hfft ihfft"
_KINDS = (name + suffix for name in _SIGNALS.split() for suffix in ("", "2", "n"))
TRANSFORMS = frozenset((*(f"fft_{name}" for name in _KINDS), "stft", "istft", "linalg_eig"))

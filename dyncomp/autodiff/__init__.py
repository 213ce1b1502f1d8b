"""Derivatives of NumPy functions; see README.md."""

from ..frontends.derivatives import stop_gradient
from .api import grad, jvp, value_and_grad, vjp
from .batches import vmap
from .custom import checkpoint, custom_vjp
from .jacobians import hessian, jacobian
from .trees import register_tree

__all__ = [
    "checkpoint",
    "custom_vjp",
    "grad",
    "hessian",
    "jacobian",
    "jvp",
    "register_tree",
    "stop_gradient",
    "value_and_grad",
    "vjp",
    "vmap",
]

"""Passes over graphs of the user: what they compute and cost, and quantization to 8-bit integers."""

from .counts import Counts, NodeCost, count
from .observe import MinMax, Percentile, Range
from .quantize import calibrate, quantize_static, quantize_weights
from .training import convert, fake_quantize, prepare

__all__ = [
    "Counts",
    "MinMax",
    "NodeCost",
    "Percentile",
    "Range",
    "calibrate",
    "convert",
    "count",
    "fake_quantize",
    "prepare",
    "quantize_static",
    "quantize_weights",
]

"""The kernel of a template: one jit function with its block sizes as constants."""

from __future__ import annotations

import hashlib

from ...symbolic.integers import Dim
from ..render.triton.unit import TritonKernel


def jit_kernel(
    title: str,
    body: str,
    pointers: dict[str, str],
    blocks: dict[str, int],
    programs: Dim,
    warps: int,
    stages: int,
    symbols: tuple[str, ...] = (),
) -> TritonKernel:
    """``body`` as a function named by ``title`` and what its text hashes to. ``pointers``: arguments and
    their types; ``programs``: how many run; ``symbols``: sizes that it takes, behind the pointers."""
    name = f"{title}_{hashlib.sha256(body.encode()).hexdigest()[:8]}"
    arguments = ", ".join([*pointers, *symbols, *(f"{block}: tl.constexpr" for block in blocks)])
    return TritonKernel(
        name,
        f"@triton.jit\ndef {name}({arguments}):\n{body}",
        pointers | dict.fromkeys(symbols, "i32") | dict.fromkeys(blocks, "constexpr"),
        tuple(range(len(pointers))),
        symbols,
        programs,
        blocks,
        warps,
        num_stages=stages,
        fuses_multiply_add=True,
    )

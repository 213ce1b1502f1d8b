"""The pieces that captured functions are cut into, each made once per configuration.

A piece is a continuation or the body of a loop, of a function of the program or of another piece (``raw`` is
its code object, ``canonical`` its instructions).
"""

from __future__ import annotations

import types
from collections.abc import Collection
from functools import partial
from typing import Any

from ...hook import _hook
from ...python_code.continuation import PlaceToResume
from ...python_code.flow import introspects_locals
from ...python_code.instr import CanonicalCode
from ...python_code.loops import Loop, LoopBody, make_loop_body
from ..entries.config import CaptureConfig
from ..environment.replaced_builtins import with_own_builtins


def place_at(
    config: CaptureConfig,
    raw: types.CodeType,
    canonical: CanonicalCode,
    at: int,
    depth: int,
    bound: Collection[str],
    unbound: tuple[int, ...],
) -> PlaceToResume:
    """The continuation at an instruction, with so many values on the stack and these locals."""
    key = ("continuation", id(raw), at, depth, frozenset(bound), unbound)
    made = config.resume_functions.get(key)
    if made is None:
        made = PlaceToResume(raw, canonical, at, depth, bound, unbound)
        config.keep_made_later(key, made, raw)
    assert isinstance(made, PlaceToResume)
    return made


def known_body(
    config: CaptureConfig,
    raw: types.CodeType,
    canonical: CanonicalCode,
    loop: Loop,
    bound: Collection[str],
    start: int,
) -> LoopBody | None:
    """The body function of a loop, if it was made before."""
    found: LoopBody | None = config.resume_functions.get(_body_key(raw, canonical, loop, bound, start))
    return found


def _body_key(
    raw: types.CodeType, canonical: CanonicalCode, loop: Loop, bound: Collection[str], start: int
) -> tuple[Any, ...]:
    return ("body", id(raw), loop.header, frozenset(bound), introspects_locals(canonical, start))


def body_of(
    config: CaptureConfig,
    raw: types.CodeType,
    canonical: CanonicalCode,
    loop: Loop,
    bound: Collection[str],
    start: int,
) -> LoopBody:
    """The body function of a loop in a frame that began at ``start``, with these locals bound before it."""
    key = _body_key(raw, canonical, loop, bound, start)
    body: LoopBody | None = config.resume_functions.get(key)
    if body is None:
        body = make_loop_body(canonical, loop, frozenset(bound), start)
        changing = set(body.returns[0])
        if loop.kind == "for":
            changing.add(body.code.co_varnames[0])
        config.set_varying(body.code, frozenset(changing))
        config.keep_made_later(key, body, raw)
    return body


def resume_function_of(
    config: CaptureConfig, made: Any, namespace: dict[str, Any], like: CanonicalCode
) -> _hook.ResumeFunction:
    """The C callable that captures and runs a piece of ``like``; one per code object and globals."""
    cache = config.resume_functions
    key = ("function", id(made.code), id(namespace))
    found = cache.get(key)
    if found is None:
        function = _hook.ResumeFunction(
            made.code,
            namespace,
            like.name,
            like.qualname,
            config,
            make_code=partial(with_own_builtins, made.plain_code),
        )
        found = cache[key] = (function, made, namespace)
    function = found[0]
    assert isinstance(function, _hook.ResumeFunction)
    return function

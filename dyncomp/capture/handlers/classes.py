"""Class definitions in the frame. The class is made by plain Python, and capture goes on behind it; the other
instructions of class bodies are found in frames that are never captured."""

from __future__ import annotations

import builtins

from ..breaks import Break
from ..values.base import Frame, Tracer
from ..values.number import ConstValue
from .registry import handles


@handles("LOAD_BUILD_CLASS")
def load_build_class(tracer: Tracer, frame: Frame, arg: object) -> None:
    frame.push(ConstValue(builtins.__build_class__))


@handles(
    "LOAD_NAME",
    "STORE_NAME",
    "DELETE_NAME",
    "LOAD_LOCALS",
    "LOAD_CLASSDEREF",
    "LOAD_FROM_DICT_OR_GLOBALS",
    "LOAD_FROM_DICT_OR_DEREF",
    "SETUP_ANNOTATIONS",
    "IMPORT_STAR",
)
def in_class_body(tracer: Tracer, frame: Frame, arg: object) -> None:
    raise Break("class-definition", "an instruction of a class body")

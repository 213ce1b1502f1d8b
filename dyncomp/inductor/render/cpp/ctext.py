"""C++ spellings of dtypes, constants, dimensions and conversions."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ....comments import in_comment
from ....dtypes import DType
from ....errors import LoweringFault
from ....symbolic.integers import Call, Dim, SymInt

# In registers: bool is bool; half types are floats whose value is representable.
_REGISTER = {
    "bool": "bool",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "i64",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "u64",
    "float16": "float",
    "bfloat16": "float",
    "float32": "float",
    "float64": "double",
    "complex64": "c64",
    "complex128": "c128",
}
_MEMORY = {**_REGISTER, "bool": "unsigned char", "float16": "unsigned short", "bfloat16": "unsigned short"}
_SHORT = {
    "bool": "b8",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float16": "f32",
    "bfloat16": "f32",
    "float32": "f32",
    "float64": "f64",
    "complex64": "c64",
    "complex128": "c128",
}
HALVES = {"float16": "f16", "bfloat16": "bf16"}


def register_type(dtype: DType) -> str:
    """The C++ type of a value in a variable."""
    return _REGISTER[dtype.name]


def array_type(dtype: DType) -> str:
    """The C++ type of an element of a local array: loops over arrays of bool do not become vectors."""
    return "unsigned char" if dtype.is_bool else register_type(dtype)


def memory_type(dtype: DType) -> str:
    """The C++ type of an element in memory."""
    return _MEMORY[dtype.name]


def short_name(dtype: DType) -> str:
    """The suffix of helper functions that work on values of ``dtype``."""
    return _SHORT[dtype.name]


def origins(places: tuple[str, ...]) -> list[str]:
    """Comments that say which lines of the program a function computes."""
    return [f"//   {in_comment(place)}" for place in places]


# -- constants --------------------------------------------------------------------------------
def constant(value: object, dtype: DType) -> str:
    """``value`` as a C++ expression of ``dtype``'s register type."""
    converted = np.asarray(value).astype(_constant_numpy(dtype))
    if dtype.is_bool:
        return "true" if converted else "false"
    if dtype.is_integer:
        return _integer(int(converted), dtype)
    if dtype.is_float:
        if dtype.name == "bfloat16":
            converted = np.asarray(value).astype(dtype.numpy).astype(np.float32)
        return _floating(float(converted), _suffix(dtype))
    suffix = "f" if dtype.name == "complex64" else ""
    z = complex(converted)
    return f"{register_type(dtype)}{{{_floating(z.real, suffix)}, {_floating(z.imag, suffix)}}}"


def literal(value: object, dtype: DType) -> str:
    """:func:`constant`, to stand anywhere in an expression."""
    text = constant(value, dtype)
    if dtype.is_integer and dtype.itemsize < 4:
        return f"({register_type(dtype)})({text})"
    return f"({text})" if text.startswith("-") else text


def _suffix(dtype: DType) -> str:
    """Of literals of a real floating type."""
    return "f" if short_name(dtype) == "f32" else ""


def _constant_numpy(dtype: DType) -> np.dtype:
    return np.dtype(np.float64) if dtype.name == "bfloat16" else dtype.numpy


def _integer(value: int, dtype: DType) -> str:
    if dtype.name == "int64":
        return "(-9223372036854775807LL - 1)" if value == -(2**63) else f"{value}LL"
    if dtype.name == "uint64":
        return f"{value}ULL"
    if dtype.name == "int32" and value == -(2**31):
        return "(-2147483647 - 1)"
    return f"{value}u" if dtype.name == "uint32" else str(value)


def _floating(value: float, suffix: str) -> str:
    if math.isnan(value):
        return f'__builtin_nan{suffix}("")'
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}__builtin_inf{suffix}()"
    if value == int(value) and abs(value) < 2**53:
        sign = "-" if math.copysign(1.0, value) < 0 else ""
        return f"{sign}{abs(int(value))}.0{suffix}"
    return f"{value.hex()}{suffix}"


# -- dimensions -------------------------------------------------------------------------------
def dimension(value: Dim, symbols: Mapping[str, str]) -> str:
    """A dimension as an ``i64`` expression; ``symbols`` gives the C++ expression of each symbol."""
    if isinstance(value, int):
        return str(value)
    parts = [str(value.constant)] if value.constant else []
    for monomial, factor in value.terms:
        factors = [_atom(atom, symbols) for atom in monomial]
        if factor != 1:
            factors.insert(0, str(factor))
        parts.append(" * ".join(factors))
    return f"({' + '.join(parts)})"


def _atom(atom: str | Call, symbols: Mapping[str, str]) -> str:
    if isinstance(atom, str):
        if atom not in symbols:
            raise LoweringFault(f"the size symbol {atom} is not among the module's symbols")
        return symbols[atom]
    args = ", ".join(dimension(arg, symbols) for arg in atom.args)
    name = {"floordiv": "dc_floordiv_i64", "mod": "dc_remainder_i64"}.get(atom.op, f"dc_size_{atom.op}")
    return f"{name}({args})"


def index_text(terms: tuple[tuple[str, Dim], ...], offset: Dim, symbols: Mapping[str, str]) -> str:
    """An affine position; axes are the variables ``i_NAME``."""
    parts = []
    for axis, factor in terms:
        if isinstance(factor, int) and factor == 0:
            continue
        if isinstance(factor, int) and factor == 1:
            parts.append(f"i_{axis}")
        else:
            parts.append(f"{dimension(factor, symbols)} * i_{axis}")
    if isinstance(offset, SymInt) or offset:
        parts.append(dimension(offset, symbols))
    return " + ".join(parts) if parts else "0"


# -- conversions ------------------------------------------------------------------------------
def convert(text: str, source: DType, target: DType, rounded: bool = True) -> str:
    """``text`` of ``source`` as a value of ``target`` (NumPy's ``astype``). Where it is not to be ``rounded``
    to a half type yet, as the float that rounds to it."""
    if source is target:
        return text
    if target.is_bool:
        return f"({text}.re != 0) | ({text}.im != 0)" if source.is_complex else f"{text} != 0"
    if target.is_complex:
        return _to_complex(text, source, target)
    if source.is_complex:
        return convert(f"{text}.re", source.real, target)
    if source.is_bool and target.is_float:
        # gcc does not vectorise the conversion of a comparison's result
        return f"({text}) ? {_floating(1.0, _suffix(target))} : {_floating(0.0, _suffix(target))}"
    if target.name in HALVES:
        exact = _unrounded_half(text, source)
        return f"dc_round_{HALVES[target.name]}({exact})" if rounded else exact
    if target.is_integer and source.is_float:
        return _float_to_integer(text, target)
    if (source.name, target.name) == ("float64", "float32"):
        return f"dc_rounded_f32({text})"
    return f"({register_type(target)})({text})"


def _to_complex(text: str, source: DType, target: DType) -> str:
    if source.is_complex:
        re, im = (convert(f"{text}.{part}", source.real, target.real) for part in ("re", "im"))
        return f"{register_type(target)}{{{re}, {im}}}"
    return f"{register_type(target)}{{{convert(text, source, target.real)}, 0}}"


def _unrounded_half(text: str, source: DType) -> str:
    exact_in_float = source.is_bool or source.itemsize <= 2 or source.name == "float32"
    return f"(float)({text})" if exact_in_float else f"dc_round_to_odd((double)({text}))"


def _float_to_integer(text: str, target: DType) -> str:
    if target.itemsize <= 2:
        return f"({register_type(target)})(int)({text})"
    if target.name == "uint32":
        return f"(unsigned int)dc_whole_i64((i64)({text}))"
    if target.name == "uint64":
        return f"dc_to_u64((double)({text}))"
    return f"dc_whole_{short_name(target)}(({register_type(target)})({text}))"


def loaded(text: str, dtype: DType) -> str:
    """An element in memory as a value in a register."""
    if dtype.is_bool:
        return f"{text} != 0"
    if dtype.name in HALVES:
        return f"dc_load_{HALVES[dtype.name]}({text})"
    if dtype.is_complex:
        # gcc keeps structs that it copies whole in memory
        return f"{register_type(dtype)}{{{text}.re, {text}.im}}"
    return text


def stored(text: str, dtype: DType) -> str:
    """A value in a register as an element in memory."""
    if dtype.is_bool:
        return f"(unsigned char){text}"
    if dtype.name in HALVES:
        return f"dc_store_{HALVES[dtype.name]}({text})"
    return text

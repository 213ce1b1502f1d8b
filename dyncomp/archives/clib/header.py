"""The header of a library for C: C99 and C++."""

from __future__ import annotations

import re

from ...comments import in_comment
from ...dtypes import DType
from ...inductor.launch import InputResult, OutputResult
from .interface import (
    ArrayArgument,
    Interface,
    NumberArgument,
    OutputArgument,
    c_type,
    called_shape,
)

# name, words, in the order of the numbers in csrc/standalone/launcher.h
CODES = (
    ("OK", "no error"),
    ("BAD_SHAPE", "an input has another shape than the function was exported for"),
    ("BAD_POINTER", "a pointer is NULL or not aligned"),
    ("BAD_VALUE", "a number is out of range"),
    ("OVERLAP", "memory that is written to overlaps other inputs or outputs"),
    ("NO_ROOM", "an output has no room for the result"),
    ("NO_MEMORY", "there is not enough memory"),
    ("BAD_INDEX", "an index is out of bounds"),
    ("FAILED", "the computation failed"),
    ("NO_WEIGHTS", "the weights are not loaded"),
    ("BAD_PROCESSOR", "this processor lacks instructions that the library was compiled for"),
)


def header_text(made: Interface, level: str, loads: bool, build: list[str]) -> str:
    """``loads``: the weights are in a file of their own; ``build``: the commands that make the library."""
    name, upper = made.name, made.name.upper()
    return "\n".join(
        [
            *_title(made, level, loads, build),
            f"#ifndef {upper}_H",
            f"#define {upper}_H",
            "#include <stdint.h>",
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "#if defined(__GNUC__)",
            f'#define {upper}_API __attribute__((visibility("default")))',
            "#else",
            f"#define {upper}_API",
            "#endif",
            "",
            "/* What functions return. */",
            "enum {",
            *(f"  {upper}_{code} = {k}, /* {words} */" for k, (code, words) in enumerate(CODES[:-1])),
            f"  {upper}_{CODES[-1][0]} = {len(CODES) - 1} /* {CODES[-1][1]} */",
            "};",
            "",
            *_complex(made),
            *_inputs(made),
            *_outputs(made),
            *_functions(name, upper, loads),
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "#endif",
            "",
        ]
    )


_MOST_SAID = 200


def filled(text: str, **values: str) -> str:
    """``text`` with the ``@name@`` of each value."""
    return re.sub(r"@(\w+)@", lambda match: values[match[1]], text)


def _said(text: str) -> str:
    """Text of the program in a comment, in which another may not begin."""
    shown = text if len(text) <= _MOST_SAID else f"{text[:_MOST_SAID]}..."
    return in_comment(shown).replace("/*", "/ *")


_TITLE = """\
/* @called@, exported by dyncomp for @level@.
 *
 * Link a program with the shared object, which needs the C library alone:
 *
 *   cc program.c -I. -L. -l@name@ -Wl,-rpath,'$ORIGIN' -o program
 *
 * Arrays are the caller's. They are row-major and C-contiguous, where nothing else is said, and aligned to
 * their elements. The library writes to outputs, and to inputs whose pointers are not const; these may not
 * overlap each other or other inputs. An output that is (a part of) an input gets a copy. A function either
 * returns an error, and has written nothing but shapes and scratch memory, or has done all.
 *
 * Functions may be called by several threads at the same time, where each writes to memory of its own.
 * Scratch memory is allocated inside; the last block is kept for the next call (@name@_release frees it).
 *
 * NumPy's warnings of floating-point errors are not given; infinities and NaN are as there."""


def _title(made: Interface, level: str, loads: bool, build: list[str]) -> list[str]:
    lines = [filled(_TITLE, name=made.name, level=level, called=_said(made.whole.name))]
    if loads:
        lines += [
            " *",
            f" * Weights are in a file of their own: call {made.name}_load before anything else.",
        ]
    lines += [f" * Note: {_said(note)}." for note in made.notes]
    conditions = [each.words for each in made.conditions if each.words]
    if conditions:
        lines += [" *", " * Sizes must satisfy, beside the shapes below:"]
        lines += [f" *   {_said(words)}" for words in conditions]
    lines += [" *", " * How the library was made:", " *"]
    return [*lines, *(f" *   {line}" for line in build), " */"]


def _complex(made: Interface) -> list[str]:
    found = [a.dtype for a in (*made.arguments, *made.outputs) if a.dtype.is_complex]
    lines = []
    for dtype in dict.fromkeys(found):
        part = c_type(dtype.real, made.name)
        lines += [f"typedef struct {c_type(dtype, made.name)} {{", f"  {part} real, imag;"]
        lines += [f"}} {c_type(dtype, made.name)};", ""]
    return lines


_EXTRA = {
    "bool": " (0 or 1)",
    "float16": " (bits of IEEE binary16)",
    "bfloat16": " (upper half of a float)",
}


def _in_words(dtype: DType) -> str:
    return dtype.name + _EXTRA.get(dtype.name, "")


def _inputs(made: Interface) -> list[str]:
    name = made.name
    lines = [f"typedef struct {name}_inputs {{"]
    for argument in made.arguments:
        if isinstance(argument, NumberArgument):
            bound = ", at most 2^40 in size" if argument.sizes else ""
            words = f"{argument.text}: {_in_words(argument.dtype)}{bound}"
            lines.append(f"  {c_type(argument.dtype, name)} {argument.name}; /* {_said(words)} */")
            continue
        lines += _array(made, argument)
    if not made.arguments:
        lines.append("  int unused; /* there are no inputs */")
    return [*lines, f"}} {name}_inputs;", ""]


def _array(made: Interface, argument: ArrayArgument) -> list[str]:
    kind = c_type(argument.dtype, made.name)
    shape = ", ".join(made.called_size(argument, axis) for axis in range(argument.rank))
    words = f"{argument.text}: {_in_words(argument.dtype)} [{shape}]"
    if argument.place is None:
        words = f"{argument.text}: [{shape}]"
    if argument.written:
        words += ", is written to"
    if any(stride is not None for stride in argument.strides):
        words += f", not C-contiguous: strides ({', '.join(map(str, argument.strides))}) elements"
    lines = [f"  /* {_said(words)} */"]
    if argument.place is not None:
        lines.append(f"  {'' if argument.written else 'const '}{kind}* {argument.name};")
    if argument.rank:
        lines.append(f"  int64_t {argument.name}_shape[{argument.rank}];")
    return lines


def _outputs(made: Interface) -> list[str]:
    name = made.name
    lines = [f"typedef struct {name}_outputs {{"]
    for output in made.outputs:
        words = f"{output.name}: {_in_words(output.dtype)} {_shape(made, output)}"
        if isinstance(output.result, InputResult):
            argument = made.at(output.result.index)
            assert argument is not None
            words += f", a copy of {argument.name}; or NULL"
        lines.append(f"  /* {_said(words)} */")
        lines.append(f"  {c_type(output.dtype, name)}* {output.name};")
        lines.append(f"  int64_t {output.name}_size; /* elements that it has room for */")
        if output.rank:
            lines.append(f"  int64_t {output.name}_shape[{output.rank}]; /* is set */")
    if not made.outputs:
        lines.append("  int unused; /* there are no outputs */")
    return [*lines, f"}} {name}_outputs;", ""]


def _shape(made: Interface, output: OutputArgument) -> str:
    result = output.result
    if isinstance(result, InputResult):
        argument = made.at(result.index)
        assert isinstance(argument, ArrayArgument)
        return f"[{', '.join(made.called_size(argument, axis) for axis in range(argument.rank))}]"
    shape = made.plan.outputs[result.index].shape if isinstance(result, OutputResult) else result.shape
    return called_shape(made, shape, dict(enumerate(made.module.sizes)))


_FUNCTIONS = """\
/* Checks the shapes (and numbers) of inputs, whose pointers it does not look at, and sets the shapes of
 * outputs. */
@upper@_API int @name@_shapes(const @name@_inputs* in, @name@_outputs* out);

/* Computes. */
@upper@_API int @name@_run(const @name@_inputs* in, @name@_outputs* out);

/* What a code means, and what was wrong with the last call of this thread that failed. */
@upper@_API const char* @name@_message(int code);
@upper@_API const char* @name@_details(void);

/* Threads that a call uses, the caller's included: 1 at first. Of calls at the same time one has them. */
@upper@_API void @name@_set_num_threads(int count);

/* Frees scratch memory that waits for the next call. */
@upper@_API void @name@_release(void);
"""
_LOAD = """\
/* Maps the file of weights, once. */
@upper@_API int @name@_load(const char* path);
"""


def _functions(name: str, upper: str, loads: bool) -> list[str]:
    text = f"{_FUNCTIONS}\n{_LOAD}" if loads else _FUNCTIONS
    return [filled(text, name=name, upper=upper)]


def macro_name(name: str) -> str:
    """The macro that names the file of weights to embed."""
    return re.sub(r"\W", "_", name.upper()) + "_WEIGHTS_FILE"

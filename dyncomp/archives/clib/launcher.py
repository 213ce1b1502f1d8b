"""The launcher of a library for C: what ``CompiledGraph`` does with a launch plan, written out in C."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...comments import in_comment
from ...inductor.launch import (
    ArenaSlot,
    InputResult,
    KernelStep,
    OutputResult,
    Size,
    SizeRef,
    ViewOutput,
)
from ...symbolic.integers import Dim, same
from .expressions import size_text
from .header import CODES, filled, macro_name
from .interface import (
    ArrayArgument,
    Interface,
    NumberArgument,
    OutputArgument,
    alignment_of,
    stride_text,
)
from .sources import launcher_prelude, services_declarations
from .weights import HEAD, MAGIC, Weights

_FEATURES = {
    "x86-64-v2": ("ssse3", "sse4.1", "sse4.2", "popcnt"),
    "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "fma"),
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
}
_ERRORS: tuple[tuple[type[BaseException], str], ...] = (
    (IndexError, "kBadIndex"),
    (MemoryError, "kNoMemory"),
)


_EMBEDDED = """\
#ifndef @macro@
#define @macro@ "@name@.weights.bin"
#endif
__asm__(".section .rodata\\n.balign 64\\n.globl @name@_weights\\n.hidden @name@_weights\\n@name@_weights:\\n"
        ".incbin \\"" @macro@ "\\"\\n.previous\\n");
extern const char @name@_weights[] __attribute__((visibility("hidden")));

static __attribute__((constructor)) void keep_copies(void) { dyncomp_keep_copies(@name@_weights, @size@); }

static const char* find_weights(void) { return @name@_weights; }
"""
_LOADED = """\
static const unsigned char weights_head[] = {@head@};
static const char* weights;

static const char* find_weights(void) {
  const char* const found = __atomic_load_n(&weights, __ATOMIC_ACQUIRE);
  if (!found) fail(kNoWeights, "call @name@_load first");
  return found;
}

static int map_weights(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return fail(kNoWeights, "%s cannot be opened", path);
  struct stat facts;
  const int fits = fstat(file, &facts) == 0 && facts.st_size == @size@;
  void* const map = fits ? mmap(0, @size@, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  close(file);
  if (map == MAP_FAILED) return fail(kNoWeights, "%s has another size, or cannot be mapped", path);
  if (memcmp(map, weights_head, sizeof weights_head) != 0) {
    munmap(map, @size@);
    return fail(kNoWeights, "%s holds other weights", path);
  }
  dyncomp_keep_copies(map, @size@);
  __atomic_store_n(&weights, (const char*)map, __ATOMIC_RELEASE);
  return kOk;
}

int @name@_load(const char* path) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  if (!path) return fail(kBadPointer, "the path is NULL");
  pthread_mutex_lock(&mutex);
  const int code = __atomic_load_n(&weights, __ATOMIC_ACQUIRE) ? kOk : map_weights(path);
  pthread_mutex_unlock(&mutex);
  return code;
}
"""


def features_of(level: str) -> list[str]:
    """What a processor must have, by the names of ``__builtin_cpu_supports``."""
    levels = list(_FEATURES)
    return [each for known in levels[: levels.index(level) + 1] for each in _FEATURES[known]]


class Launcher:
    """Writes the file ``name.c``. ``embeds``: the weights are in the library, not in a file to load."""

    def __init__(self, made: Interface, level: str, weights: Weights | None, embeds: bool) -> None:
        self.made = made
        self.name = made.name
        self.level = level
        self.weights = weights
        self.embeds = embeds
        self.plan = made.plan
        self.arrays = [a for a in made.arguments if isinstance(a, ArrayArgument)]
        self.given = [a for a in self.arrays if a.place is not None]
        self.direct = self._direct()

    def text(self) -> str:
        head = [
            f"/* {in_comment(self.made.whole.name)}: the launcher, written by dyncomp. See {self.name}.h. */",
            f'#include "{self.name}.h"',
            "",
            services_declarations(),
            f"enum {{ {', '.join(map(_code_name, CODES))} }};",
            "static const char* const messages[] = {",
            *(f'    "{words}",' for _, words in CODES),
            "};",
            "",
            launcher_prelude(),
        ]
        if self.weights is not None and not self.embeds:
            head += [
                "#include <fcntl.h>",
                "#include <pthread.h>",
                "#include <sys/mman.h>",
                "#include <sys/stat.h>",
                "#include <unistd.h>",
                "",
            ]
        parts = [
            head,
            self.kernels(),
            self.processor(),
            self.weight_lines(),
            self.look(),
            self.run(),
            self.rest(),
        ]
        return "\n".join("\n".join(part) for part in parts)

    # -- declarations -----------------------------------------------------------------------------
    def kernels(self) -> list[str]:
        symbols = dict.fromkeys(s.symbol for s in self.plan.steps if isinstance(s, KernelStep))
        parameters = "(void** buffers, const i64* s, const struct Runtime* rt, i64* error)"
        return [*(f"i64 {self.symbol(each)}{parameters};" for each in symbols), ""]

    def symbol(self, name: str) -> str:
        return entry_name(self.name, name)

    def processor(self) -> list[str]:
        tests = " && ".join(f'__builtin_cpu_supports("{each}")' for each in features_of(self.level))
        return [
            "static int check_processor(void) {",
            "  static int good = -1;",
            "  if (__atomic_load_n(&good, __ATOMIC_RELAXED) < 0) {",
            "    __builtin_cpu_init();",
            f"    __atomic_store_n(&good, {tests}, __ATOMIC_RELAXED);",
            "  }",
            f'  return good ? kOk : fail(kBadProcessor, "the library was compiled for {self.level}");',
            "}",
            "",
        ]

    def weight_lines(self) -> list[str]:
        if self.weights is None:
            return []
        size = len(self.weights.content)
        head = (MAGIC + size.to_bytes(8, "little") + self.weights.digest).ljust(HEAD, b"\0")
        text = _EMBEDDED if self.embeds else _LOADED
        macro = macro_name(self.name)
        return [filled(text, name=self.name, macro=macro, size=str(size), head=", ".join(map(str, head)))]

    # -- sizes ------------------------------------------------------------------------------------
    def look(self) -> list[str]:
        """The function that checks shapes and works out sizes: ``s`` symbols, ``z`` what is made of them."""
        lines = [
            f"static int look(const {self.name}_inputs* in, i64* s, i64* z) {{",
            "  (void)s, (void)z;",
            '  if (!in) return fail(kBadPointer, "the inputs are NULL");',
        ]
        for array in self.arrays:
            if not array.rank:
                continue
            fixed = ", ".join("-1" if size is None else str(size) for size in array.fixed)
            lines += [
                "  {",
                f"    static const i64 fixed[] = {{{fixed}}};",
                f"    const int code = check_shape({_string(array.name)}, in->{array.name}_shape, fixed, "
                f"{array.rank}, {array.dtype.itemsize});",
                "    if (code) return code;",
                "  }",
            ]
        for number in self.made.arguments:
            if isinstance(number, NumberArgument) and number.sizes:
                value = f"in->{number.name}"
                lines += [
                    f"  if ({value} < -LARGEST_DIMENSION || {value} > LARGEST_DIMENSION)",
                    f'    return fail(kBadValue, "{number.name} is %lld", (i64){value});',
                ]
        for condition in self.made.conditions:
            words = f"the sizes do not satisfy {condition.words or 'what C order implies'}"
            words = _string(words.replace("%", "%%"))
            lines.append(f"  if (!({condition.test})) return fail(kBadShape, {words});")
        for k, name in enumerate(self.made.module.symbols):
            lines.append(f"  s[{k}] = (i64)({self.made.symbols[name]});")
        if self.made.module.sizes:
            lines.append("  wide size;")
        for k, size in enumerate(self.made.module.sizes):
            lines += [
                f"  size = {size_text(size, self.made.symbols)};",
                "  if (size < -LARGEST_SIZE || size > LARGEST_SIZE)"
                ' return fail(kBadShape, "the sizes are too large");',
                f"  z[{k}] = (i64)size;",
            ]
        return [*lines, "  return kOk;", "}", ""]

    # -- results ----------------------------------------------------------------------------------
    def _direct(self) -> dict[int, OutputArgument]:
        """The graph's outputs that are computed where the caller wants them."""
        found: dict[int, OutputArgument] = {}
        for output in self.made.outputs:
            result = output.result
            if isinstance(result, OutputResult) and result.index not in found:
                slot = self.plan.outputs[result.index]
                if self.is_c_order(slot.shape, slot.strides):
                    found[result.index] = output
        for output in self.made.outputs:
            result = output.result
            if isinstance(result, ViewOutput) and result.base == "output" and result.index not in found:
                if self.is_reshaped(result):
                    found[result.index] = output
        return found

    def is_c_order(self, shape: Sequence[Size], strides: Sequence[Size] | None) -> bool:
        if strides is None:
            return True
        step: Dim = 1
        for size, stride in zip(reversed([*map(self.dim, shape)]), reversed([*map(self.dim, strides)])):
            if not same(size, 1) and not same(stride, step):
                return False
            step = step * size
        return True

    def is_reshaped(self, view: ViewOutput) -> bool:
        """Whether a view shows all of its base, in the same order."""
        slot = self.plan.outputs[view.index]
        whole = [*map(self.dim, slot.shape)], [*map(self.dim, view.shape)]
        return (
            (view.offset == 0 and view.dtype is slot.dtype)
            and self.is_c_order(slot.shape, slot.strides)
            and self.is_c_order(view.shape, view.strides)
            and same(_product(whole[0]), _product(whole[1]))
        )

    def dim(self, size: Size) -> Dim:
        return self.made.module.sizes[size.index] if isinstance(size, SizeRef) else int(size)

    def is_direct(self, output: OutputArgument) -> bool:
        return any(each is output for each in self.direct.values())

    def shape(self, output: OutputArgument) -> list[str]:
        result = output.result
        if isinstance(result, InputResult):
            argument = self.made.at(result.index)
            assert isinstance(argument, ArrayArgument)
            return [f"in->{argument.name}_shape[{axis}]" for axis in range(argument.rank)]
        shape = self.plan.outputs[result.index].shape if isinstance(result, OutputResult) else result.shape
        return [_size(size) for size in shape]

    def strides(self, output: OutputArgument) -> list[str]:
        """Of the result where it lies, in elements; nothing for C order."""
        result = output.result
        if isinstance(result, InputResult):
            argument = self.made.at(result.index)
            assert isinstance(argument, ArrayArgument)
            return [f"(i64)({stride_text(argument, axis)})" for axis in range(argument.rank)]
        found = (
            self.plan.outputs[result.index].strides if isinstance(result, OutputResult) else result.strides
        )
        return [] if found is None else [_size(size) for size in found]

    def set_shapes(self) -> list[str]:
        return [
            f"  out->{output.name}_shape[{axis}] = {size};"
            for output in self.made.outputs
            for axis, size in enumerate(self.shape(output))
        ]

    # -- the call ---------------------------------------------------------------------------------
    def run(self) -> list[str]:
        name, plan = self.name, self.plan
        symbols, sizes = max(len(plan.symbols), 1), max(plan.size_count, len(self.made.module.sizes), 1)
        begin = [
            f"  i64 s[{symbols}], z[{sizes}];",
            "  int code = look(in, s, z);",
            "  if (code) return code;",
            '  if (!out) return fail(kBadPointer, "the outputs are NULL");',
        ]
        lines = [
            f"int {name}_shapes(const {name}_inputs* in, {name}_outputs* out) {{",
            *begin,
            *self.set_shapes(),
            "  return kOk;",
            "}",
            "",
            f"int {name}_run(const {name}_inputs* in, {name}_outputs* out) {{",
            *begin,
            "  if ((code = check_processor())) return code;",
        ]
        if self.weights is not None:
            lines += ["  const char* const w = find_weights();", "  if (!w) return kNoWeights;"]
        lines += [*self.set_shapes(), *self.check_memory(), *self.allocate(), *self.buffers(), *self.steps()]
        return [*lines, *self.copies(), "  give_block(block);", "  return kOk;", "}", ""]

    def check_memory(self) -> list[str]:
        """Pointers, room and overlaps."""
        lines, areas = [], []
        for array in self.given:
            alignment = alignment_of(array.dtype)
            sizes = [f"in->{array.name}_shape[{axis}]" for axis in range(array.rank)]
            strides = [f"(i64)({stride_text(array, axis)})" for axis in range(array.rank)]
            lines += [
                f"  const i64 shape_of_{array.name}[] = {{{', '.join(sizes) or 0}}};",
                f"  const i64 strides_of_{array.name}[] = {{{', '.join(strides) or 0}}};",
                f"  const Reach reach_of_{array.name} = reach_of(shape_of_{array.name}, "
                f"strides_of_{array.name}, {array.rank}, {array.dtype.itemsize});",
                f"  if ((code = check_pointer({_string(array.name)}, in->{array.name}, "
                f"reach_of_{array.name}.high - reach_of_{array.name}.low, {alignment}))) return code;",
            ]
            area = f"(const char*)in->{array.name}, reach_of_{array.name}, {int(array.written)}"
            areas.append(f"{{{_string(array.name)}, {area}}}")
        for k, slot in enumerate(self.plan.outputs):
            words = self.direct[k].name if k in self.direct else f"output {k}"
            lines += [
                f"  const i64 shape_{k}[] = {{{', '.join(map(_size, slot.shape)) or 0}}};",
                f"  const i64 count_{k} = count_of({_string(words)}, shape_{k}, {len(slot.shape)}, "
                f"{slot.dtype.itemsize});",
                f"  if (count_{k} < 0) return kBadShape;",
            ]
        for output in self.made.outputs:
            name, item = output.name, output.dtype.itemsize
            optional = f"out->{name} && " if isinstance(output.result, InputResult) else ""
            counted = f"{_string(name)}, shape_of_{name}, {output.rank}, {item}"
            room = f"{_string(name)}, out->{name}, out->{name}_size, count_of_{name}"
            lines += [
                f"  const i64 shape_of_{name}[] = {{{', '.join(self.shape(output)) or 0}}};",
                f"  const i64 count_of_{name} = count_of({counted});",
                f"  if (count_of_{name} < 0) return kBadShape;",
                f"  if ({optional}(code = check_room({room}, {alignment_of(output.dtype)}))) return code;",
            ]
            areas.append(f"{{{_string(name)}, (const char*)out->{name}, {{0, count_of_{name} * {item}}}, 1}}")
        if areas:
            lines.append(f"  const Area areas[] = {{{', '.join(areas)}}};")
            lines.append(f"  if ((code = check_overlap(areas, {len(areas)}))) return code;")
        return lines

    def allocate(self) -> list[str]:
        """One block: the arena, then outputs that are not the caller's."""
        lines = [f"  wide bytes = {_size(self.plan.arena_bytes)};"]
        lines.append('  if (bytes < 0) return fail(kBadShape, "the sizes are too large");')
        for k, slot in enumerate(self.plan.outputs):
            if k in self.direct:
                continue
            lines += [
                f"  const wide at_{k} = bytes = (bytes + LINE - 1) / LINE * LINE;",
                f"  bytes += (wide)count_{k} * {slot.dtype.itemsize};",
            ]
        for arena in self.plan.arena:
            if isinstance(arena.offset, SizeRef):
                offset = _size(arena.offset)
                lines.append(
                    f"  if ({offset} < 0 || {offset} > {_size(self.plan.arena_bytes)})"
                    ' return fail(kBadShape, "the sizes are too large");'
                )
        return [
            *lines,
            "  Block* const block = take_block(bytes);",
            '  if (!block) return fail(kNoMemory, "no scratch memory of %lld bytes", (i64)bytes);',
            "  char* const memory = data_of(block);",
            "  (void)memory;",
        ]

    def buffers(self) -> list[str]:
        entries: list[str] = []
        for place, slot in enumerate(self.plan.inputs):
            argument = self.made.at(place)
            if isinstance(argument, ArrayArgument):
                entries.append(f"(void*)in->{argument.name}")
            elif argument is not None:
                entries.append(f"(void*)&in->{argument.name}")
            elif slot.kind == "object":
                entries.append("0")
            else:
                assert self.weights is not None
                entries.append(f"(void*)(w + {self.weights.inputs[place]})")
        for k in range(len(self.plan.outputs)):
            output = self.direct.get(k)
            entries.append(f"out->{output.name}" if output is not None else f"memory + (i64)at_{k}")
        entries += [_arena(slot) for slot in self.plan.arena]
        if self.weights is not None:
            entries += [f"(void*)(w + {offset})" for offset in self.weights.constants]
        inner = ",\n      ".join(entries) or "0"
        return [f"  void* buffers[] = {{\n      {inner}}};"]

    def steps(self) -> list[str]:
        lines = ["  i64 error[4] = {0, 0, 0, 0};", "  i64 raised = 0;"]
        steps = [step for step in self.plan.steps if isinstance(step, KernelStep)]
        for step in steps:
            for part in step.parts:
                origin = f": {'; '.join(part.origin)}" if part.origin else ""
                lines.append(f"  /* {in_comment(part.name + origin)} */")
            lines.append(
                f"  if (!raised) raised = {self.symbol(step.symbol)}(buffers, s, dyncomp_services(), error);"
            )
        lines += ["  if (raised) {", "    give_block(block);", "    switch (raised) {"]
        for k, (kind, message) in enumerate(self.plan.errors):
            code = next((code for each, code in _ERRORS if issubclass(kind, each)), "kFailed")
            text, used = _c_format(message)
            arguments = "".join(f", error[{n}]" for n in used)
            lines.append(f"      case {k + 1}: return fail({code}, {_string(text)}{arguments});")
        return [*lines, '      default: return fail(kFailed, "code %lld", raised);', "    }", "  }"]

    def copies(self) -> list[str]:
        """Results that are elsewhere."""
        lines: list[str] = []
        for output in self.made.outputs:
            if self.is_direct(output):
                continue
            result = output.result
            item, name = output.dtype.itemsize, output.name
            strides = self.strides(output)
            if strides:
                lines.append(f"  const i64 strides_of_{name}_there[] = {{{', '.join(strides)}}};")
                there = f"strides_of_{name}_there"
            base, reach = self.base_of(output)
            offset = f"{_size(result.offset)} * {item}" if isinstance(result, ViewOutput) else "0"
            if not strides:
                count = f"(size_t)(count_of_{name} * {item})"
                lines.append(f"  if (out->{name}) memcpy(out->{name}, {base}, {count});")
                continue
            facts = f"shape_of_{name}, {there}, {output.rank}, {item}"
            lines += [
                f"  if (out->{name} && count_of_{name}) {{",
                f"    if (!lies_in(reach_of({facts}), {offset}, {reach})) {{",
                "      give_block(block);",
                f'      return fail(kFailed, "%s lies outside of its base", {_string(name)});',
                "    }",
                f"    copy_rows((char*)out->{name}, {base} + {offset}, {facts});",
                "  }",
            ]
        return lines

    def base_of(self, output: OutputArgument) -> tuple[str, str]:
        """Where a result's base lies, and how far it reaches."""
        result = output.result
        if isinstance(result, InputResult) or (isinstance(result, ViewOutput) and result.base == "input"):
            argument = self.made.at(result.index)
            if argument is None:
                assert self.weights is not None
                size = len(self.weights.content)
                at = self.weights.inputs[result.index]
                return f"(w + {at})", f"(Reach){{-{at}, {size - at}}}"
            return f"(const char*)in->{argument.name}", f"reach_of_{argument.name}"
        slot = self.plan.outputs[result.index]
        base = self.direct.get(result.index)
        reach = f"(Reach){{0, count_{result.index} * {slot.dtype.itemsize}}}"
        if base is not None:
            return f"(const char*)out->{base.name}", reach
        return f"(memory + (i64)at_{result.index})", reach

    def rest(self) -> list[str]:
        name = self.name
        return [
            f"const char* {name}_message(int code) {{",
            "  const int known = code >= 0 && code < (int)(sizeof messages / sizeof *messages);",
            '  return known ? messages[code] : "an unknown code";',
            "}",
            "",
            f"const char* {name}_details(void) {{ return details; }}",
            "",
            f"void {name}_set_num_threads(int count) {{ dyncomp_set_num_threads(count); }}",
            "",
            f"void {name}_release(void) {{ give_block(0); }}",
            "",
        ]


def entry_name(name: str, symbol: str) -> str:
    """What a function of the kernels is called in the library ``name``."""
    return f"{name}_kernels_{symbol}"


def _code_name(code: tuple[str, str]) -> str:
    """``BAD_SHAPE`` as the launcher calls it."""
    return "k" + "".join(word.capitalize() for word in code[0].split("_"))


def _size(size: Size) -> str:
    return f"z[{size.index}]" if isinstance(size, SizeRef) else f"{int(size)}LL"


def _arena(slot: ArenaSlot) -> str:
    return f"memory + {_size(slot.offset)}"


def _product(sizes: Sequence[Dim]) -> Dim:
    total: Dim = 1
    for size in sizes:
        total = total * size
    return total


def _string(text: str) -> str:
    """A literal of C."""
    escaped = "".join(
        c
        if c.isprintable() and c.isascii() and c not in '"\\?'
        else "".join(f"\\{b:03o}" for b in c.encode())
        for c in text
    )
    return f'"{escaped}"'


def _c_format(message: str) -> tuple[str, Sequence[int]]:
    """A message of ``str.format`` for ``printf``, and the numbers of the details that it shows."""
    used = [int(n) for n in re.findall(r"\{(\d)\}", message)]
    text = re.sub(r"\{\d\}", "%lld", message.replace("%", "%%")).replace("{{", "{").replace("}}", "}")
    return text, used

"""The C++ function of a compiled loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...comments import in_comment
from ...dataclass import dataclass
from ...hook._hook import OBJECT_LAYOUT
from ...python_code.versions.tables import INTS_HAVE_TAGS
from ..analysis.affine import Form
from ..analysis.blocks import MOST_OF_SMALL, Known, Order
from ..analysis.ranges import Ranges
from ..kinds import arrays, complexes, creation, heaps, lists, owners, slices, whole_lists
from ..kinds.kinds import INT, LARGEST_AXIS, Kind, Value
from . import control, draws
from .block import HARD_BUDGET, MOST_CHANGES, SOFT_BUDGET, walk_all
from .walk import FIRST_TAG, Assumption, HeldTooShort, Leave, Subject, TooLarge, Version, Walker, clean, put

PRELUDE = (
    f"#define TAGGED {int(INTS_HAVE_TAGS)}\n"
    f"enum {{ {', '.join(f'{name} = {value}' for name, value in OBJECT_LAYOUT.items())} }};\n"
    + """\
typedef signed char i8; typedef short i16; typedef int i32; typedef long long i64;
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32;
typedef unsigned long long u64;
union Word { i64 i; double d; };
template <typename T> struct Unaligned { T value; } __attribute__((packed, may_alias));
#define LOAD(T, p) (((const Unaligned<T>*)(p))->value)
#define STORE(T, p, v) (((Unaligned<T>*)(p))->value = (v))
#define unlikely(c) __builtin_expect_with_probability(!!(c), 0, 1.0)
#define is_finite(x) __builtin_isfinite(x)
/* Whether r = x op y, which is not finite, follows from x or y: else NumPy warns of it. */
#define follows(r, x, y) \
  ((r) != (r) ? (x) != (x) || (y) != (y) : __builtin_isinf(x) || __builtin_isinf(y))
/* gcc 12 joins products to sums and differences in turn (vfmaddsub), whatever -ffp-contract says. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define PRODUCT(x, y) __builtin_assoc_barrier((x) * (y))
#else
#define PRODUCT(x, y) ((x) * (y))
#endif
extern "C" {
double sin(double); double cos(double); double tan(double); double asin(double); double acos(double);
double atan(double); double sinh(double); double cosh(double); double tanh(double); double asinh(double);
double exp(double); double expm1(double); double log(double); double log1p(double); double log2(double);
double log10(double); double erf(double); double erfc(double); double cbrt(double);
double atan2(double, double); double hypot(double, double);
double fmod(double, double);
double libm_pow(double, double) __asm__("pow"); /* not a builtin: that of 2.0 would be x * x */
}
typedef char* __attribute__((may_alias)) Reference;
struct __attribute__((may_alias)) List {
  i64 references; void* type; i64 size; Reference* items; i64 allocated;
};
extern "C" {
extern char PyLong_Type, PyFloat_Type, PyBool_Type, PyList_Type, PyComplex_Type, PyTuple_Type;
char* PyLong_FromLongLong(i64); char* PyFloat_FromDouble(double); char* PyBool_FromLong(long);
char* PyComplex_FromDoubles(double, double);
char* PyTuple_New(i64); char* PyImport_ImportModule(const char*);
char* PyObject_GetAttrString(char*, const char*); void* PyType_GetSlot(char*, int);
char* PyObject_CallMethod(char*, const char*, const char*, ...);
char* PyObject_Vectorcall(char*, char**, u64, char*);
char* PyList_New(i64); char* PySequence_Repeat(char*, i64);
int PyList_SetSlice(char*, i64, i64, char*); int PyList_Append(char*, char*);
void PyErr_Clear(); void Py_DecRef(char*); void Py_IncRef(char*);
}
#define LIST(p) ((List*)(p))
#define TYPE(p) (((char**)(p))[1])
static inline bool item_float(char* item, double* value) {
  if (TYPE(item) != &PyFloat_Type) return false;
  *value = LOAD(double, item + FLOAT_VALUE);
  return true;
}
/* The digits are of 30 bits; what their number and the sign are written as depends on the version. */
static inline bool item_int(char* item, i64* value) {
  if (TYPE(item) != &PyLong_Type) return false;
  i64 head = LOAD(i64, item + INT_HEAD);
  if (TAGGED ? head < 16 : (u64)head + 1 < 3) { /* one digit, or none: there is always room for one */
    *value = (TAGGED ? 1 - (head & 3) : head) * (i64)LOAD(u32, item + INT_DIGITS);
    return true;
  }
  i64 digits = TAGGED ? head >> 3 : head < 0 ? -head : head;
  if (digits > 2) return false;
  u64 found = (u64)LOAD(u32, item + INT_DIGITS + 4) << 30 | LOAD(u32, item + INT_DIGITS);
  *value = (TAGGED ? (head & 3) == 2 : head < 0) ? -(i64)found : (i64)found;
  return true;
}
static inline bool item_bool(char* item, bool* value) {
  if (TYPE(item) != &PyBool_Type) return false;
  i64 head = LOAD(i64, item + INT_HEAD);
  *value = TAGGED ? head >> 3 && LOAD(u32, item + INT_DIGITS) : head != 0;
  return true;
}
static inline bool item_complex(char* item, double* real, double* imaginary) {
  if (TYPE(item) != &PyComplex_Type) return false;
  *real = LOAD(double, item + COMPLEX_REAL);
  *imaginary = LOAD(double, item + COMPLEX_IMAG);
  return true;
}
static inline bool is_plain_number(char* item) {
  char* type = TYPE(item);
  return type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || type == &PyComplex_Type;
}
static char* member(const char* of, const char* name) {
  char *module = PyImport_ImportModule(of), *found = module ? PyObject_GetAttrString(module, name) : 0;
  if (!found) PyErr_Clear();
  if (module) Py_DecRef(module);
  return found;
}
/* Whether a number is among the ints of a list; false where an item is something else. */
static bool list_has_int(char* list, i64 wanted, bool* found) {
  *found = false;
  for (i64 k = 0, value; k < LIST(list)->size; k++) {
    if (!item_int(LIST(list)->items[k], &value)) return false;
    if (value == wanted) {
      *found = true;
      return true;
    }
  }
  return true;
}
/* What is replaced: see lists.py. */
struct Spare { char* items[4]; u32 at; };
static inline void let_go_later(Spare* spare, char* item) {
  char** place = &spare->items[++spare->at & 3];
  if (*place) Py_DecRef(*place);
  *place = item;
}
static void let_go(Spare* spare) {
  for (int k = 0; k < 4; k++)
    if (spare->items[k]) Py_DecRef(spare->items[k]);
}
/* The number that was let go of last, if it has this type and nobody else holds it: how many do is in the
   lower half. */
static inline char* only_spare(Spare* spare, char* type) {
  char* item = spare->items[spare->at & 3];
  return item && TYPE(item) == type && LOAD(u32, item) == 1 ? item : 0;
}
static inline char* taken(Spare* spare) {
  char* item = spare->items[spare->at & 3];
  spare->items[spare->at-- & 3] = 0;
  return item;
}
static inline char* new_float(Spare* spare, double value) {
  char* item = only_spare(spare, &PyFloat_Type);
  if (!item) return PyFloat_FromDouble(value);
  STORE(double, item + FLOAT_VALUE, value);
  return taken(spare);
}
/* An int that nobody else holds becomes another one, if there is room for it. The ints from -5 to 256 are
   there once. */
static inline bool write_int(char* item, i64 value) {
  u64 size = value < 0 ? -(u64)value : value;
  i64 head = LOAD(i64, item + INT_HEAD), digits = 1 + (size >> 30 != 0);
  i64 room = TAGGED ? head >> 3 : head < 0 ? -head : head;
  if ((u64)value + 5 <= 261 || digits > room || size >> 60) return false;
  STORE(i64, item + INT_HEAD, TAGGED ? digits << 3 | (value < 0) << 1 : value < 0 ? -digits : digits);
  STORE(u32, item + INT_DIGITS, (u32)(size & 0x3fffffff));
  if (digits > 1) STORE(u32, item + INT_DIGITS + 4, (u32)(size >> 30));
  return true;
}
static inline char* new_int(Spare* spare, i64 value) {
  char* item = only_spare(spare, &PyLong_Type);
  return item && write_int(item, value) ? taken(spare) : PyLong_FromLongLong(value);
}
static char* new_scalar(Spare* spare, char* type) {
  if (only_spare(spare, type)) return taken(spare);
  char* (*allocate)(char*, i64) = (char* (*)(char*, i64))PyType_GetSlot(type, 47); /* tp_alloc */
  char* made = allocate(type, 0);
  if (!made) PyErr_Clear();
  return made;
}
static inline bool list_append(char* list, char* item) {
  i64 size = LIST(list)->size;
  if (size < LIST(list)->allocated) {
    LIST(list)->items[size] = item;
    LIST(list)->size = size + 1;
    return true;
  }
  int failed = PyList_Append(list, item);
  if (failed) PyErr_Clear();
  Py_DecRef(item);
  return !failed;
}
/* Take off the last item: as list_resize does. */
static inline bool list_shrink(char* list, i64 size, char* item, Spare* spare) {
  if (size < LIST(list)->allocated >> 1) {
    if (!PyList_SetSlice(list, size, size + 1, 0)) return true;
    PyErr_Clear();
    return false;
  }
  LIST(list)->size = size;
  if (spare) let_go_later(spare, item);
  else Py_DecRef(item);
  return true;
}
/* What inlined functions wrote over: see Block.note_change. */
struct Change { char* place; u64 before; i64 size; };
static inline void note_change(Change* change, char* place, i64 size) {
  change->place = place;
  change->size = size;
  if (size == 8) __builtin_memcpy(&change->before, place, 8);
  else if (size == 4) __builtin_memcpy(&change->before, place, 4);
  else if (size == 2) __builtin_memcpy(&change->before, place, 2);
  else change->before = (u8)*place;
}
__attribute__((always_inline)) static inline void take_back(Change* changes, i64 count) {
  while (count--) {
    Change* last = &changes[count];
    if (last->size == 8) __builtin_memcpy(last->place, &last->before, 8);
    else if (last->size == 4) __builtin_memcpy(last->place, &last->before, 4);
    else if (last->size == 2) __builtin_memcpy(last->place, &last->before, 2);
    else *last->place = (char)last->before;
  }
}
/* The whole part of a double, and whether it fits; the processor marks what does not by the least number. */
static inline bool as_int(double x, i64* result) {
#ifdef __x86_64__
  typedef double pair __attribute__((vector_size(16)));
  pair held = {x, 0.0};
  *result = __builtin_ia32_cvttsd2si64(held);
  return *result != -9223372036854775807LL - 1;
#else
  if (!(x >= -9223372036854775808.0 && x < 9223372036854775808.0)) return false;
  *result = (i64)x;
  return true;
#endif
}
static inline i64 floor_div(i64 a, i64 b) { i64 q = a / b; return q - (a % b != 0 && (a < 0) != (b < 0)); }
static inline i64 floor_mod(i64 a, i64 b) {
  if (a >= 0 && a < b) return a;
  i64 r = a % b;
  return r + (r != 0 && (r < 0) != (b < 0) ? b : 0);
}
static inline i64 range_end(i64 start, i64 stop, i64 step) {
  if (step > 0) return stop <= start ? start : start + (stop - start + step - 1) / step * step;
  return stop >= start ? start : start - (start - stop - step - 1) / -step * -step;
}
static inline bool int_power(i64 x, i64 y, i64* result) {
  i64 power = 1;
  while (true) {
    if (y & 1 && __builtin_mul_overflow(power, x, &power)) return false;
    y >>= 1;
    if (!y) break;
    if (__builtin_mul_overflow(x, x, &x)) return false;
  }
  *result = power;
  return true;
}
static inline i64 gcd(i64 a, i64 b) {
  a = a < 0 ? -a : a;
  b = b < 0 ? -b : b;
  while (b) { i64 r = a % b; a = b; b = r; }
  return a;
}
/* As CPython and NumPy have them; both numbers finite and y not 0. */
static inline double float_mod(double x, double y) {
  double r = fmod(x, y);
  if (r == 0) return __builtin_copysign(0.0, y);
  return (y < 0) != (r < 0) ? r + y : r;
}
static inline double float_floor_div(double x, double y) {
  double r = fmod(x, y), q = (x - r) / y;
  if (r != 0 && (y < 0) != (r < 0)) q -= 1.0;
  if (q == 0) return __builtin_copysign(0.0, x / y);
  double whole = __builtin_floor(q);
  return q - whole > 0.5 ? whole + 1.0 : whole;
}
/* round(x, n) by CPython itself, which goes by way of decimal digits. */
static bool round_to(double x, i64 digits, double* result) {
  char* number = PyFloat_FromDouble(x);
  char* found = number ? PyObject_CallMethod(number, "__round__", "L", digits) : 0;
  bool is_float = found && TYPE(found) == &PyFloat_Type;
  if (is_float) *result = LOAD(double, found + FLOAT_VALUE);
  if (found) Py_DecRef(found);
  else PyErr_Clear();
  if (number) Py_DecRef(number);
  return is_float;
}
/* A function of Python, called with new references to numbers; false where it raises. */
static char* call_python(char* function, int count, char** given) {
  bool complete = function != 0;
  for (int k = 0; k < count; k++) complete = complete && given[k];
  char* found = complete ? PyObject_Vectorcall(function, given, count, 0) : 0;
  for (int k = 0; k < count; k++)
    if (given[k]) Py_DecRef(given[k]);
  if (!found) PyErr_Clear();
  return found;
}
static bool call_float(char* function, int count, char** given, double* result) {
  char* found = call_python(function, count, given);
  bool is_float = found && item_float(found, result);
  if (found) Py_DecRef(found);
  return is_float;
}
static bool call_int(char* function, int count, char** given, i64* result) {
  char* found = call_python(function, count, given);
  bool is_int = found && item_int(found, result);
  if (found) Py_DecRef(found);
  return is_int;
}
/* pow, false where Python raises, gives a complex number, or NumPy warns. */
static inline bool float_power(double x, double y, double* result) {
  if (y == 2.0) {
    /* glibc's pow (Szabolcs Nagy's) is within 0.511 + 2^-15 |ln(x^y)| ulp, 0.513 below: it gives the rounded
       square unless that is so close to a tie */
    double p = x * x, e = __builtin_fma(x, x, -p);
    u64 bits = __builtin_bit_cast(u64, p) & 0x7ff0000000000000ULL;
    if (bits - 0x3bf0000000000000ULL < 0x0800000000000000ULL) { /* from 2^-64 to 2^64 */
      double ulp = __builtin_bit_cast(double, bits - 0x0340000000000000ULL);
      if (__builtin_fabs(e) < 0.486 * ulp) { *result = p; return true; }
    }
  }
  if (!is_finite(x) || !is_finite(y) || (x < 0 && y != __builtin_floor(y))) return false;
  if (x == 0 && y < 0) return false;
  double r = libm_pow(x, y);
  *result = r;
  return is_finite(r);
}
"""
)


_MOST_WALKS = 4


@dataclass(frozen=True, eq=False)
class Rendered:
    """A loop's function. ``inputs``: (local, kind) whose parts it is given in order, after those of the
    stack;
    ``leaves`` by the number that it returns; ``outputs``: (local, kinds by tag) in the order of what it
    writes behind ``stack_words`` words; ``owned``: from where on it writes how many arrays that it made and
    holds."""

    source: str
    symbol: str
    inputs: tuple[tuple[str, Kind], ...]
    leaves: tuple[Leave, ...]
    outputs: tuple[tuple[str, tuple[Kind, ...]], ...]
    stack_words: int
    words: int
    assumptions: tuple[Assumption, ...]
    goes_round: bool
    owned: tuple[int, int]


def render(
    subject: Subject,
    place: int,
    stack: Iterable[Kind],
    local: Mapping[str, Kind],
    symbol: str,
    title: str,
    known: Known = (),
    order: Order = (),
) -> Rendered:
    """Compile the loop to C++ for an entry at ``place``. ``known``: what some of the ints in locals are."""
    walker, held, env, first = _walked(subject, place, tuple(stack), local, known, order)
    if owners.lets_go_too_early(walker):
        raise HeldTooShort
    if walker.draws and walker.makes_tuples:
        raise TooLarge("it draws random numbers and makes tuples")  # collecting garbage lets others draw
    entry = [part for value in held for part in _input_of(value)]
    entry += [part for value in env.values() for part in _input_of(value)]
    reads = [f"{name} = ({ctype})in[{k}].{form};" for k, (name, ctype, form) in enumerate(entry)]
    stack_words = max([1 + sum(len(k.parts) for k in leave.stack) for leave in walker.leaves], default=1)
    outputs, writes, words = _outputs(walker, stack_words)
    own = [owners.own_name(slot) for slot in walker.array_slots] if walker.makes_arrays else []
    writes += [f"out[{words + k}].i = (i64){name};" for k, name in enumerate(own)]
    if walker.has_spare:
        writes.append(f"let_go(&{lists.SPARE});")
    owned = (words, len(own))
    words += len(own)
    for name in own:
        walker.variable(name, "char*")
    text = [f"/* {in_comment(title)} */", PRELUDE]
    text += [f"static char* {name};" for name in walker.members]
    text.append(f"#define SETTLED {'changed = 0' if walker.takes_back else ''}")
    text += [f'extern "C" i64 {symbol}(const Word* in, Word* out) {{']
    text += [f"  Change changes[{MOST_CHANGES}]; i64 changed = 0;"] if walker.takes_back else []
    text += [f"  {line}" for line in _declarations(walker)]
    text += [f"  Spare {lists.SPARE} = {{}};"] if walker.has_spare else []
    sizes = [size for value in env.values() if value.kind.family == "array" for size in arrays.sizes(value)]
    bounded = [f"if ((u64){size} > {LARGEST_AXIS}) __builtin_unreachable();" for size in sizes]
    text += [
        f"  i64 budget = {SOFT_BUDGET + HARD_BUDGET}, left;",
        *(f"  {line}" for line in (*reads, *bounded)),
        *(f"  {_found_member(*entry)}" for entry in walker.members.items()),
        f"  {first}",
    ]
    for version in walker.versions.values():
        text += _block(walker, version)
    for number, lines in enumerate(walker.leave_lines):
        leave = walker.leaves[number]
        text.append(f"leave{number}: /* at {leave.place}: {_comment(leave.reason)} */")
        text += [f"  {line}" for line in lines]
        text.append(f"  left = {number}; goto leave;")
    for module in (complexes, slices, creation, draws, heaps, whole_lists):
        if any(name in line for line in text[2:] for name in module.DEFINED):
            text[1] += module.PRELUDE
    text.append("leave:")
    text += ["  take_back(changes, changed);"] if walker.takes_back else []
    text += ["  out[0].i = left + 1;", *(f"  {line}" for line in writes), "  return left;", "}", ""]
    return Rendered(
        source="\n".join(text),
        symbol=symbol,
        inputs=tuple(local.items()),
        leaves=tuple(walker.leaves),
        outputs=outputs,
        stack_words=stack_words,
        words=max(words, len(entry)) + 1,
        assumptions=tuple(walker.assumptions),
        goes_round=walker.goes_round,
        owned=owned,
    )


def _walked(
    subject: Subject,
    place: int,
    stack: Sequence[Kind],
    local: Mapping[str, Kind],
    known: Known,
    order: Order,
) -> tuple[Walker, list[Value], dict[str, Value], str]:
    """A walk that knows between which numbers ints are; its stack and locals at the start, and how it is
    entered."""
    ranges = Ranges()
    for is_last in (*[False] * _MOST_WALKS, True):
        walker = Walker(subject, known=known, ranges=None if is_last else ranges)
        held = [walker.stack_value(depth, Value(kind, ())) for depth, kind in enumerate(stack)]
        env = {slot: walker.slot_value(slot, kind) for slot, kind in local.items()}
        for name, number in known:
            if number is None:
                env[name] = Value(env[name].kind, env[name].parts, None, 1, MOST_OF_SMALL)
            else:
                env[name] = Value(env[name].kind, env[name].parts, Form((), number), number, number)
        walker.fixed = _fixed(walker, env, order)
        first = control.begin(walker, place, held, env)
        walk_all(walker)
        if ranges.is_final and not ranges.has_failed:
            break
        ranges.is_final, ranges.has_failed = True, False
    return walker, held, env, first


def _fixed(walker: Walker, env: Mapping[str, Value], order: Order) -> dict[str, list[str]]:
    """The ints and the sizes of arrays in locals that are not assigned."""
    kept = {slot: value for slot, value in env.items() if slot not in walker.root.facts.stored}
    found: dict[str, list[str]] = {value.text: [] for value in kept.values() if value.kind == INT}
    for value in kept.values():
        if value.kind.family == "array":
            found.update({size: [] for size in arrays.sizes(value)})
    for number, array, axis in order:
        size = arrays.sizes(kept[array])[axis] if kept[array].kind.family == "array" else ""
        found.setdefault(size, []).append(kept[number].text)
    return found


def _found_member(variable: str, place: tuple[str, str]) -> str:
    module, name = place
    return f'if (!{variable} && !({variable} = member("{module}", "{name}"))) __builtin_trap();'


def _comment(text: str) -> str:
    return text.replace("*/", "* /")


def _input_of(value: Value) -> list[tuple[str, str, str]]:
    forms = ("d" if form == "d" else "i" for form in value.kind.formats)
    return [(name, ctype, form) for name, (_, ctype), form in zip(value.parts, value.kind.parts, forms)]


def _declarations(walker: Walker) -> list[str]:
    by_type: dict[str, list[str]] = {}
    for name, ctype in walker.variables.items():
        # variables of locals are written out by every leave, whether they have been set or not
        by_type.setdefault(ctype, []).append(f"{name} = 0" if name.startswith("v_") else name)
    for slot in walker.tags:
        by_type.setdefault("i64", []).append(f"tag_{clean(slot)} = 0")
    return [f"{_type(ctype)} {', '.join(_starred(ctype, names))};" for ctype, names in by_type.items()]


def _type(ctype: str) -> str:
    return ctype.removesuffix("*")


def _starred(ctype: str, names: list[str]) -> list[str]:
    return [f"*{name}" for name in names] if ctype.endswith("*") else names


def _outputs(walker: Walker, start: int) -> tuple[tuple[tuple[str, tuple[Kind, ...]], ...], list[str], int]:
    found, lines, at = [], [], start
    for slot, kinds in walker.tags.items():
        lines.append(f"out[{at}].i = tag_{clean(slot)};")
        at += 1
        for kind in kinds:
            for name, form in zip(walker.slot_value(slot, kind).parts, kind.formats):
                lines.append(put(f"out[{at}]", name, form))
                at += 1
        found.append((slot, tuple(kinds)))
    assert FIRST_TAG == 2
    return tuple(found), lines, at


def _block(walker: Walker, version: Version) -> list[str]:
    instr = version.scope.code.instructions[version.index]
    text = []
    if version.entry:
        text.append(f"enter{version.number}:")
        text += [f"  {line}" for line in version.entry]
    text.append(f"block{version.number}: /* line {instr.loc.line} */")
    return text + [f"  {line}" for line in (*owners.resolved(walker, version.lines), *version.tail)]

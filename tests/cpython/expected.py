"""Tests that are known to tell compiled code from plain code, each with the reason.

Patterns of test ids (``fnmatch``), ``"3.12 test.test_x…"`` for a version only.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from .outcomes import Outcome

KEPT = (
    "demands that a module, class or builtin function is freed at once: code that was specialised to it "
    "holds it as its own constants"
)
REFCOUNT = "compares sys.getrefcount(), sizes or numbers of objects, to which compiled code adds"
FRAMES = "looks at the frames on the stack, or at their number"
LOOKUPS = "counts look-ups in a dict with keys that run code, or changes the dict within one"
SUPER = "super() where there is no method: RuntimeError either way, with another message after a break"
EXOTIC_C = "replaces a C slot behind Python's back (_testcapi)"
UNDONE = "list.sort() notices that its list was changed and changed back; compiled code stores the net change"
OWN_CLASS = "looks at the methods of its own class, which the runner has compiled"
COLLECTOR = "demands that the garbage collector does not run between two calls of one expression"
TIMES = "asks how long something takes, which includes compiling it"
FOLDED = "measures how long a pure function takes, whose result compiled code holds since capture"
HISTORY = "expected to fail in plain Python, where a class keeps a stale slot"

EXPECTED: dict[str, str] = {
    "3.13 test.test_int.IntSubclassStrDigitLimitsTests.test_denial_of_service_prevented_*": FOLDED,
    "test.test_memoryview.*.test_getbuffer": REFCOUNT,
    "test.test_memoryview.*.test_getitem": REFCOUNT,
    "test.test_memoryview.*.test_setitem_readonly": REFCOUNT,
    "test.test_coroutines.CoroutineTest.test_for_2": REFCOUNT,
    "test.test_descr.ClassPropertiesAndMethods.test_slots": REFCOUNT,
    "test.test_descr.ClassPropertiesAndMethods.test_restored_object_new": HISTORY,
    "test.test_descr.ClassPropertiesAndMethods.test_remove_subclass": KEPT,
    "test.test_descr.SharedKeyTests.test_subclasses": REFCOUNT,
    "test.test_dict.DictTest.test_splittable_popitem": REFCOUNT,
    "test.test_dict.DictTest.test_oob_indexing_dictiter_iternextitem": LOOKUPS,
    "3.13 test.test_list.ListTest.test_free_after_iterating": KEPT,
    "test.test_module.ModuleTests.test_clear_dict_in_ref_cycle": KEPT,
    "test.test_module.ModuleTests.test_weakref": KEPT,
    "test.test_ordered_dict.*.test_reference_loop": KEPT,
    "test.test_queue.CSimpleQueueTest.test_reentrancy": COLLECTOR,
    "test.test_re.ReTests.test_search_anchor_at_beginning": TIMES,
    "test.test_weakref.ReferencesTestCase.test_callback_in_cycle_resurrection": KEPT,
    "test.test_weakref.ReferencesTestCase.test_cfunction": KEPT,
    "test.test_weakref.ReferencesTestCase.test_classes": KEPT,
    "test.test_struct.StructTest.test__struct_reference_cycle_cleaned_up": KEPT,
    "test.test_super.TestSuper.test_obscure_super_errors": SUPER,
    "test.test_pyclbr.PyclbrTest.test_others": OWN_CLASS,
    "test.test_functools.TestLRU*.test_lru_cache_weakrefable": KEPT,
    "test.test_sort.TestBugs.test_undetected_mutation": UNDONE,
    "test.test_call.TestPEP590.test_setvectorcall*": EXOTIC_C,
}


def reason_for(version: str, test: str, outcome: Outcome) -> str | None:
    """Why the test may differ; crashes and hangs never may."""
    if outcome.kind in ("crash", "hang"):
        return None
    for key, reason in EXPECTED.items():
        only, _, pattern = key.rpartition(" ")
        if (not only or only == version) and fnmatchcase(test, pattern):
            return reason
    return None

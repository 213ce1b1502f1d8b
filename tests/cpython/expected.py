"""Tests that are known to tell compiled code from plain code, each with the reason.

Patterns of test ids (``fnmatch``), ``"3.12 test.test_x…"`` for a version only.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from .outcomes import Outcome

LIFETIME = (
    "demands that an object is freed at once when its last name goes: across a graph break the frames "
    "before the break keep what they hold until the function returns"
)
REFCOUNT = "compares sys.getrefcount() or sizes of objects, to which compiled frames add"
FRAMES = "looks at the frames on the stack, or at their number"
UNBOUND = "after a break, a variable shared with an inner function raises NameError, not UnboundLocalError"
LOOKUPS = "counts look-ups in a dict with keys that run code, or changes the dict within one"
SUPER = "super() where there is no method: RuntimeError either way, with another message after a break"
EXOTIC_C = "replaces a C slot behind Python's back (_testcapi)"
UNDONE = "list.sort() notices that its list was changed and changed back; compiled code stores the net change"
HISTORY = "expected to fail in plain Python, where a class keeps a stale slot"

EXPECTED: dict[str, str] = {
    "*.test_free_after_iterating": LIFETIME,
    "*.test_container_iterator": LIFETIME,
    "*.test_weakref": LIFETIME,
    "test.test_memoryview.*.test_gc": LIFETIME,
    "test.test_memoryview.*.test_getbuffer": REFCOUNT,
    "test.test_memoryview.*.test_getitem": REFCOUNT,
    "test.test_memoryview.*.test_setitem_readonly": REFCOUNT,
    "test.test_memoryview.*.test_setitem_writable": REFCOUNT,
    "test.test_class.ClassTests.testDel": LIFETIME,
    "test.test_copy.TestCopy.test_*copy_weak*dict": LIFETIME,
    "test.test_coroutines.CoroutineTest.test_bpo_45813_1": LIFETIME,
    "test.test_coroutines.CoroutineTest.test_fatal_coro_warning": LIFETIME,
    "test.test_coroutines.CoroutineTest.test_func_9": LIFETIME,
    "test.test_coroutines.CoroutineTest.test_for_6": REFCOUNT,
    "test.test_coroutines.CoroutineTest.test_stack_in_coroutine_throw": FRAMES,
    "test.test_coroutines.OriginTrackingTest.*": FRAMES,
    "test.test_descr.ClassPropertiesAndMethods.test_cycle_through_dict": LIFETIME,
    "test.test_descr.ClassPropertiesAndMethods.test_delete_hook": LIFETIME,
    "test.test_descr.ClassPropertiesAndMethods.test_slots": LIFETIME,
    "test.test_descr.ClassPropertiesAndMethods.test_subtype_resurrection": LIFETIME,
    "test.test_descr.ClassPropertiesAndMethods.test_weakrefs": LIFETIME,
    "test.test_descr.ClassPropertiesAndMethods.test_vicious_descriptor_nonsense": LOOKUPS,
    "test.test_descr.ClassPropertiesAndMethods.test_restored_object_new": HISTORY,
    "test.test_descr.SharedKeyTests.test_subclasses": REFCOUNT,
    "test.test_dict.DictTest.test_oob_indexing_dictiter_iternextitem": LOOKUPS,
    "test.test_dict.DictTest.test_str_nonstr": LOOKUPS,
    "test.test_enumerate.TestReversed.test_bug1229429": REFCOUNT,
    "test.test_exceptions.ExceptionTests.test*CleanupState": LIFETIME,
    "test.test_exceptions.ExceptionTests.test_generator_*_cleanup_exc_state": LIFETIME,
    "test.test_exceptions.ExceptionTests.test_3114": LIFETIME,
    "test.test_exceptions.ExceptionTests.test_unraisable": LIFETIME,
    "test.test_exceptions.ExceptionTests.test_memory_error_cleanup": LIFETIME,
    "test.test_module.ModuleTests.test_clear_dict_in_ref_cycle": LIFETIME,
    "test.test_super.TestSuper.test_obscure_super_errors": SUPER,
    "test.test_exceptions.PEP626Tests.*": FRAMES,
    "test.test_funcattrs.FunctionPropertiesTest.test_set_cell": UNBOUND,
    "test.test_functools.TestLRU*.test_lru_cache_weakrefable": LIFETIME,
    "test.test_generators.FinalizationTest.*": LIFETIME,
    "test.test_iter.TestCase.test_ref_counting_behavior": LIFETIME,
    "test.test_scope.ScopeTests.testCellLeak": LIFETIME,
    "test.test_scope.ScopeTests.testUnboundLocal*": UNBOUND,
    "test.test_slice.SliceTest.test_cycle": LIFETIME,
    "test.test_sort.TestBugs.test_undetected_mutation": UNDONE,
    "test.test_tomllib.test_misc.TestMiscellaneous.test_inline_*_recursion_limit": FRAMES,
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

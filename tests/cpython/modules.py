"""Modules of CPython's ``test`` package about the language and the pure-Python library."""

from __future__ import annotations

import importlib.util


def _names(text: str) -> list[str]:
    return text.split()


LANGUAGE = _names("""
    test_augassign test_baseexception test_binop test_bool test_builtin test_bytes test_call
    test_class test_compare test_complex test_contains test_coroutines test_asyncgen test_decorators
    test_defaultdict test_deque test_descr test_descrtut test_dict test_dictcomps test_dictviews
    test_dynamic test_dynamicclassattribute test_enumerate test_eof test_except_star
    test_exception_group test_exception_hierarchy test_exception_variations test_exceptions
    test_extcall test_float test_fstring test_funcattrs test_generator_stop test_generators
    test_genericalias test_genericclass test_genexps test_global test_grammar test_hash test_index
    test_int test_int_literal test_isinstance test_iter test_iterlen test_keyword
    test_keywordonlyarg test_list test_listcomps test_long test_longexp test_metaclass test_module
    test_named_expressions test_numeric_tower test_opcodes test_operator test_patma
    test_pep646_syntax test_positional_only_arg test_pow test_property test_raise test_range
    test_repl test_richcmp test_scope test_set test_setcomps test_slice test_sort test_strtod
    test_string_literals test_subclassinit test_super test_syntax test_tuple test_type_comments
    test_typechecks test_types test_unary test_unpack test_unpack_ex test_userdict test_userlist
    test_userstring test_with test_yield_from test_pep380 test_pep479 test_print test_memoryview
    test_format test_string test_structseq
""")

LIBRARY = _names("""
    test_abc test_abstract_numbers test_argparse test_array test_base64 test_binascii test_bisect
    test_calendar test_cmath test_collections test_colorsys test_configparser test_contextlib
    test_contextlib_async test_copy test_copyreg test_crashers test_csv test_dataclasses
    test_datetime test_decimal test_difflib test_enum test_filecmp test_fnmatch test_fractions
    test_functools test_getopt test_graphlib test_heapq test_html test_htmlparser test_ipaddress
    test_itertools test_json test_linecache test_math test_mimetypes test_ntpath test_ordered_dict
    test_optparse test_posixpath test_pprint test_pstats test_queue test_quopri test_random test_re
    test_reprlib test_sched test_secrets test_shlex test_statistics test_stringprep test_struct
    test_textwrap test_timeit test_tomllib test_typing test_urlparse test_uuid test_weakref
    test_weakset test_context test_xmlrpc test_bufio test_codeop test_string_template test_tabnanny
    test_token test_pyclbr test_pickle test_pickletools test_shelve test_netrc test_plistlib
    test_rlcompleter test_unicodedata test_zipapp test_hashlib test_hmac test_str test_unicode
    test_cmd test_contextvars test_gettext test_imaplib test_pkg test_pulldom
""")

# a few seconds in all
QUICK = _names("""
    test_augassign test_unpack test_with test_dictcomps test_compare test_contains test_richcmp
""")


def available(names: list[str]) -> list[str]:
    """Those of the modules that this Python has."""
    return [name for name in dict.fromkeys(names) if importlib.util.find_spec(f"test.{name}") is not None]

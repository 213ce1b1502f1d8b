"""Loops over single numbers as loops in generated C++, by lazy basic-block versioning of canonical code.

``analysis`` says which loops these are and what is known of them before their types are, ``kinds`` what
values look like in generated code, ``code`` what instructions mean and how they are written, ``entry`` when
a loop is entered and left. Capture asks through ``capture.loops.scalar_loop_gates``.

A loop is specialised when it is about to start, on the exact types of what its variables hold; each basic
block is compiled once for each state of types that reaches it (Chevalier-Boisvert and Feeley, "Simple and
effective type check removal through lazy basic block versioning", 2015). What is not the plain case
leaves the generated code before the instruction has had an effect, and plain Python carries on there.
"""

"""Loops over single numbers as loops in generated C++, by lazy basic-block versioning of canonical code.

A loop is specialised when it is about to start, on the exact types of what its variables hold; each basic
block is compiled once for each state of types that reaches it (Chevalier-Boisvert and Feeley, "Simple and
effective type check removal through lazy basic block versioning", 2015). What is not the plain case leaves
the
generated code before the instruction has had an effect, and plain Python carries on there.

:class:`~.native.NativeLoop` is what the rest of capture uses. ``kinds`` says what values look like in
generated code, ``blocks`` what is known of the code, ``walk`` follows it, ``block`` is the state within one block;
``control arithmetic arrays calls`` give instructions their meaning and ``render`` writes the function.
"""

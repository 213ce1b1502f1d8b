"""Loops over single numbers as loops in generated C++, by lazy basic-block versioning of canonical code.

``choice`` and ``look`` say which loops, ``policy`` when one is entered, ``record`` what is told of them.
A loop is specialised when it is about to start, on the exact types of what its variables hold; each basic
block is compiled once for each state of types that reaches it (Chevalier-Boisvert and Feeley, "Simple and
effective type check removal through lazy basic block versioning", 2015). What is not the plain case
leaves the generated code before the instruction has had an effect, and plain Python carries on there.

``native`` is such a loop; ``plan`` is how C enters it again. ``kinds`` says what values look like in
generated code, ``describe`` which kinds objects have, ``blocks`` what is known of the code; ``walk`` holds
the versions and ``block`` the state within one; ``affine`` tells which accesses an innermost loop can check
before it starts; ``control arithmetic arrays lists texts calls`` give instructions their meaning and
``render`` writes the function.
"""

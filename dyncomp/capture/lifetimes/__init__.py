"""When objects go: finalizers and weak references that the program observes."""

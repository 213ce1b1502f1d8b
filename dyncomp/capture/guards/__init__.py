"""Guards as data: where a value comes from, what must hold of it, programs that check it in C."""

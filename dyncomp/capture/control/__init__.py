"""Control that leaves straight lines: exceptions, their groups, generators, recursion."""

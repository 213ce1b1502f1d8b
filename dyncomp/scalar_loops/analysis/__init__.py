"""What is known of a loop before it is compiled: blocks, kinds of its variables, ranges of its integers."""

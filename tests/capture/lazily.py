"""A module that a test program imports when it runs."""

VALUE = 3

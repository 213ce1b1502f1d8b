"""Compiled entries on disk: what a new process finds, checks and uses without capturing anything."""

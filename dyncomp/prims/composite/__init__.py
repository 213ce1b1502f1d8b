"""Ops written in other ops."""

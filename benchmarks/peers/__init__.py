"""Rankers of other packages, each run in an environment of its own."""

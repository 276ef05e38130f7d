"""Measures of the rankers in this repository, of textbook baselines and of other packages' rankers."""

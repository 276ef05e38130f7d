"""How property tests run here."""

from examples import examples
from hypothesis import settings

# The same examples on every run and no file left behind; time limits belong to benchmarks.
settings.register_profile("tests", max_examples=examples(100), deadline=None, derandomize=True, database=None)
settings.load_profile("tests")

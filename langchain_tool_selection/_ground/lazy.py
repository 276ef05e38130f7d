"""Names of a package that are imported when they are first used."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(package: str, file: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__all__`, the `__getattr__` and the `__dir__` of a package.

    The names are read from its stub, so that Python and type checkers have them from one list.

    Args:
        package: Its name.
        file: Its `__init__.py`. Beside it is the stub: `from module import Name as Name, ...`.
    """
    stub = Path(file).with_suffix(".pyi").read_text("utf-8")
    imports = re.findall(r"^from (\S+) import (\([^)]*\)|.*)$", stub, re.MULTILINE)
    module_of = {name: module for module, names in imports for name in re.findall(r"as (\w+)", names)}

    def imported(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(module_of[name]), name)

    names = sorted(module_of)
    return names, imported, lambda: names

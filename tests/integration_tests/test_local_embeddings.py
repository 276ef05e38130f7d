"""An agent whose tools are found by meaning, with an encoder that needs no key and no download."""

from __future__ import annotations

import re
from typing import Any

import pytest

from langchain_tool_selection.local import LocalEmbeddings

from .agents import OFFICE, build, run, sent, user


@pytest.fixture(scope="module")
def embeddings() -> LocalEmbeddings:
    pytest.importorskip("wordllama")
    return LocalEmbeddings()


@pytest.mark.parametrize(
    ("request_text", "tool"),
    [
        ("Where is my package?", "track_parcel"),
        ("How many euros are fifty dollars?", "convert_currency"),
    ],
)
async def test_a_request_that_shares_no_word_with_its_tool_is_shown_it(
    embeddings: LocalEmbeddings, path: str, request_text: str, tool: str
) -> None:
    def words(text: str) -> set[str]:
        return set(re.findall(r"[a-z]+", text.lower()))

    async def shown(**settings: Any) -> list[list[str]]:
        agent, model = build(["Done."], **settings)
        await run(path, agent, user(request_text))
        return sent(model)

    assert not words(request_text) & words(f"{tool.replace('_', ' ')} {OFFICE[tool]}")
    assert await shown(ranker=embeddings) == [[tool]]
    assert await shown() != [[tool]]

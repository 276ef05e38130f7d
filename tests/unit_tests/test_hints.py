"""Hints: what a tool is searched by beside its own text."""

from __future__ import annotations

import pytest

from langchain_tool_selection import (
    Query,
    ToolDocument,
    ToolHints,
    ToolIndex,
    ToolSelectionMiddleware,
    index_text,
)

TOOLS = [
    ToolDocument("create_event", "Create a calendar event."),
    ToolDocument("send_email", "Send an email."),
]
HINTS = {"create_event": ToolHints(examples=["schedule a team standup"], tags=["huddle"], domain="google")}


@pytest.mark.parametrize("request_text", ["Schedule a standup for tomorrow", "huddle", "something on google"])
def test_a_tool_is_found_by_its_hints(request_text: str) -> None:
    catalog = ToolIndex(hints=HINTS).sync(TOOLS)
    assert [hit.name for hit in catalog.search(Query.of(request_text))][:1] == ["create_event"]


def test_hints_add_to_what_a_tool_says_itself() -> None:
    own = {"name": "create_event", "description": "Create.", "domain": "outlook"}
    document = ToolIndex(hints={"create_event": ToolHints(tags=["huddle"])}).sync([own]).documents[0]
    assert (document.description, document.domain, document.tags) == ("Create.", "outlook", ("huddle",))


def test_hints_of_no_tool_are_passed_over() -> None:
    assert ToolIndex(hints=HINTS).sync(TOOLS[1:]).documents == (TOOLS[1],)


def test_what_is_indexed_can_be_read() -> None:
    document = ToolIndex(hints=HINTS).sync(TOOLS).documents[0]
    assert index_text(document).splitlines() == [
        "name: create_event",
        "domain: google",
        "description: Create a calendar event.",
        "examples: schedule a team standup",
        "tags: huddle",
    ]


@pytest.mark.parametrize(
    ("hints", "culprit"),
    [
        (["x"], "mapping of tool names to ToolHints, got list"),
        ({"a": {"tags": []}}, "got dict for 'a'"),
        ({"a": ToolHints(tags="huddle")}, "ToolHints.tags takes a list of strings, got a string for 'a'"),
    ],
)
def test_hints_that_are_none_are_an_error_that_names_the_culprit(hints: object, culprit: str) -> None:
    with pytest.raises(TypeError, match=culprit):
        ToolSelectionMiddleware(hints=hints)  # type: ignore[arg-type]

"""Names of tools as settings give them: exact, with wildcards, by tag or by domain.

`create_issue` is one tool, `git_*` all whose names begin so (`*`, `?` and `[...]` as in `fnmatch`),
`tag:billing` all with that tag, `domain:crm` all of that server or group; tags and domains take wildcards
too. They mean the same in every setting.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from fnmatch import translate
from typing import Any

from langchain_tool_selection._tools.documents import ToolDocument

_WILDCARDS = frozenset("*?[")
_KINDS = ("tag", "domain")
"""What a pattern may name beside tools."""


class Patterns:
    """Names and patterns of one setting.

    Args:
        patterns: Names and patterns, in any order.

    Attributes:
        names: Those that are exact names.
    """

    def __init__(self, patterns: Collection[str]) -> None:
        self.names = frozenset(one for one in patterns if _is_name(one))
        self._compiled = {one: _compiled(one) for one in sorted(patterns) if one not in self.names}

    @property
    def are_exact(self) -> bool:
        """Whether every pattern is an exact name, so that no document has to be read."""
        return not self._compiled

    def match(self, document: ToolDocument) -> bool:
        """Whether a tool is named, or matches a pattern."""
        return document.name in self.names or any(matches(document) for matches in self._compiled.values())

    def unmatched(self, tools: Mapping[str, Any], document_of: Callable[[Any], ToolDocument]) -> list[str]:
        """Return the names and patterns that match no tool, sorted.

        Args:
            tools: The tools by name.
            document_of: Reads a tool; asked only where there is more than exact names.
        """
        documents = [document_of(tool) for tool in tools.values()] if self._compiled else []
        idle = (text for text, matches in self._compiled.items() if not any(map(matches, documents)))
        return sorted([*(self.names - tools.keys()), *idle])


def _is_name(text: str) -> bool:
    return _WILDCARDS.isdisjoint(text) and not text.startswith(tuple(f"{kind}:" for kind in _KINDS))


def _compiled(text: str) -> Callable[[ToolDocument], bool]:
    """Return what tells whether a tool matches a pattern."""
    kind, colon, pattern = text.partition(":")
    if not colon or kind not in _KINDS:
        kind, pattern = "name", text
    matches = re.compile(translate(pattern)).match

    def is_match(document: ToolDocument) -> bool:
        # By kind, because a tool may be *named* `tag:safe`.
        values = document.tags if kind == "tag" else [getattr(document, kind)]
        return any(value and matches(value) for value in values)

    return is_match

"""Tools that are so alike that a model cannot choose between them.

How alike two descriptions are says little: of the pairs with the same parameters whose words overlap by 90 %
and more (Jaccard) but not wholly, in twelve real and made-up catalogues, not one was a pair of duplicates.
They differ in the one word that matters: delete and query, next and previous, albums and tracks. The same
holds where one description contains the words of the other, and order matters in "from USD to EUR". So two
descriptions are near-identical here if they say the same words in the same order, up to what never matters:
case, punctuation, articles, and the form of the leading verb ("Gets the user" and "Get user").
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from langchain_tool_selection._ranking.text import split, terms
from langchain_tool_selection._tools.documents import ToolDocument

_ARTICLES = frozenset({"a", "an", "the"})


def duplicate_of(documents: Iterable[ToolDocument]) -> dict[str, str]:
    """Return, for each tool that repeats an earlier one, the name of the first such tool.

    It repeats it if description and parameters, with theirs, are the same; what only the schema says, such
    as types, is not compared. A tool without a description repeats nothing: its name is all it says.
    """
    return _repeated(
        documents, lambda tool: (tool.description, tool.parameters) if tool.description else None
    )


def near_duplicates(documents: Iterable[ToolDocument]) -> dict[str, str]:
    """Return, for each tool that says almost the same as earlier ones, the name of the first of them.

    So tools that share a value, and the one of that name, are one group, of which to show the best ranked.
    Groups have the same parameter names, in any order, and near-identical descriptions, as the module
    defines it; `duplicate_of` is part of it. 10,000 tools take 0.2 s.
    """
    return _repeated(documents, _gist)


def _repeated(
    documents: Iterable[ToolDocument], key_of: Callable[[ToolDocument], Hashable | None]
) -> dict[str, str]:
    first: dict[Hashable, str] = {}
    repeated = {}
    for document in documents:
        key = key_of(document)
        if key is not None and first.setdefault(key, document.name) != document.name:
            repeated[document.name] = first[key]
    return repeated


def _gist(document: ToolDocument) -> Hashable | None:
    words = [word for word in map(str.casefold, split(document.description)) if word not in _ARTICLES]
    if not words:
        return None
    return frozenset(name for name, _ in document.parameters), tuple(terms(words[0])), tuple(words[1:])

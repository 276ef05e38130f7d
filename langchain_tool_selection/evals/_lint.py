"""What is wrong with a catalogue, told from the tools alone, each with what to do about it.

Whether two tools are confused is found by searching, not by how alike they look: a tool is searched by the
first sentence of its own description, and where another tool scores nearly as much or more, a request in
those words has no clear winner. How alike two descriptions are says little, because `delete` and `create`
differ in one word and everybody tells them apart by it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import combinations
from statistics import median
from typing import Any

from langchain_tool_selection._ground.sentences import first_sentence
from langchain_tool_selection._ground.untrusted import hidden_characters, one_line
from langchain_tool_selection._ranking.index import CatalogView, ToolIndex
from langchain_tool_selection._ranking.protocol import Query
from langchain_tool_selection._ranking.text import query_terms, terms
from langchain_tool_selection._tools.documents import ToolDocument
from langchain_tool_selection._tools.limits import LIMITS, root_keys
from langchain_tool_selection._tools.names import portable_name, refused_by
from langchain_tool_selection.evals._explain import telling_words
from langchain_tool_selection.evals._results import json_values
from langchain_tool_selection.evals.catalogs import Progress, Tools, ToolSet, read_tools

_TABLE = tomllib.loads(files(__package__).joinpath("lint.toml").read_text("utf-8"))

CHECKS: dict[str, dict[str, str]] = _TABLE["checks"]
"""What is looked for, in the order of findings: each with its severity, message and advice."""

_RESERVED = frozenset({"discover_tools", "call_tool"})
"""What the middleware adds to an agent under its default settings."""

_GENERIC = frozenset(terms(_TABLE["generic"]))
"""Words that say nothing about what a tool is for."""

_GAP = r"\W+(?:\w+\W+){0,3}"
_INSTRUCTIONS = re.compile("|".join(_TABLE["instructions"]).replace("~", _GAP), re.IGNORECASE)

_TELLING = 3
"""So many words that mean something make a description of its own, even if the name has them all: `Get an
Asana tag by its ID`."""

_SIMILAR = 0.95
"""From this share of a tool's own score on, another one is no clear loser. It names 18 pairs among 258 tools
of 39 services, 22 among 347 of one vendor, 109 among 236 operations of one interface, and none among those of
`benchmarks/registry61_data.py`."""

_SELF_DEPTH = 5
"""A tool that is not among so many for its own words is not found by anybody's."""

_SENTENCE_CHARACTERS = 300

_HEAVY_TOKENS = 500
_HEAVY_RATIO = 5
"""A tool is heavy from so many tokens on if that is so many times what the tool in the middle takes."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        check: What was looked for.
        severity: An "error" breaks a request, or makes a tool useless; a "warning" makes it worse.
        tools: The tools that it is about.
        message: What is wrong, in a line.
        advice: What to do about it, in a line.
    """

    check: str
    tools: tuple[str, ...]
    message: str
    advice: str

    @classmethod
    def of(cls, check: str, *tools: str, **details: Any) -> Finding:
        """Make the finding of a check, with the details that its message and advice name."""
        told = CHECKS[check]
        return cls(check, tools, told["message"].format(**details), told["advice"].format(**details))

    @property
    def severity(self) -> str:
        """How bad it is."""
        return CHECKS[self.check]["severity"]

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON values."""
        return {**json_values(self), "severity": self.severity}

    def __str__(self) -> str:
        """For people, in one line."""
        return f"{self.check}: {', '.join(self.tools)}: {self.message}. {self.advice}"


def lint(tools: Tools, *, ignore: Iterable[str] = (), progress: Progress | None = None) -> list[Finding]:
    """Return what is wrong with a catalogue, in the order of `CHECKS` and then of the tools.

    Args:
        tools: The catalogue: as `read_tools` takes it.
        ignore: Checks to leave out.
        progress: Is called with the number of tools that have been searched by their own words, which is what
            takes time: about a millisecond a tool where there are 10,000.

    Raises:
        FileError: the catalogue cannot be read.
        ValueError: there is no such check.
    """
    left_out = {*ignore}
    if unknown := left_out - CHECKS.keys():
        raise ValueError(f"there is no check {min(unknown)!r}; the checks are: {', '.join(CHECKS)}")
    toolset = read_tools(tools, unique=False)
    found = [*_names(toolset), *_texts(toolset), *_payload(toolset)]
    if not {"unfindable", "identical", "confusable"} <= left_out:
        found += _pairs(toolset, progress or (lambda _: None))
    order = [*CHECKS]
    return sorted((f for f in found if f.check not in left_out), key=lambda f: order.index(f.check))


# -- names ---------------------------------------------------------------------------------------------


def _names(tools: ToolSet) -> Iterator[Finding]:
    for where, name in tools.repeated:
        yield Finding.of("duplicate-name", name, where=where)
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for document in tools.documents:
        name = document.name
        alike[re.sub(r"[\W_]+", "", name).casefold()].append(name)
        if providers := ", ".join(refused_by(name)):
            yield Finding.of("rejected-name", name, providers=providers, portable=portable_name(name))
        if name in _RESERVED:
            yield Finding.of("reserved-name", name)
    yield from (Finding.of("similar-name", *names) for names in alike.values() if len(names) > 1)


# -- texts ---------------------------------------------------------------------------------------------


def _texts(tools: ToolSet) -> Iterator[Finding]:
    for document, definition in zip(tools.documents, tools.definitions, strict=True):
        yield from _description(document)
        yield from _suspicious(document.name, definition)
        if keys := ", ".join(root_keys(definition)):
            yield Finding.of("rejected-root", document.name, keys=keys)
        if len(document.description) > (longest := LIMITS["azure"].description or 0):
            yield Finding.of("long-description", document.name, longest=longest)
        if nameless := [name for name, text in document.parameters if not text.strip()]:
            yield Finding.of("undescribed-parameters", document.name, parameters=_list(nameless))


def _description(document: ToolDocument) -> Iterator[Finding]:
    if not terms(document.description):
        yield Finding.of("empty-description", document.name)
        return
    telling = set(query_terms(document.description)) - _GENERIC
    if len(telling) < _TELLING and telling <= set(terms(document.name)):
        yield Finding.of("generic-description", document.name, words=one_line(document.description, 60))


def _suspicious(name: str, definition: Mapping[str, Any]) -> Iterator[Finding]:
    for where, text in _strings(definition):
        if hidden := hidden_characters(text):
            codes = ", ".join(f"U+{ord(char):04X}" for char in hidden)
            yield Finding.of("invisible-characters", name, where=where, codes=codes)
        if found := _INSTRUCTIONS.search(text):
            yield Finding.of("instruction", name, where=where, said=one_line(found[0], 80))


def _strings(definition: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield all that a model reads of a tool, each with where it stands."""
    yield "the name", definition["name"]
    yield "the description", definition["description"]
    waiting: list[tuple[str, Any]] = [("", definition["parameters"])]
    while waiting:
        path, value = waiting.pop(0)
        if isinstance(value, str):
            yield f"the schema at {path}", value
        elif isinstance(value, Mapping):
            waiting += [(f"{path}.{key}".lstrip("."), inner) for key, inner in value.items()]
            yield from ((f"the schema at {path or 'its top'}", key) for key in value if isinstance(key, str))
        elif isinstance(value, list):
            waiting += [(path, inner) for inner in value]


# -- payload -------------------------------------------------------------------------------------------


def _payload(tools: ToolSet) -> Iterator[Finding]:
    sizes = tools.characters
    whole, limit = sum(sizes.values()), max(4 * _HEAVY_TOKENS, _HEAVY_RATIO * median(sizes.values()))
    by_name = {tool["name"]: tool for tool in tools.definitions}
    for name, size in sorted(sizes.items(), key=lambda item: -item[1]):
        if size > limit:
            part, of_part = max(_parts(by_name[name]), key=lambda item: item[1])
            shares = {"share": size / whole, "of_part": of_part / size}
            yield Finding.of("heavy", name, tokens=size // 4, part=part, **shares)


def _parts(tool: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    yield "its description", len(json.dumps(tool["description"]))
    properties = tool["parameters"].get("properties")
    for name, spec in properties.items() if isinstance(properties, Mapping) else ():
        yield f"parameter {name!r}", len(json.dumps(spec))
    for key in ("$defs", "definitions"):
        if key in tool["parameters"]:
            yield f"its {key}", len(json.dumps(tool["parameters"][key]))


# -- pairs ---------------------------------------------------------------------------------------------


def _pairs(tools: ToolSet, progress: Progress) -> Iterator[Finding]:
    catalog = ToolIndex().sync(tools.documents)
    same: defaultdict[Any, list[str]] = defaultdict(list)
    taken: dict[frozenset[str], tuple[ToolDocument, ToolDocument]] = {}
    for number, document in enumerate(catalog.documents, 1):
        if document.description.strip():
            same[document.description.strip(), document.parameters].append(document.name)
            rivals, found = _rivals(catalog, document)
            for rival in rivals:
                taken.setdefault(frozenset((document.name, rival)), (document, catalog.document(rival)))
            if not found:
                yield Finding.of("unfindable", document.name, rivals=_list(rivals) or "nothing")
        progress(number)
    yield from (Finding.of("identical", *names) for names in same.values() if len(names) > 1)
    repeated = {frozenset(pair) for names in same.values() for pair in combinations(names, 2)}
    yield from (_confusable(*pair) for names, pair in taken.items() if names not in repeated)


def _rivals(catalog: CatalogView, document: ToolDocument) -> tuple[list[str], bool]:
    """Return the tools that score about as much for a tool's own words, and whether it is found itself."""
    sentence = first_sentence(document.description)[:_SENTENCE_CHARACTERS]
    hits = catalog.search(Query.of(sentence), limit=_SELF_DEPTH + 1)
    own = next((hit.score for hit in hits[:_SELF_DEPTH] if hit.name == document.name), None)
    close = [hit.name for hit in hits if own is None or hit.score >= _SIMILAR * own]
    return [name for name in close if name != document.name], own is not None


def _confusable(one: ToolDocument, other: ToolDocument) -> Finding:
    telling = {one.name: telling_words(one, other), other.name: telling_words(other, one)}
    apart = "; ".join(f"{name} alone says {_list(words)}" for name, words in telling.items() if words)
    advice = "No word of name or description sets them apart; say when to use which, or keep one"
    if apart:
        advice = f"Say what sets each apart in its first sentence; {apart}"
    return Finding.of("confusable", one.name, other.name, one=one.name, other=other.name, advice=advice)


def _list(words: Sequence[str]) -> str:
    shown = ", ".join(words[:5])
    return f"{shown} and {len(words) - 5} more" if len(words) > 5 else shown

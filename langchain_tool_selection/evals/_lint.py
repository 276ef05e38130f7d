"""What is wrong with a catalogue, told from the tools alone, each with what to do about it.

Whether two tools are confused is found by searching, not by how alike they look: a tool is searched by the
first sentence of its own description, and where another tool scores nearly as much or more, a request in
those words has no clear winner. How alike two descriptions are says little, because `delete` and `create`
differ in one word and everybody tells them apart by it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal, get_args

from langchain_tool_selection._ground.untrusted import one_line
from langchain_tool_selection._ranking.index import Catalog, ToolIndex
from langchain_tool_selection._ranking.protocol import Query
from langchain_tool_selection._ranking.text import query_terms, terms
from langchain_tool_selection._tools.documents import ToolDocument
from langchain_tool_selection.evals._explain import telling_words
from langchain_tool_selection.evals.catalogs import ToolSet, read_tools

Check = Literal[
    "duplicate-name", "rejected-name", "similar-name", "reserved-name", "empty-description",
    "generic-description", "unfindable", "identical", "confusable", "instruction", "invisible-characters",
    "heavy", "undescribed-parameters",
]  # fmt: skip
"""What is looked for. The order is that of findings."""

CHECKS: tuple[Check, ...] = get_args(Check)

_ERRORS = frozenset(
    {
        "duplicate-name",
        "rejected-name",
        "reserved-name",
        "empty-description",
        "identical",
        "invisible-characters",
    }
)

_PROVIDERS = {
    "OpenAI": r"[a-zA-Z0-9_-]{1,64}",
    "Anthropic": r"[a-zA-Z0-9_-]{1,128}",
    "Bedrock": r"[a-zA-Z0-9_-]{1,64}",
    "Gemini": r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}",
}
"""Names of functions that providers take, as their references have it."""

_RESERVED = frozenset({"discover_tools", "call_tool"})
"""What the middleware adds to an agent under its default settings."""

_GENERIC = frozenset(
    terms(
        "tool function api endpoint method helper utility operation action command call execute run perform "
        "do handle process return response request data information info result value object given specified "
        "various useful"
    )
)
"""Words that say nothing about what a tool is for."""

_TELLING = 3
"""So many words that mean something make a description of its own, even if the name has them all: `Get an
Asana tag by its ID`."""

_SIMILAR = 0.95
"""From this share of a tool's own score on, another one is no clear loser. It names 18 pairs among 258 tools
of 39 services, 22 among 347 of one vendor, 109 among 236 operations of one interface, and none among those of
`benchmarks/registry61_data.py`."""

_SELF_DEPTH = 5
"""A tool that is not among so many for its own words is not found by anybody's."""

_SENTENCE = re.compile(r"\n\s*\n|(?<=[.!?])\s+(?=[^\sa-z])|(?<=[。！？])")  # noqa: RUF001  # Chinese and Japanese
_SENTENCE_CHARACTERS = 300

_HEAVY_TOKENS = 500
_HEAVY_RATIO = 5
"""A tool is heavy from so many tokens on if that is so many times what the tool in the middle takes."""

_GAP = r"\W+(?:\w+\W+){0,3}"
_INSTRUCTIONS = re.compile(
    "|".join(
        [
            rf"\b(?:ignore|disregard|forget|override|bypass){_GAP}(?:instruction|prompt|guideline)\w*",
            rf"\b(?:do not|don.t|never|without){_GAP}(?:tell|inform|mention|reveal|notify)\w*{_GAP}"
            r"(?:user|human|anyone|them)\b",
            r"\b(?:always|must|should only)\W+(?:first\W+)?(?:use|call|invoke|prefer|select|choose) this\b",
            r"\b(?:instead of|rather than|before) (?:using |calling )?any other (?:tool|function)s?\b",
            r"\b(?:you|assistant) (?:must|have to|are required to) (?:\w+ )?"
            r"(?:call|use|invoke|send|include|read)\b",
            r"\bsystem prompts?\b",
            r"</?(?:system|important|instructions?|admin|override)>",
            r"<\|[a-z_]+\|>|\[/?INST\]",
        ]
    ),
    re.IGNORECASE,
)

# Zero-width, bidirectional controls and tag characters: what a model reads and a reviewer does not see.
# Joiners and variation selectors are absent where emoji and Indic or Arabic words need them.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
    "|(?<=[ -~])[\u200c\u200d\ufe00-\ufe0e]|[\ufe00-\ufe0f]{2,}"
)


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

    check: Check
    tools: tuple[str, ...]
    message: str
    advice: str

    @property
    def severity(self) -> Literal["error", "warning"]:
        """How bad it is."""
        return "error" if self.check in _ERRORS else "warning"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON values."""
        return {**vars(self), "tools": list(self.tools), "severity": self.severity}

    def __str__(self) -> str:
        """For people, in one line."""
        return f"{self.check}: {', '.join(self.tools)}: {self.message}. {self.advice}"


def lint(
    tools: str | Path | Iterable[Any] | ToolSet,
    *,
    ignore: Iterable[str] = (),
    progress: Callable[[int], None] | None = None,
) -> list[Finding]:
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
    left_out = set(ignore)
    if unknown := left_out - set(CHECKS):
        msg = f"there is no check {min(unknown)!r}; the checks are: {', '.join(CHECKS)}"
        raise ValueError(msg)
    toolset = tools if isinstance(tools, ToolSet) else read_tools(tools, unique=False)
    found = [*_names(toolset), *_texts(toolset), *_payload(toolset)]
    if not {"unfindable", "identical", "confusable"} <= left_out:
        found += _pairs(toolset, progress or (lambda _: None))
    order = {check: place for place, check in enumerate(CHECKS)}
    return sorted((f for f in found if f.check not in left_out), key=lambda f: order[f.check])


# -- names ---------------------------------------------------------------------------------------------


def _names(tools: ToolSet) -> Iterator[Finding]:
    for where, name in tools.repeated:
        yield Finding(
            "duplicate-name", (name,), f"{where} has the name of a tool before it",
            "Rename one of them: providers reject a request with both, and an agent runs only one",
        )  # fmt: skip
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for document in tools.documents:
        name = document.name
        alike[re.sub(r"[\W_]+", "", name).casefold()].append(name)
        refusing = [who for who, pattern in _PROVIDERS.items() if not re.fullmatch(pattern, name)]
        if refusing:
            advice = f"Letters, digits, '_' and '-', at most 64, pass everywhere: {_valid(name)!r}"
            yield Finding("rejected-name", (name,), f"rejected by {', '.join(refusing)}", advice)
        if name in _RESERVED:
            yield Finding(
                "reserved-name", (name,), "the middleware adds a tool of this name",
                "Rename it, or give the middleware's tool another name",
            )  # fmt: skip
    for names in alike.values():
        if len(names) > 1:
            yield Finding(
                "similar-name", tuple(names), "the names differ only in case or separators",
                "Put into each name what the others do not do",
            )  # fmt: skip


def _valid(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    valid = re.sub(r"[^a-zA-Z0-9_-]+", "_", plain).strip("_-")
    return (valid if valid[:1].isalpha() else f"tool_{valid}")[:64].rstrip("_-")


# -- texts ---------------------------------------------------------------------------------------------


def _texts(tools: ToolSet) -> Iterator[Finding]:
    for document, definition in zip(tools.documents, tools.definitions, strict=True):
        yield from _description(document)
        yield from _suspicious(document.name, definition)
        nameless = [name for name, text in document.parameters if not text.strip()]
        if nameless:
            yield Finding(
                "undescribed-parameters", (document.name,),
                f"no description for {_list(nameless)}",
                "Say for each what it holds and in which form; requests are matched with these words too",
            )  # fmt: skip


def _description(document: ToolDocument) -> Iterator[Finding]:
    if not terms(document.description):
        yield Finding(
            "empty-description", (document.name,), "no description",
            "Say in one sentence what it does, in the words in which people ask for it",
        )  # fmt: skip
        return
    telling = set(query_terms(document.description)) - _GENERIC
    if len(telling) < _TELLING and telling <= set(terms(document.name)):
        words = one_line(document.description, 60)
        yield Finding(
            "generic-description", (document.name,), f"'{words}' says no more than the name",
            "Add what it acts on, what it returns, and the words in which people ask for it",
        )  # fmt: skip


def _suspicious(name: str, definition: Mapping[str, Any]) -> Iterator[Finding]:
    for where, text in _strings(definition):
        if unseen := sorted(set(_UNSEEN.findall(text))):
            codes = ", ".join(f"U+{ord(char):04X}" for found in unseen for char in found[:1])
            yield Finding(
                "invisible-characters", (name,), f"{where} has characters that nobody sees: {codes}",
                "Delete them: a model reads them and a reviewer does not",
            )  # fmt: skip
        if found := _INSTRUCTIONS.search(text):
            yield Finding(
                "instruction", (name,), f"{where} speaks to the model: '{one_line(found[0], 80)}'",
                "Say what the tool does; if others wrote it, read it whole before you connect it",
            )  # fmt: skip


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
    limit = max(4 * _HEAVY_TOKENS, _HEAVY_RATIO * median(sizes.values()))
    whole = sum(sizes.values())
    heavy = [tool for tool in tools.definitions if sizes[tool["name"]] > limit]
    for tool in sorted(heavy, key=lambda tool: -sizes[tool["name"]]):
        size = sizes[tool["name"]]
        part, of_part = max(_parts(tool), key=lambda item: item[1])
        yield Finding(
            "heavy", (tool["name"],),
            f"{size // 4:,} tokens, {size / whole:.0%} of all; most of it is {part}, {of_part / size:.0%}",
            "Cut what the model does not need to make a call: long examples, lists of values, deep nesting",
        )  # fmt: skip


def _parts(tool: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    yield "its description", len(json.dumps(tool["description"]))
    properties = tool["parameters"].get("properties")
    for name, spec in properties.items() if isinstance(properties, Mapping) else ():
        yield f"parameter {name!r}", len(json.dumps(spec))
    for key in ("$defs", "definitions"):
        if key in tool["parameters"]:
            yield f"its {key}", len(json.dumps(tool["parameters"][key]))


# -- pairs ---------------------------------------------------------------------------------------------


def _pairs(tools: ToolSet, progress: Callable[[int], None]) -> Iterator[Finding]:
    catalog = ToolIndex().sync(tools.documents)
    same: defaultdict[Any, list[str]] = defaultdict(list)
    taken: dict[frozenset[str], tuple[str, str]] = {}
    for number, document in enumerate(catalog.documents, 1):
        if document.description.strip():
            same[document.description.strip(), document.parameters].append(document.name)
            rivals, found = _rivals(catalog, document)
            taken |= {
                frozenset((document.name, rival)): (document.name, rival)
                for rival in rivals
                if frozenset((document.name, rival)) not in taken
            }
            if not found:
                yield Finding(
                    "unfindable", (document.name,),
                    f"its own first sentence finds {_list(rivals) or 'nothing'} and not this tool",
                    "Begin with what only this tool does, in words that the others do not have",
                )  # fmt: skip
        progress(number)
    for names in same.values():
        if len(names) > 1:
            yield Finding(
                "identical", tuple(names), "the same description and parameters",
                "Remove all but one, or say what only this one is for",
            )  # fmt: skip
    repeated = {frozenset((a, b)) for names in same.values() for a in names for b in names if a != b}
    for pair, (name, rival) in taken.items():
        if pair not in repeated:
            yield _confusable(catalog.document(name), catalog.document(rival))


def _rivals(catalog: Catalog, document: ToolDocument) -> tuple[list[str], bool]:
    """Return the tools that score about as much for a tool's own words, and whether it is found itself."""
    sentence = _SENTENCE.split(document.description.strip(), maxsplit=1)[0][:_SENTENCE_CHARACTERS]
    hits = catalog.search(Query.of(sentence), limit=_SELF_DEPTH + 1)
    own = next((hit.score for hit in hits[:_SELF_DEPTH] if hit.name == document.name), None)
    close = [hit.name for hit in hits if own is None or hit.score >= _SIMILAR * own]
    return [name for name in close if name != document.name], own is not None


def _confusable(one: ToolDocument, other: ToolDocument) -> Finding:
    mine, theirs = telling_words(one, other), telling_words(other, one)
    apart = [
        f"{tool.name} alone says {_list(words)}" for tool, words in ((one, mine), (other, theirs)) if words
    ]
    return Finding(
        "confusable", (one.name, other.name),
        f"a request in the words of {one.name} finds {other.name} as well",
        f"Say what sets each apart in its first sentence; {'; '.join(apart)}" if apart
        else "No word of name or description sets them apart; say when to use which, or keep one",
    )  # fmt: skip


def _list(words: Sequence[str]) -> str:
    shown = ", ".join(words[:5])
    return f"{shown} and {len(words) - 5} more" if len(words) > 5 else shown

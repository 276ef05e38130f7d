"""The default ranker with one ingredient off at a time, without a switch for it in the package.

`INGREDIENTS` names each ingredient and what takes it away: a context manager that receives the run's
`Setup` and changes either that (the documents, the weights, the query) or, for as long as it is open, one
name in a module of the package. A name that is gone makes that ingredient "unavailable", not the run fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchmarks.datasets import Case, Dataset
from benchmarks.rankers import measure
from langchain_tool_selection import FieldWeights, LexicalRanker, ToolDocument, ToolIndex
from langchain_tool_selection._ranking import lexical as _lexical
from langchain_tool_selection._ranking import query as _query
from langchain_tool_selection._ranking import spelling as _spelling
from langchain_tool_selection._ranking import text as _text
from langchain_tool_selection._ranking import weighting as _weighting


@dataclass
class Setup:
    """How the default ranker is run; ingredients change it before anything is indexed."""

    weights: FieldWeights = field(default_factory=FieldWeights)
    document: Callable[[ToolDocument], ToolDocument] = lambda document: document
    history: bool = True


@dataclass
class _Subject:
    setup: Setup
    dataset: Dataset

    def __post_init__(self) -> None:
        documents = tuple(self.setup.document(document) for document in self.dataset.documents())
        self._catalog = ToolIndex(LexicalRanker(weights=self.setup.weights)).sync(documents)

    def search(self, case: Case, limit: int) -> list[str]:
        query = case.conversation() if self.setup.history else case.plain()
        return [hit.name for hit in self._catalog.search(query, limit=limit)]


@contextmanager
def patched(module: Any, name: str, value: Any) -> Iterator[None]:
    """Replace a name of a module (or class), and forget what was computed with it.

    Raises:
        AttributeError: there is no such name any more.
    """
    before = getattr(module, name)
    setattr(module, name, value)
    _forget()
    try:
        yield
    finally:
        setattr(module, name, before)
        _forget()


def _forget() -> None:
    """Clear the caches of words, which hold what splitting and stemming made of them."""
    for value in list(vars(_text).values()):
        if hasattr(value, "cache_clear"):
            value.cache_clear()


Patch = Callable[[Setup], AbstractContextManager[None]]


@contextmanager
def nothing(setup: Setup) -> Iterator[None]:
    """Take nothing away: the reference."""
    yield


@contextmanager
def name_weight(setup: Setup) -> Iterator[None]:
    """Count a word in the name like one in the description."""
    setup.weights = replace(setup.weights, name=1.0)
    yield


@contextmanager
def parameter_names(setup: Setup) -> Iterator[None]:
    """Leave parameter names out of the documents."""
    setup.document = lambda d: replace(d, parameters=tuple(("", text) for _, text in d.parameters))
    yield


@contextmanager
def parameter_descriptions(setup: Setup) -> Iterator[None]:
    """Leave parameter descriptions out of the documents."""
    setup.document = lambda d: replace(d, parameters=tuple((name, "") for name, _ in d.parameters))
    yield


@contextmanager
def all_parameters(setup: Setup) -> Iterator[None]:
    """Leave parameters out of the documents altogether."""
    setup.document = lambda d: replace(d, parameters=())
    yield


@contextmanager
def domain(setup: Setup) -> Iterator[None]:
    """Leave the server's name out of the documents, and with it all that comes of sharing a server."""
    setup.document = lambda d: replace(d, domain="")
    yield


@contextmanager
def history(setup: Setup) -> Iterator[None]:
    """Search for the newest message alone."""
    setup.history = False
    yield


def name_coverage(setup: Setup) -> AbstractContextManager[None]:
    """Give nothing for the share of a name that the request covers."""
    return patched(_lexical, "_NAME_COVERAGE", 0.0)


def stemming(setup: Setup) -> AbstractContextManager[None]:
    """Index words as they are written."""
    return patched(_text, "_stem", lambda word: word)


def stop_words(setup: Setup) -> AbstractContextManager[None]:
    """Search for every word of a request. Also makes follow-ups look longer than they are."""
    return patched(_text, "_STOP_WORDS", frozenset())


def camel_case(setup: Setup) -> AbstractContextManager[None]:
    """Keep `createIssue` one word."""
    return patched(_text, "_CAMEL", re.compile(r"(?!)"))


def typo_fallback(setup: Setup) -> AbstractContextManager[None]:
    """Ignore a word that no tool has."""
    return patched(_spelling, "_most_alike", lambda *_: None)


def surface_forms(setup: Setup) -> AbstractContextManager[None]:
    """Count a word no more in the form in which it stands there."""
    return patched(_lexical, "_SURFACE_WEIGHT", 0.0)


def sentences(setup: Setup) -> AbstractContextManager[None]:
    """Score a request of several sentences as a whole only."""
    return patched(_lexical, "_SENTENCE_WEIGHT", 0.0)


def servers(setup: Setup) -> AbstractContextManager[None]:
    """Let no tool gain from others of its server."""
    return patched(_weighting, "_SERVER_WEIGHT", 0.0)


def ceiling(setup: Setup) -> AbstractContextManager[None]:
    """Count a word of a text more the more often it is there, without end."""
    ceiling = np.where(_weighting._CEILING > 1, np.inf, 1).astype(np.float32)
    return patched(_weighting, "_CEILING", ceiling)


def whole_names(setup: Setup) -> AbstractContextManager[None]:
    """Let a tool that the request does not name come before one that it names."""
    return patched(_lexical, "_BEHIND", np.inf)


def server_limit(setup: Setup) -> AbstractContextManager[None]:
    """Let a server have as much of the list as it matches."""
    return patched(_weighting, "_SERVER_TOOLS", 10**9)


def families(setup: Setup) -> AbstractContextManager[None]:
    """Know no near-synonyms."""
    return patched(_lexical, "FAMILIES", {})


def quotation_marks(setup: Setup) -> AbstractContextManager[None]:
    """Count quoted words like all others."""
    return patched(_text, "_QUOTED_WEIGHT", 1.0)


def joined_words(setup: Setup) -> AbstractContextManager[None]:
    """Never read two words as one."""
    return patched(_text, "pairwise", lambda _: ())


def replies(setup: Setup) -> AbstractContextManager[None]:
    """Do not read what the model asked back."""
    return patched(_query, "_REPLY_WEIGHT", 1e-9)


INGREDIENTS: dict[str, Patch] = {
    "(default, with history)": nothing,
    "name weight (= 1)": name_weight,
    "parameter names": parameter_names,
    "parameter descriptions": parameter_descriptions,
    "all parameters": all_parameters,
    "domain": domain,
    "name coverage": name_coverage,
    "stemming": stemming,
    "stop words": stop_words,
    "camel-case splitting": camel_case,
    "typo fallback": typo_fallback,
    "surface forms": surface_forms,
    "sentences": sentences,
    "shared servers": servers,
    "ceiling of repeated words": ceiling,
    "limit of a server": server_limit,
    "precedence of whole names": whole_names,
    "families": families,
    "quotation marks": quotation_marks,
    "joined words": joined_words,
    "the model's reply": replies,
    "history": history,
}
"""What is switched off, by name; the first entry is the reference."""


def ablate(datasets: list[Dataset], say: Callable[[str], None]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return measures by ingredient that is off, and set."""
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    for ingredient, patch in INGREDIENTS.items():
        say(f"without {ingredient}")
        rows[ingredient] = {}
        for data in datasets:
            setup = Setup()
            try:
                with patch(setup):
                    rows[ingredient][data.name] = measure(lambda d, s=setup: _Subject(s, d), data)
            except AttributeError as error:
                rows[ingredient][data.name] = {"error": f"unavailable: {error}"}
    return rows

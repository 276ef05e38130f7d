"""The settings of `ToolSelectionMiddleware`: what most people touch, and records of what travels together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from langchain_core.embeddings import Embeddings

from langchain_tool_selection._access.audit import AuditLevel
from langchain_tool_selection._access.fingerprints import check_fingerprints
from langchain_tool_selection._access.rules import Allow, OnChange, check_allow
from langchain_tool_selection._exposure.registry import ExposureSetting
from langchain_tool_selection._ground.settings import (
    check_choice,
    check_count,
    check_flag,
    check_function,
    check_number,
    check_timeout,
    check_type,
)
from langchain_tool_selection._ranking.index import check_hints
from langchain_tool_selection._ranking.protocol import Query, Ranker
from langchain_tool_selection._run.activation import Threshold, check_threshold
from langchain_tool_selection._run.collect import Collect
from langchain_tool_selection._selection.policy import OnNoMatch
from langchain_tool_selection._tools.documents import ToolHints
from langchain_tool_selection._tools.limits import is_portable_name
from langchain_tool_selection._tools.names import PORTABLE
from langchain_tool_selection._tools.schema import SchemaPruning
from langchain_tool_selection.portable import Scorer, check_names, check_top_k


@dataclass(frozen=True)
class Search:
    """How tools are searched for.

    Attributes:
        timeout: Seconds that the ranker may take for one search; then words rank. `None` waits.
        query: Gives the text (or `Query`) to search for, from the model request; `None` from it means
            nothing to search for. By default it is read from the conversation.
        min_score: Tools that score less are no match; `None` takes every hit of the ranker. What a
            score is worth depends on the ranker.
        on_no_match: What to show by relevance when nothing matches: what the turn before showed
            (`"previous"`; nothing, on the first), or the first `top_k` by registration (`"fill"`).

    Raises:
        TypeError: a setting has the wrong type.
        ValueError: a setting has no possible value.
    """

    timeout: float | None = 10.0
    query: Callable[[Any], str | Query | None] | None = None
    min_score: float | None = None
    on_no_match: OnNoMatch = "previous"

    def __post_init__(self) -> None:
        check_timeout("Search.timeout", self.timeout)
        check_function("Search.query", self.query, "the model request")
        check_number("Search.min_score", self.min_score)
        check_choice("Search.on_no_match", self.on_no_match, get_args(OnNoMatch))


@dataclass(frozen=True)
class Thread:
    """What a thread keeps, and from where on anything is hidden.

    Attributes:
        keep_used: Tools called in the current user turn and so many turns before it stay. `None`
            keeps all whose calls are in the messages; 0 keeps none for having been called.
        max_pins: How many discovered tools a thread remembers; the least recently used go first.
        activate_above: Requests pass through untouched unless there is more than this to choose from: so
            many tools (`top_k` or more), so many `Tokens(...)` of their definitions, or `"break_even"`,
            from where on selection is cheaper than sending everything, by the cost model and the
            published prices of the model at hand. `None` means `top_k`.

    Raises:
        TypeError: a setting has the wrong type.
        ValueError: a setting has no possible value.
    """

    keep_used: int | None = 1
    max_pins: int = 32
    activate_above: Threshold = None

    def __post_init__(self) -> None:
        check_count("Thread.keep_used", self.keep_used, optional=True)
        check_count("Thread.max_pins", self.max_pins, at_least=1)
        check_threshold(self.activate_above)


@dataclass(frozen=True)
class Access:
    """What holds beside `allow=`: enforcement, approved definitions, the audit log.

    Attributes:
        enforce: Whether a call of a tool that the model was not shown is refused. By default it runs.
        fingerprints: What `fingerprint_of(tool)` gave for each known tool, by name. A tool whose definition
            has changed is not offered, unless `on_change` approves.
        on_change: Called with such a tool and its new fingerprint; whether it may be used.
        audit: Whether to log what was shown, found, pinned, called and refused, one JSON object a record, to
            the logger `langchain_tool_selection.audit`; without arguments of calls, unless `"arguments"`.

    Raises:
        TypeError: a setting has the wrong type.
        ValueError: a setting has no possible value.
    """

    enforce: bool = False
    fingerprints: Mapping[str, str] | None = None
    on_change: OnChange | None = None
    audit: AuditLevel = False

    def __post_init__(self) -> None:
        check_flag("Access.enforce", self.enforce)
        check_fingerprints(self.fingerprints)
        check_function("Access.on_change", self.on_change, "a tool and its fingerprint")
        check_choice("Access.audit", self.audit, (False, True, "arguments"))


_DESCRIPTION = (
    "Search all tools; your list shows only some of them. Call this when no listed tool fits, before you "
    "say that something cannot be done."
)
_ABOUT_STUBS = "Most tools are listed without their parameters; the answer has them."
_STUBS_DESCRIPTION = (
    f"Look up tools. {_ABOUT_STUBS} Call this when you do not know what a tool takes, and when no listed "
    "tool fits, before you say that something cannot be done."
)


@dataclass(frozen=True)
class Discovery:
    """Settings of the `discover_tools` tool.

    Attributes:
        name: What the model calls it.
        description: What the model is told about it.
        max_results: How many tools one search finds at most; twice as many where the exposure is "proxy" or
            "stubs" and most of them come without their schema.
        overview: Whether the description also names the domains that there are, with their numbers of
            tools: once for a thread, as they were when it began, until one of them is no longer there.
        max_discoveries: How many searches there are for one user message; then the model is told to go
            on with what it has.
        call_name: What the model calls `call_tool`, with which it calls what it found where the
            exposure is "proxy", or "stubs" and the tools array is full.
    """

    name: str = "discover_tools"
    description: str = _DESCRIPTION
    max_results: int = 5
    max_discoveries: int = 12
    overview: bool = False
    call_name: str = "call_tool"

    def __post_init__(self) -> None:
        for setting in ("name", "call_name"):
            value = getattr(self, setting)
            if not is_portable_name(value):
                raise ValueError(
                    f"Discovery.{setting} must be {PORTABLE}, as providers demand, got {value!r}"
                )
        if self.name == self.call_name:
            raise ValueError(f"Discovery.name and Discovery.call_name must differ, both are {self.name!r}")
        if not isinstance(self.description, str) or not self.description:
            raise ValueError(f"Discovery.description must be a non-empty string, got {self.description!r}")
        check_count("Discovery.max_results", self.max_results, at_least=1)
        check_count("Discovery.max_discoveries", self.max_discoveries, at_least=1)

    @property
    def description_beside_stubs(self) -> str:
        """What the model is told of the search tool where other tools are listed by name and one line."""
        if self.description == _DESCRIPTION:
            return _STUBS_DESCRIPTION
        return f"{self.description} {_ABOUT_STUBS}"


@dataclass(frozen=True)
class Settings:
    """All settings of one middleware, checked; see `ToolSelectionMiddleware` for what each means."""

    top_k: int = 15
    always_include: Collection[str] = ()
    ranker: Ranker | Embeddings | Scorer | None = None
    hints: Mapping[str, ToolHints] | None = None
    exposure: ExposureSetting = "auto"
    discovery: Discovery | None = field(default_factory=Discovery)
    allow: Allow = None
    prune: SchemaPruning | None = None
    token_budget: float | None = 0.15
    domains: Callable[[Any, Any], Collection[str] | None] | None = None
    search: Search = field(default_factory=Search)
    thread: Thread = field(default_factory=Thread)
    access: Access = field(default_factory=Access)
    collect: Collect | None = None

    def __post_init__(self) -> None:
        check_top_k(self.top_k)
        check_names("always_include", self.always_include)
        check_hints(self.hints)
        check_function("domains", self.domains, "state and runtime")
        check_budget(self.token_budget)
        check_allow(self.allow)
        check_type("collect", self.collect, Collect, optional=True)
        check_type("prune", self.prune, SchemaPruning, optional=True)
        check_type("discovery", self.discovery, Discovery, optional=True)
        check_type("search", self.search, Search)
        check_type("thread", self.thread, Thread)
        check_type("access", self.access, Access)
        above = self.thread.activate_above
        if isinstance(above, int) and above < self.top_k:
            raise ValueError(f"Thread.activate_above must be top_k={self.top_k} or more, got {above}")


def check_budget(value: Any) -> None:
    """Check `token_budget`: a number of tokens, a share, or `None`."""
    check_number("token_budget", value)
    is_share = isinstance(value, float) and 0 < value < 1
    if value is not None and not is_share and not (isinstance(value, int) and value > 0):
        raise ValueError(
            f"token_budget must be a share between 0 and 1 or a whole number of tokens, got {value!r}"
        )

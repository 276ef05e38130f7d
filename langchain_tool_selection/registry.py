"""A registry of tools for programs without an agent framework: register, route a prompt, serialise.

What comes out is the `tools` payload of a request to OpenAI or Anthropic, with what it costs.

Example:
    >>> registry = ToolRegistry()
    >>> registry.register("git_diff", "Show what changed in the working tree.")
    >>> registry.register("run_pytest", "Run the unit tests of a module.", tags=["test"])
    >>> registry.register("slack_alert", "Send an alert to a Slack channel.")
    >>> registry.route_tools("run the tests on auth", top_k=1)
    ['run_pytest']
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, get_args

from langchain_tool_selection._ground.settings import check_choice
from langchain_tool_selection._ranking.index import ToolIndex
from langchain_tool_selection._ranking.protocol import Query
from langchain_tool_selection._tools.documents import ToolDocument, ToolHints, document_of, with_hints
from langchain_tool_selection._tools.names import POSSIBLE, is_possible_name
from langchain_tool_selection._tools.schema import SchemaPruning, prune_tool
from langchain_tool_selection._tools.shapes import openai_tool
from langchain_tool_selection._tools.tokens import count_tokens
from langchain_tool_selection.portable import check_names, check_top_k

Provider = Literal["openai", "openai_responses", "anthropic"]


@dataclass(frozen=True)
class Payload:
    """The tools of a request, as a provider takes them.

    Attributes:
        tools: The `tools` array, in registration order.
        tokens: What it costs.
        catalog_tokens: What all registered tools would cost, unpruned.
        counter: How tokens were counted: by a tokenizer, or approximately.
    """

    tools: list[dict[str, Any]]
    tokens: int
    catalog_tokens: int
    counter: str

    @property
    def saved(self) -> float:
        """The share of the catalogue's tokens that is not sent, 0.0 to 1.0."""
        return 1 - self.tokens / self.catalog_tokens if self.catalog_tokens else 0.0


class ToolRegistry:
    """Holds tools by name, in the order in which they were registered.

    Searching is thread-safe; registering while others search is not.

    Args:
        ranker: As `ToolIndex` takes it; `None` ranks by words.
    """

    def __init__(self, ranker: Any = None) -> None:
        self._index = ToolIndex(ranker)
        self._tools: dict[str, dict[str, Any]] = {}
        self._documents: dict[str, ToolDocument] = {}

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def register(
        self,
        name: str,
        description: str = "",
        parameters: Mapping[str, Any] | None = None,
        *,
        tags: Iterable[str] = (),
        examples: Iterable[str] = (),
        domain: str = "",
    ) -> None:
        """Add a tool.

        Args:
            name: As the model will call it; unique.
            description: What it does.
            parameters: The JSON schema of its arguments; `None` for none.
            tags: Words that people use for it; searched, never sent.
            examples: Requests that it answers; searched, never sent.
            domain: The server or group that it belongs to; searched, never sent.

        Raises:
            TypeError: the name is none that a provider takes, the parameters are no mapping, or tags or
                examples are one string.
            ValueError: the name is taken.
        """
        schema = {"type": "object", "properties": {}} if parameters is None else parameters
        _check(name, description, schema)
        for setting, words in (("tags", tags), ("examples", examples)):
            if isinstance(words, str):
                raise TypeError(f"{setting} of {name!r} takes a list of strings, got {words!r}")
        tool = {"name": name, "description": description or "", "parameters": deepcopy(dict(schema))}
        document = document_of(tool)
        if name in self._tools:
            raise ValueError(
                f"a tool named {name!r} is registered already; unregister it first, or use another name"
            )
        self._tools[name] = tool
        self._documents[name] = with_hints(document, ToolHints(tuple(examples), tuple(tags), domain))

    def unregister(self, name: str) -> None:
        """Remove a tool.

        Raises:
            KeyError: there is none of that name.
        """
        del self._tools[name], self._documents[name]

    def route_tools(self, prompt: str, top_k: int = 5, pinned_tools: Collection[str] = ()) -> list[str]:
        """Return the names of the tools for a prompt, in registration order.

        Args:
            prompt: What the user wants.
            top_k: How many tools at most, pinned ones among them; more only if more are pinned. Fewer if
                fewer match.
            pinned_tools: Names that are always among them. Names that are not registered are ignored.

        Raises:
            TypeError, ValueError: `top_k` or `pinned_tools` is not what it should be.
        """
        check_top_k(top_k)
        pinned = check_names("pinned_tools", pinned_tools) & self._tools.keys()
        catalog = self._index.sync(self._documents.values())
        hits = catalog.search(Query.of(prompt), limit=top_k + len(pinned))
        others = [hit.name for hit in hits if hit.name not in pinned]
        active = pinned.union(others[: max(0, top_k - len(pinned))])
        return [name for name in self._tools if name in active]

    def serialize(
        self,
        active: Collection[str],
        provider: Provider = "openai",
        *,
        prune: SchemaPruning | None = None,
        model: str | None = None,
    ) -> Payload:
        """Return the `tools` array of a request.

        Args:
            active: Names of the tools to send, in any order.
            provider: "openai" (Chat Completions), "openai_responses", or "anthropic".
            prune: What is left of each schema; `None` sends them whole.
            model: Whose tokenizer counts; `None` counts approximately.

        Raises:
            ValueError: a name is not registered, or the provider is unknown.
        """
        check_choice("provider", provider, get_args(Provider))
        if unknown := sorted(check_names("active", active) - self._tools.keys()):
            known = ", ".join([*self._tools][:20])
            raise ValueError(f"no tool is registered under {', '.join(unknown)}; known tools: {known}")
        chosen = [deepcopy(tool) for name, tool in self._tools.items() if name in active]
        sent = [_for(provider, prune_tool(tool, prune) if prune else tool) for tool in chosen]
        everything = count_tokens([_for(provider, tool) for tool in self._tools.values()], model)
        counted = count_tokens(sent, model)
        return Payload(sent, counted.tokens, everything.tokens, counted.counter)


def _check(name: Any, description: Any, schema: Any) -> None:
    if not is_possible_name(name):
        raise TypeError(f"a tool's name must be what a provider takes ({POSSIBLE}), got {name!r}")
    if not isinstance(description, str | None):
        raise TypeError(f"description of {name!r} must be a string, got {type(description).__name__}")
    if not isinstance(schema, Mapping):
        raise TypeError(
            f"parameters of {name!r} must be a JSON schema as a dict, got {type(schema).__name__}"
        )
    if schema.get("type", "object") != "object":
        raise ValueError(f"parameters of {name!r} must describe an object, got type {schema['type']!r}")
    try:
        json.dumps(schema)
    except (TypeError, ValueError) as error:
        raise TypeError(f"parameters of {name!r} hold what JSON cannot: {error}") from None


def _for(provider: Provider, tool: dict[str, Any]) -> dict[str, Any]:
    if provider == "openai":
        return openai_tool(tool)
    if provider == "openai_responses":
        return {"type": "function", **tool}
    return {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}

"""What is sent of a tool, and what that costs: its definition, whole or pruned."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from langchain_tool_selection._ground.log import logger
from langchain_tool_selection._ground.untrusted import visible
from langchain_tool_selection._tools.documents import content_key
from langchain_tool_selection._tools.schema import SchemaPruning, prune_tool
from langchain_tool_selection._tools.shapes import is_deferred, is_harness_tool
from langchain_tool_selection._tools.tokens import count_tokens

_REMEMBERED = 20_000
"""Definitions that are kept. With each its tool's schema stays alive; the oldest go first."""


@dataclass
class _Known:
    """What was made of a tool, each when it was first asked for.

    Attributes:
        schema: What counts by identity in the key, and so has to stay alive.
        definition: What is sent of the tool, as an OpenAI function dict.
        changes: What is other in the copy of it that is bound, if it is not pruned.
        tokens: What the definition costs, by model.
    """

    schema: Any
    definition: dict[str, Any] | None = None
    changes: dict[str, Any] | None = None
    tokens: dict[str, int] = field(default_factory=dict)


class Definitions:
    """Makes and remembers the definitions of tools. Shared by all threads: it holds a cache only.

    Args:
        prune: What is left of each schema; `None` leaves them whole.
    """

    def __init__(self, prune: SchemaPruning | None = None) -> None:
        self._prune = prune
        self._checked = False
        self._known: OrderedDict[tuple[Any, ...], _Known] = OrderedDict()

    @property
    def are_pruned(self) -> bool:
        """Whether anything is left out."""
        return self._prune is not None

    def of(self, tool: Any) -> dict[str, Any]:
        """Return a tool as an OpenAI function dict, pruned; a provider's own dict as it is."""
        if not isinstance(tool, BaseTool):
            return dict(tool)
        known = self._of(tool)
        if known.definition is None:
            known.definition = self._definition(tool)
        return known.definition

    def _of(self, tool: BaseTool) -> _Known:
        key = content_key(tool)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _Known(tool.args_schema)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return known

    def _definition(self, tool: BaseTool) -> dict[str, Any]:
        definition = definition_of(tool)
        if self._prune is None or is_harness_tool(tool):
            return definition
        try:
            definition = _visible_annotations(definition)
            return prune_tool(definition, self._prune)
        except RecursionError:
            logger.warning("the schema of %r is nested too deeply to be pruned", tool.name)
            return definition

    def bound(self, tool: Any) -> Any:
        """Return what to bind for a tool: itself, or a copy without what is pruned, invisible or endless.

        The copy is for the model alone. The tool that runs is the registered one, which takes all that it
        always took. Tools of LangChain's and deepagents' own middleware are sent whole: their descriptions
        say in many paragraphs how to use them, and which subagents there are.
        """
        if not isinstance(tool, BaseTool):
            return tool
        if self._prune is None or is_harness_tool(tool):
            known = self._of(tool)
            if known.changes is None:
                known.changes = _made_visible(tool)
            return tool.model_copy(update=known.changes) if known.changes else tool
        function = self.of(tool).get("function", {})
        if "parameters" not in function:  # a tool of OpenAI's that takes free text, or a broken one
            return tool
        shown = {"args_schema": function["parameters"], "description": function.get("description", "")}
        return tool.model_copy(update=shown)

    def unknown_in_keep(self, tools: Iterable[Any]) -> list[str]:
        """Return what `SchemaPruning.keep` names and none of the tools has. Looked for once."""
        if self._prune is None or not self._prune.keep or self._checked:
            return []
        self._checked = True
        return self._prune.unknown([definition_of(tool) for tool in tools if isinstance(tool, BaseTool)])

    def tokens(self, tool: Any, model: str = "") -> int:
        """Return what a tool costs in a request, by the model's tokenizer if there is one here.

        A tool that the provider loads on demand costs nothing until then.
        """
        if not isinstance(tool, BaseTool):
            return 0 if tool.get("defer_loading") else count_tokens([tool], model).tokens
        if is_deferred(tool):
            return 0
        known = self._of(tool)
        if model not in known.tokens:
            known.tokens[model] = count_tokens([self.of(tool)], model).tokens
        return known.tokens[model]


def definition_of(tool: BaseTool) -> dict[str, Any]:
    """Return a tool as an OpenAI dict, whole; one whose schema cannot be read without parameters."""
    try:
        return convert_to_openai_tool(tool)
    except Exception as error:
        # If the tool is sent, the client says so. If it stays hidden, nothing is wrong.
        logger.warning("the schema of %r cannot be read, so it is not counted: %r", tool.name, error)
        return {"type": "function", "function": {"name": tool.name, "description": tool.description}}


def _made_visible(tool: BaseTool) -> dict[str, Any]:
    """Return what to change of a tool so that its model reads only what a person can see."""
    seen: dict[str, Any] = {"description": _readable(tool.description)}
    # A schema that came over a wire is a dict. One that is a class came with the user's code.
    if isinstance(tool.args_schema, dict):
        with suppress(RecursionError):  # no client can send such a schema either
            seen["args_schema"] = _visible_annotations(tool.args_schema)
    return {name: value for name, value in seen.items() if value != getattr(tool, name)}


_LONGEST = 20_000
"""Characters of a description that are sent; the longest of 6,000 real ones has a fifth of that."""

_TEXTS = frozenset({"description", "title", "$comment"})
"""What explains a schema and is no part of it: names and values have to reach the tool as they are."""


def _visible_annotations(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose texts have no characters that nobody can see, and an end."""
    return {
        key: _readable(value) if key in _TEXTS and isinstance(value, str) else _visible_parts(value)
        for key, value in schema.items()
    }


def _readable(text: str) -> str:
    return visible(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")


def _visible_parts(value: Any) -> Any:
    if isinstance(value, dict):
        return _visible_annotations(value)
    return [_visible_parts(item) for item in value] if isinstance(value, list) else value


class Bound(Mapping[str, Any]):
    """A request's tools by name, each as it is to be bound. Made when asked for: most tools are hidden.

    Args:
        tools: The tools.
        definitions: Prunes them.
        described: Other descriptions than their own, by name.
    """

    def __init__(
        self, tools: Mapping[str, Any], definitions: Definitions, described: Mapping[str, str]
    ) -> None:
        self._tools = tools
        self._definitions = definitions
        self._described = described

    def __getitem__(self, name: str) -> Any:
        tool = self._tools[name]
        if name in self._described:
            return tool.model_copy(update={"description": self._described[name]})
        return self._definitions.bound(tool)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

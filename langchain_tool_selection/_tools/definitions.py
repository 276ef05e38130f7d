"""What is sent of a tool, and what that costs: its definition, whole or pruned."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from langchain_tool_selection._ground.digest import digest
from langchain_tool_selection._ground.log import logger
from langchain_tool_selection._ground.sentences import first_paragraph, first_sentence
from langchain_tool_selection._ground.untrusted import one_line, visible
from langchain_tool_selection._tools.limits import Limits
from langchain_tool_selection._tools.remembered import made_once, reading_of
from langchain_tool_selection._tools.schema import SchemaPruning, prune_tool
from langchain_tool_selection._tools.shapes import is_deferred, is_harness_tool, openai_tool
from langchain_tool_selection._tools.tokens import count_tokens


class Definitions:
    """Makes the definitions of tools, and what they cost: each once for tools of equal content.

    Args:
        prune: What is left of each schema; `None` leaves them whole.
    """

    def __init__(self, prune: SchemaPruning | None = None) -> None:
        self._prune = prune
        self._checked = False
        self._settings = repr(prune)  # equal for equal settings, and a string keeps its hash

    @property
    def are_pruned(self) -> bool:
        """Whether anything is left out."""
        return self._prune is not None

    def of(self, tool: Any) -> dict[str, Any]:
        """Return a tool as an OpenAI function dict, pruned; a provider's own dict as it is."""
        if not isinstance(tool, BaseTool):
            return dict(tool)
        return made_once(tool, ("definition", self._settings), self._definition)

    def _definition(self, tool: BaseTool) -> dict[str, Any]:
        definition = definition_of(tool)
        if self._prune is None or is_harness_tool(tool):
            return definition
        try:
            return prune_tool(_readable(definition), self._prune)
        except RecursionError:
            logger.warning("the schema of %r is nested too deeply to be pruned", tool.name)
            return definition

    def is_readable(self, tool: Any) -> bool:
        """Whether a client can send a tool. Logs once for each that none can."""
        return not isinstance(tool, BaseTool) or bool(made_once(tool, "whole", _converted))

    def why_not(self, tool: Any, limits: Limits) -> str:
        """Return why a tool cannot be used with a model, as the end of a sentence; empty if it can."""
        return limits.why_not(tool) or ("" if self.is_readable(tool) else "its schema cannot be sent")

    def bound(self, tool: Any) -> Any:
        """Return what to bind for a tool: itself, or a copy without what is pruned, invisible or endless.

        The copy is for the model alone. The tool that runs is the registered one, which takes all that it
        always took. Tools of LangChain's and deepagents' own middleware are sent whole: their descriptions
        say in many paragraphs how to use them, and which subagents there are.
        """
        if not isinstance(tool, BaseTool):
            return tool
        if self._prune is None or is_harness_tool(tool):
            reading = reading_of(tool)
            changes = None if reading is None else reading.visible
            if changes is None:
                changes = _visible_changes(tool)
            if reading is not None:
                reading.visible = changes
            return tool.model_copy(update=changes) if changes else tool
        function = self.of(tool).get("function", {})
        if "parameters" not in function:  # a tool of OpenAI's that takes free text, or a broken one
            return tool
        shown = {"args_schema": function["parameters"], "description": function.get("description", "")}
        return tool.model_copy(update=shown)

    def fingerprint(self, tool: Any) -> str:
        """Return 16 hex digits over what is sent of a tool; empty for `None`."""
        if not isinstance(tool, BaseTool):
            return "" if tool is None else digest(repr(tool))
        return made_once(
            tool,
            ("fingerprint", self._settings),
            lambda tool: digest(json.dumps(self.of(tool), sort_keys=True, default=str)),
        )

    def stub_fingerprint(self, tool: Any) -> str:
        """Return 16 hex digits over what is sent of a tool as a stub; empty for `None`."""
        if not _can_be_stub(tool):
            return self.fingerprint(tool)
        return digest(json.dumps(_stub_definition(tool)))

    def stub_tokens(self, tool: Any, model: str = "") -> int:
        """Return what a tool costs in a request as a stub; see `tokens`."""
        if not _can_be_stub(tool):
            return self.tokens(tool, model)
        return made_once(
            tool, ("stub tokens", model), lambda tool: count_tokens([_stub_definition(tool)], model).tokens
        )

    def warn_about_keep(self, tools: Iterable[Any]) -> None:
        """Say once what `SchemaPruning.keep` names and none of the tools has."""
        if self._prune is None or not self._prune.keep or self._checked:
            return
        self._checked = True
        for name in self._prune.unknown([definition_of(one) for one in tools if isinstance(one, BaseTool)]):
            logger.warning("SchemaPruning.keep names %r, which no tool of this request has", name)

    def tokens(self, tool: Any, model: str = "") -> int:
        """Return what a tool costs in a request, by the model's tokenizer if there is one here.

        A tool that the provider loads on demand costs nothing until then.
        """
        if not isinstance(tool, BaseTool):
            return 0 if tool.get("defer_loading") else count_tokens([tool], model).tokens
        if is_deferred(tool):
            return 0
        return made_once(
            tool, ("tokens", self._settings, model), lambda tool: count_tokens([self.of(tool)], model).tokens
        )


def definition_of(tool: BaseTool) -> dict[str, Any]:
    """Return a tool as an OpenAI dict, whole; one whose schema cannot be read without parameters. Shared."""
    named = {"name": tool.name, "description": tool.description}
    return made_once(tool, "whole", _converted) or {"type": "function", "function": named}


def _converted(tool: BaseTool) -> dict[str, Any]:
    """Return a tool as an OpenAI dict; empty if no client can send it."""
    try:
        definition = convert_to_openai_tool(tool)
        json.dumps(definition)
    except Exception as error:
        why = one_line(f"{type(error).__name__}: {error}", 200)
        logger.warning("%r is left out: its schema cannot be sent to a model: %s", tool.name, why)
        return {}
    return definition


OPEN_SCHEMA: Mapping[str, Any] = MappingProxyType(
    {"type": "object", "properties": {}, "additionalProperties": True}
)
"""A schema that takes any arguments. `properties` is there because OpenAI refuses an object without it."""

_STUB_LINE = 200
"""Characters of a stub's description: 97 of 100 real ones begin with a shorter sentence."""


def stub_in(tools: Mapping[str, Any], name: str) -> Any:
    """Return a copy of a tool for the model alone: its name, the first sentence about it, an open schema.

    A tool that no schema is sent of, such as one that takes free text, is bound as it is.
    """
    tool = tools.whole(name) if isinstance(tools, BoundTools) else tools[name]
    if not _can_be_stub(tool):
        return tools[name]
    return tool.model_copy(update={"args_schema": dict(OPEN_SCHEMA), "description": _stub_line(tool)})


def _can_be_stub(tool: Any) -> bool:
    return isinstance(tool, BaseTool) and (tool.metadata or {}).get("type") != "custom_tool"


def _stub_line(tool: BaseTool) -> str:
    return made_once(
        tool,
        "stub line",
        lambda tool: one_line(first_sentence(first_paragraph(tool.description or "")), _STUB_LINE),
    )


def _stub_definition(tool: BaseTool) -> dict[str, Any]:
    shown = {"name": tool.name, "description": _stub_line(tool), "parameters": dict(OPEN_SCHEMA)}
    return openai_tool(shown)


def _visible_changes(tool: BaseTool) -> dict[str, Any]:
    """Return what to change of a tool so that its model reads only what a person can see."""
    seen = {"description": _readable(tool.description, "description")}
    # A schema that came over a wire is a dict. One that is a class came with the user's code.
    if isinstance(tool.args_schema, dict):
        with suppress(RecursionError):  # no client can send such a schema either
            seen["args_schema"] = _readable(tool.args_schema)
    return {name: value for name, value in seen.items() if value != getattr(tool, name)}


_LONGEST = 20_000
"""Characters of a description that are sent; the longest of 6,000 real ones has a fifth of that."""

_TEXTS = frozenset({"description", "title", "$comment"})
"""What explains a schema and is no part of it: names and values have to reach the tool as they are."""


def _readable(value: Any, key: str = "") -> Any:
    """Return a schema, or what it has under a key, with texts that end and hide no character from people."""
    if isinstance(value, dict):
        return {key: _readable(part, key) for key, part in value.items()}
    if isinstance(value, list):
        return [_readable(part) for part in value]
    if key not in _TEXTS or not isinstance(value, str):
        return value
    return visible(value if len(value) <= _LONGEST else value[: _LONGEST - 1] + "…")


class BoundTools(Mapping[str, Any]):
    """A request's tools by name, each as it is to be bound. Made when asked for: most tools are hidden.

    Args:
        tools: The tools.
        definitions: Prunes them.
        described: What gives another description than a tool's own, by the tool's name.
        longest: How many characters the provider takes of a description; `None` for any number.
    """

    def __init__(
        self,
        tools: Mapping[str, Any],
        definitions: Definitions,
        described: Mapping[str, Callable[[], str]] = MappingProxyType({}),
        *,
        longest: int | None = None,
    ) -> None:
        self._tools = tools
        self._definitions = definitions
        self._described = described
        self._longest = longest
        definitions.warn_about_keep(tools.values())

    def __getitem__(self, name: str) -> Any:
        tool = self._tools[name]
        if name in self._described:
            tool = tool.model_copy(update={"description": self._described[name]()})
        else:
            tool = self._definitions.bound(tool)
        if self._longest and isinstance(tool, BaseTool) and len(tool.description) > self._longest:
            tool = tool.model_copy(update={"description": f"{tool.description[: self._longest - 1]}…"})
        return tool

    def whole(self, name: str) -> Any:
        """Return a tool as it came. To prune its schema may take milliseconds."""
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

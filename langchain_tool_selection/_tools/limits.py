"""What each provider takes of a tool, and how many: asked wherever a tool is sent or judged.

A tool that breaks a rule is not refused alone: the provider refuses the whole request that has it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from langchain_tool_selection._tools.shapes import description_of, name_of, schema_of


@dataclass(frozen=True)
class Limits:
    """What a provider takes.

    Attributes:
        provider: The provider, as people write it.
        names: Matches the whole name of a tool that it takes.
        naming: The same in words.
        most: How many tools a request may have; `None` if no number is documented.
        description: How many characters a description may have; `None` likewise. A longer one is cut.
        source: Where this is documented.
        read: The day, as `YYYY-MM-DD`.
    """

    provider: str
    names: re.Pattern[str]
    naming: str
    most: int | None = None
    description: int | None = None
    source: str = ""
    read: str = "2026-12-01"

    def why_not(self, tool: Any) -> str:
        """Return why the provider does not take a tool, as the end of a sentence; empty if it does.

        Args:
            tool: A tool of any shape.
        """
        name = name_of(tool)
        if name is not None and not self.names.fullmatch(name):
            return f"{self.provider} takes names of {self.naming} only"
        if keys := root_keys(tool):
            return f"{self.provider} takes no {keys[0]} at the root of a schema"
        return ""


ROOT_KEYS = ("oneOf", "anyOf", "allOf")
"""What no provider that documents it takes at the root of a tool's schema."""

_OPENAI = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LETTERS = "1 to {} ASCII letters, digits, '_' or '-'"

LIMITS = {
    "openai": Limits(
        "OpenAI",
        _OPENAI,
        _LETTERS.format(64),
        most=128,
        source="developers.openai.com/api/reference, and the 400s quoted in zed issue 32946",
    ),
    "azure": Limits(
        "Azure OpenAI",
        _OPENAI,
        _LETTERS.format(64),
        most=128,
        description=1024,
        source="learn.microsoft.com/azure/ai-foundry/openai/how-to/function-calling",
    ),
    "anthropic": Limits(
        "Anthropic",
        re.compile(r"[a-zA-Z0-9_-]{1,128}"),
        _LETTERS.format(128),
        source="platform.claude.com/docs/en/agents-and-tools/tool-use",
    ),
    "bedrock": Limits(
        "Bedrock",
        _OPENAI,
        _LETTERS.format(64),
        source="docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolSpecification.html",
    ),
    "gemini": Limits(
        "Gemini",
        re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"),
        "1 to 64 ASCII letters, digits, '_', '-', '.' or ':', a letter or '_' first",
        source="ai.google.dev/api/caching#FunctionDeclaration",
    ),
}
"""The rules, by provider."""

_NAMES = frozenset(limits.names for limits in LIMITS.values())

FEWEST = min(limits.most for limits in LIMITS.values() if limits.most)
"""Tools that every provider takes in one request."""

_SHORT = min(limits.description for limits in LIMITS.values() if limits.description)


NO_LIMITS = Limits("any", re.compile(".*", re.DOTALL), "any kind")
"""For a model of whose provider nothing is known."""


def limits_of(key: str) -> Limits:
    """Return the rules with a key of `LIMITS`; `NO_LIMITS` for any other."""
    return LIMITS.get(key, NO_LIMITS)


def is_portable_name(name: object) -> bool:
    """Whether every provider takes a tool's name."""
    return isinstance(name, str) and all(names.fullmatch(name) for names in _NAMES)


def is_plain(tool: Any) -> bool:
    """Whether every provider takes a tool, so that nobody has to ask which provider it is."""
    name = name_of(tool)
    has_plain_name = name is None or is_portable_name(name)
    return has_plain_name and len(description_of(tool)) <= _SHORT and not root_keys(tool)


def root_keys(tool: Any) -> list[str]:
    """Return what stands at the root of a tool's JSON schema that providers do not take."""
    schema = schema_of(tool)
    if isinstance(schema, type) and _is_special(schema):
        with suppress(Exception):  # whether it can be read at all is another question
            schema = schema.model_json_schema()  # type: ignore[attr-defined]  # a pydantic class has it
    return [key for key in ROOT_KEYS if key in schema] if isinstance(schema, dict) else []


def _is_special(schema: type) -> bool:
    # To make the schema of a pydantic class takes milliseconds. Only such a one can have another root.
    config = getattr(schema, "model_config", None) or {}
    return bool(getattr(schema, "__pydantic_root_model__", False) or config.get("json_schema_extra"))

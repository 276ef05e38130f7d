"""What a transport is: one provider's form for adding tools to a conversation that has begun.

Some providers let tools join behind a message, so that the tools array keeps its bytes and all that was
cached stays readable. Each has a form of its own, and only some clients pass it on. A transport knows which
models can carry the form, which tools the provider takes in it, and how it is written. Where additions stand
and what belongs to a thread is not its business: `_exposure.reveal` decides that for all transports.

To add one: a class in a file of its own here, and a line in `transports.registry`.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from langchain_core.messages import SystemMessage, ToolMessage
from langchain_core.tools import BaseTool

from langchain_tool_selection._ground.models import model_name, plain_name

OURS = {"lc_source": "tool_selection"}
"""Marks messages that are in a request only, as LangChain marks summaries."""


class Place(NamedTuple):
    """Where tools are added.

    Attributes:
        anchor: Index of the message that brought the tools up.
        behind: Index of the message that the addition stands behind: the anchor or a later one.
        tools: The tools, in the order they were added; never empty.
        definitions: Each as the client sends it in the tools array.
    """

    anchor: int
    behind: int
    tools: Sequence[BaseTool]
    definitions: Sequence[dict[str, Any]] = ()


@dataclass(frozen=True)
class Transport(ABC):
    """One provider's form for adding tools to a conversation.

    By default that is a system message behind the one that brought the tools up, with a block for each tool
    that holds the whole definition.

    Equal input must give equal bytes, in any process: a provider matches what it has cached exactly. A
    transport has no state, and never changes a message, a tool or a list that it is given; it returns copies.

    Attributes:
        name: What the form is called at its provider. No two transports have one name.
        lives_in_searches: Whether additions stand in the answers of searches. Then the agent must have a
            search tool; and to a model that thinks nothing can be added but what its newest searches have
            found, because the thought ahead of a call cannot be made up.
    """

    name: ClassVar[str]
    lives_in_searches: ClassVar[bool] = False

    @abstractmethod
    def can_carry(self, model: Any, name: str) -> bool:
        """Whether the provider takes this form from this model, and the model's client passes it on.

        Called for each model call, so it must cost microseconds, and must not import a provider's package.

        Args:
            model: The chat model object, without arguments bound to it. It may be anything.
            name: Its plain name, as `plain_name` has it; empty if unknown.
        """

    def can_send(self, model: Any) -> bool:
        """Whether the model's client passes this form on, whatever is known of the model behind it.

        `tool-selection verify` tries the form where it does. By default, where `can_carry` says so.

        Args:
            model: As in `can_carry`.
        """
        return self.can_carry(model, plain_name(model_name(model).name))

    def block(self, definition: dict[str, Any]) -> dict[str, Any]:
        """Return the block that brings a tool along, where each has one.

        Args:
            definition: The tool as the client sends it in the tools array.
        """
        raise NotImplementedError

    def deferred(self, tools: Iterable[BaseTool]) -> Sequence[BaseTool]:
        """Return the copies of `tools` that the tools array must hold so that they can be added later.

        They stand ahead of the others. Empty where an addition brings the whole definition along.

        Args:
            tools: All tools of the request that are not in the array, in order.
        """
        return ()

    def write(self, messages: Sequence[Any], places: Sequence[Place], search_tool: str | None) -> list[Any]:
        """Return the messages with the additions in them.

        Args:
            messages: The conversation.
            places: The additions, in the order they were made, with what is added.
            search_tool: The search tool's name; `None` if the agent has none.
        """
        written, behind = list(messages), dict[int, list[Any]]()
        for place in places:
            behind.setdefault(place.behind, []).extend(self.additions(written, place, search_tool))
        return [one for index, message in enumerate(written) for one in (message, *behind.get(index, ()))]

    def additions(self, messages: list[Any], place: Place, search_tool: str | None) -> list[Any]:
        """Return the messages that stand behind a place. Whatever of `messages` is rewritten is replaced."""
        blocks: list[str | dict[Any, Any]] = [self.block(definition) for definition in place.definitions]
        return [SystemMessage(blocks, additional_kwargs={**OURS})]

    def is_rewritten(self, message: Any) -> bool:
        """Whether this is a message of the conversation itself into which `write` has put an addition."""
        return False

    def without_others(self, message: Any, names: Collection[str | None]) -> Any:
        """Return a rewritten message without the additions of tools that are not among `names`."""
        return message


# -- what transports share --------------------------------------------------------------------------------


def is_instance_of(model: Any, module: str, name: str) -> bool:
    """Whether the model is of a class of a package that need not be installed.

    The package is not imported: there is no instance of a class whose module is not loaded.
    """
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(model, kind)


def is_openai_client(model: Any) -> bool:
    """Whether the model is of OpenAI's client, or of one that is built on it."""
    return is_instance_of(model, "langchain_openai.chat_models.base", "BaseChatOpenAI")


def adds_tools(model: Any) -> bool:
    """Whether the model's profile says that tools can be added in mid-conversation."""
    return bool((getattr(model, "profile", None) or {}).get("mid_conversation_tools"))


def answers_up_to(messages: Sequence[Any], last: int) -> Iterator[int]:
    """Yield the indexes of the tool results in a row that end with the message `last`, the last one first."""
    while last >= 0 and isinstance(messages[last], ToolMessage):
        yield last
        last -= 1

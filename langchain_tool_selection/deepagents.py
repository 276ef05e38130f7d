"""`with_tool_selection`: the arguments of `create_deep_agent`, with selection in the agent and its subagents.

A deep agent is several agents, and its harness works on their tools behind the caller's middleware: it takes
out what the model's profile excludes, and its skills say which tools they need. So every agent gets the
selection, and what the harness does to the tools is known ahead of it: nothing that is excluded is found, and
nothing that a skill counts on is lost.

An extra: `pip install 'langchain-tool-selection[deepagents]'`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple, NotRequired, TypeAlias, TypeGuard, cast

from langchain.agents.middleware import types
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command

from langchain_tool_selection._access.boundary import Question
from langchain_tool_selection._exposure.registry import was_stub
from langchain_tool_selection._ground.log import logger
from langchain_tool_selection._run.state import ToolSelectionState
from langchain_tool_selection._selection.pins import PINS, pins_in
from langchain_tool_selection._selection.record import THREAD, ThreadRecord
from langchain_tool_selection._tools.definitions import stub_in
from langchain_tool_selection._tools.shapes import is_deferred, is_harness_tool, name_of
from langchain_tool_selection.middleware import ToolSelectionMiddleware

try:
    from deepagents import GeneralPurposeSubagentProfile, HarnessProfile, create_deep_agent

    # What begins with an underscore is not public, but there is no other way to learn whether there is a
    # general-purpose subagent, what it is told, and which tools are excluded. A test compares it with the one
    # that the harness makes.
    from deepagents._models import resolve_model
    from deepagents.backends import StateBackend
    from deepagents.backends.utils import validate_path
    from deepagents.middleware import subagents as harness
    from deepagents.middleware.subagents import GENERAL_PURPOSE_SUBAGENT
    from deepagents.middleware.summarization import SummarizationMiddleware, create_summarization_middleware
    from deepagents.profiles.harness.harness_profiles import _harness_profile_for_model
except ImportError as error:
    _msg = (
        "langchain_tool_selection.deepagents needs the package deepagents, 0.7; "
        "install it with: pip install 'langchain-tool-selection[deepagents]'"
    )
    raise type(error)(_msg) from error  # that there is none, or that it is another version

__all__ = ["with_tool_selection"]

Request: TypeAlias = types.ModelRequest[Any]
Answer: TypeAlias = types.ModelResponse[Any]
Response: TypeAlias = types.ModelResponse[Any] | types.ExtendedModelResponse[Any]
Handler: TypeAlias = Callable[[Request], Answer]
AsyncHandler: TypeAlias = Callable[[Request], Awaitable[Answer]]
ToolRequest: TypeAlias = types.ToolCallRequest
ToolAnswer: TypeAlias = ToolMessage | Command[Any]
ToolHandler: TypeAlias = Callable[[ToolRequest], ToolAnswer]
AsyncToolHandler: TypeAlias = Callable[[ToolRequest], Awaitable[ToolAnswer]]
Middleware: TypeAlias = Sequence[types.AgentMiddleware[Any, Any, Any]]


_SLOTS = frozenset(
    """
    FilesystemMiddleware SummarizationMiddleware PatchToolCallsMiddleware SkillsMiddleware
    AnthropicPromptCachingMiddleware BedrockPromptCachingMiddleware FireworksPromptCachingMiddleware
    """.split()
)
"""What the harness gives to every subagent, by name. Of the caller's middleware, its own general-purpose
subagent takes over what has one of these names, and nothing else."""

_FORK_PREAMBLE: str | None = getattr(harness, "_FORK_TASK_PREAMBLE", None)
"""What a forked subagent's task begins with, in the user's name; `None` where there are no forks (0.7.0)."""

_FORKED = "tool_selection_forked"
"""Where a fork finds what its agent remembers."""

_INCLUDE = "include_tools"
"""Where the frontmatter of a skill lists the tools that it needs, in its `metadata`."""

_HARNESS_MARKS = ("deepagents_notification", "read_file_media_result")
"""Marks of messages in the user's name that the harness wrote, beside LangChain's own mark: the end of a
background task, the frames of a video."""


def with_tool_selection(
    model: str | BaseChatModel,
    tools: Sequence[Any] | None = None,
    *,
    middleware: Middleware = (),
    subagents: Sequence[Mapping[str, Any]] | None = None,
    **arguments: Any,
) -> dict[str, Any]:
    """Return the arguments of `create_deep_agent`, with selection in the agent and in its subagents.

    It takes what `create_deep_agent` takes, and gives it back with two arguments changed:

    - `middleware` has a `ToolSelectionMiddleware()` as its last, unless it had one.
    - `subagents` have the same one, each with pins of its own. A subagent with `tools` of its own selects
      among those, one with a `ToolSelectionMiddleware` of its own keeps it, and a fork inherits the agent's.
      The `general-purpose` subagent, which the harness adds by itself, is declared as the harness would make
      it, unless one of that name was passed or the model's profile does without. Compiled and async subagents
      come as they are: give the agent behind them a middleware where it is built.

    Tools that the profile of a model excludes are not found, tools that a skill names are shown once it was
    read, and what is hidden does not count against the length of the conversation. What is passed is not
    changed.

    Args:
        model: The model or its name. Which subagents there are depends on its profile.
        tools: As `create_deep_agent` takes them.
        middleware: Likewise. A `ToolSelectionMiddleware(...)` in it has the settings, and its place; whatever
            filters or adds tools belongs ahead of it.
        subagents: Likewise.
        **arguments: All else that `create_deep_agent` takes.

    Raises:
        TypeError: `create_deep_agent` has no such argument, or one is of the wrong type.
        ValueError: there are two `ToolSelectionMiddleware` for one agent.

    Example:
        >>> agent = create_deep_agent(**with_tool_selection(model, tools, subagents=[researcher]))
    """
    _check(model, middleware, subagents, arguments)
    agent, backend = _Model.of(model), arguments.get("backend")
    selection = _selection_in(middleware) or ToolSelectionMiddleware()
    specs = [*(subagents or ())]
    if not any(spec["name"] == GENERAL_PURPOSE_SUBAGENT["name"] and "graph_id" not in spec for spec in specs):
        specs[:0] = _general_purpose(model, agent.profile, middleware, arguments.get("skills"))
    forks = [spec["name"] for spec in specs if _is_fork(spec)]

    def selecting(spec: Mapping[str, Any]) -> dict[str, Any]:
        if "runnable" in spec or "graph_id" in spec:
            return dict(spec)
        own = _Model.of(spec.get("model", agent.client))
        selects = _selection_in(spec.get("middleware") or ()) or selection
        ahead = _AheadOfSelection(selects, own.profile.excluded_tools, is_fork=_is_fork(spec))
        # A fork inherits the selection. What depends on its model takes the place of what it inherits.
        added = [ahead] if _is_fork(spec) else [ahead, selection]
        return {**spec, "middleware": _stack(spec.get("middleware") or (), added, own, backend)}

    ahead = _AheadOfSelection(selection, agent.profile.excluded_tools, forks=forks)
    return {
        **arguments,
        "model": model,
        "tools": tools,
        "middleware": _stack(middleware, [ahead, selection], agent, backend),
        "subagents": [selecting(spec) for spec in specs],
    }


def _is_fork(spec: Mapping[str, Any]) -> bool:
    return "runnable" not in spec and spec.get("mode") == "fork"


class _Model(NamedTuple):
    """A chat model, and the harness's profile of it, which goes by the name that it was asked for if any."""

    client: BaseChatModel
    profile: HarnessProfile

    @classmethod
    def of(cls, model: str | BaseChatModel) -> _Model:
        client = resolve_model(model)
        return cls(client, _harness_profile_for_model(client, model if isinstance(model, str) else None))


def _stack(
    middleware: Middleware, added: Middleware, model: _Model, backend: Any
) -> list[types.AgentMiddleware[Any, Any, Any]]:
    """Return the middleware of one agent with what is `added`; of it only the first if it selects already."""
    stack = [*middleware]
    if (own := _selection_in(stack)) is None:
        stack += added
    else:
        stack.insert(stack.index(own), added[0])
    summarization = {SummarizationMiddleware, _Summarization.serialized_name}
    if model.profile.excluded_middleware.isdisjoint(summarization):
        if not any(one.name == _Summarization.serialized_name for one in stack):
            # As the harness makes its own, whose place it takes by its name.
            stack.insert(0, create_summarization_middleware(model.client, backend or StateBackend()))
        stack = [_Summarization.like(one) if type(one) is SummarizationMiddleware else one for one in stack]
    return stack


def _selection_in(middleware: Sequence[Any]) -> ToolSelectionMiddleware | None:
    return next((one for one in middleware if isinstance(one, ToolSelectionMiddleware)), None)


def _general_purpose(
    model: str | BaseChatModel, profile: HarnessProfile, middleware: Middleware, skills: list[str] | None
) -> Iterator[dict[str, Any]]:
    """Yield the general-purpose subagent that the harness would make, if it would make one."""
    edits = profile.general_purpose_subagent or GeneralPurposeSubagentProfile()
    if edits.enabled is False:
        return
    slots = _SLOTS.union(one.name for one in profile.materialize_extra_middleware())
    if lost := _lost_by_declaring(profile, edits, slots):
        logger.warning(
            "the general-purpose subagent is sent all tools, because the profile of its model has %s; pass a "
            "subagent named 'general-purpose' to have its tools selected",
            lost,
        )
        return
    # Permissions, approvals and tools are the agent's in any subagent that does not have its own.
    own = {"model": model, "middleware": [one for one in middleware if one.name in slots]}
    edited = {"description": edits.description, "system_prompt": edits.system_prompt, "skills": skills}
    given = {key: value for key, value in edited.items() if value is not None}
    yield {**GENERAL_PURPOSE_SUBAGENT, **own, **given}


def _lost_by_declaring(
    profile: HarnessProfile, edits: GeneralPurposeSubagentProfile, slots: Collection[str]
) -> str:
    """Return what of a profile the harness does for its own subagent and not for one that is declared."""
    if edits.system_prompt is not None and profile.base_system_prompt is not None:
        return "a prompt for this subagent beside a base_system_prompt"
    for entry in profile.excluded_middleware:
        name = entry if isinstance(entry, str) else getattr(entry, "serialized_name", entry.__name__)
        if name not in slots:
            return f"excluded_middleware that only the agent has, {name}"
    return ""


# -- what is wrong with the arguments ------------------------------------------------------------------------


def _check(model: Any, middleware: Any, subagents: Any, arguments: Mapping[str, Any]) -> None:
    if not isinstance(model, str | BaseChatModel):
        raise TypeError(
            f"model must be a chat model or its name, because subagents depend on it, got {model!r}"
        )
    known = inspect.signature(create_deep_agent).parameters
    if unknown := next((name for name in arguments if name not in known), None):
        go_elsewhere = "Settings of the selection go into middleware=[ToolSelectionMiddleware(...)]"
        raise TypeError(
            f"create_deep_agent has no argument {unknown!r}; it takes {', '.join(known)}. {go_elsewhere}"
        )
    _check_middleware("middleware", middleware)
    for index, spec in enumerate(subagents or ()):
        if not isinstance(spec, Mapping) or not isinstance(spec.get("name"), str):
            raise TypeError(f"subagents[{index}] must be a dict with a 'name', got {spec!r}")
        _check_middleware(f"the middleware of subagent {spec['name']!r}", spec.get("middleware") or ())


def _check_middleware(where: str, middleware: Any) -> None:
    for one in middleware:
        if not isinstance(one, types.AgentMiddleware):
            made = f"; make one of it: {one.__name__}(...)" if isinstance(one, type) else ""
            raise TypeError(f"{where} takes instances of AgentMiddleware, got {one!r}{made}")
    if sum(isinstance(one, ToolSelectionMiddleware) for one in middleware) > 1:
        raise ValueError(
            f"{where} has more than one ToolSelectionMiddleware; leave one, for one agent can have one"
        )


# -- what the harness does to the tools --------------------------------------------------------------------


class _ForkState(ToolSelectionState):
    """The state of a fork: a private key is no input, so what the agent remembers comes under another one."""

    tool_selection_forked: NotRequired[Annotated[dict[str, Any], types.OmitFromOutput]]


class _AheadOfSelection(types.AgentMiddleware[ToolSelectionState, Any, Any]):
    """Does to a request what the harness does behind the selection, so that the selection goes by it.

    Args:
        selection: The selection, whose rule says what a skill may bring.
        excluded: Names of tools that the harness takes out of each request.
        forks: Names of the agent's forks, which go on with what it has been shown and has found.
        is_fork: Whether it is in one of them.
    """

    trace_policy = types.TracePolicy(process_inputs=types.omit_payload)

    def __init__(
        self,
        selection: ToolSelectionMiddleware,
        excluded: Collection[str],
        *,
        forks: Collection[str] = (),
        is_fork: bool = False,
    ) -> None:
        super().__init__()
        self._rules = selection._rules
        self.state_schema = _ForkState if is_fork else ToolSelectionState
        self._excluded = excluded
        self._forks = forks

    def wrap_model_call(self, request: Request, handler: Handler) -> Response:
        permitted = self._rules.boundary(_pinnable(request))
        request, pins = self._prepared(request, permitted.tools)
        return _pinning(pins, handler(request))

    async def awrap_model_call(self, request: Request, handler: AsyncHandler) -> Response:
        permitted = await self._rules.aboundary(_pinnable(request))
        request, pins = self._prepared(request, permitted.tools)
        return _pinning(pins, await handler(request))

    def wrap_tool_call(self, request: ToolRequest, handler: ToolHandler) -> ToolAnswer:
        return handler(self._handing_on(request))

    async def awrap_tool_call(self, request: ToolRequest, handler: AsyncToolHandler) -> ToolAnswer:
        return await handler(self._handing_on(request))

    def _prepared(self, request: Request, pinnable: Sequence[Any]) -> tuple[Request, list[str]]:
        """Return the request for the selection, and what of the `pinnable` is to be pinned from now on."""
        tools = request.tools
        if self._excluded:
            tools = [tool for tool in tools if name_of(tool) not in self._excluded]
        state: dict[str, Any] = {**request.state}
        state["messages"] = [_as_asked(message) for message in state.get("messages") or ()]
        forked = state.get(_FORKED, {})
        due = pins_in(forked.get(PINS))
        if skills := state.get("skills_metadata"):
            hideable = {name_of(tool) for tool in pinnable} - {*self._excluded}
            due += (name for name in _named_by(skills, state["messages"]) if name in hideable)
            # The harness would bind these, too, and change the tools array for it.
            state["skills_metadata"] = [_without(hideable, skill) for skill in skills]
        pins = pins_in(state.get(PINS))
        new = [name for name in dict.fromkeys(due) if name not in pins]
        state[PINS] = [*pins, *new]
        state[THREAD] = state.get(THREAD) or forked.get(THREAD)
        return request.override(tools=tools, state=cast("ToolSelectionState", state)), new

    def _handing_on(self, request: ToolRequest) -> ToolRequest:
        """Return a call of a fork with what it is to go on with; any other call as it is."""
        if request.tool_call["args"].get("subagent_type") not in self._forks:
            return request
        state = request.runtime.state
        remembered = {key: state[key] for key in (PINS, THREAD) if key in state}
        return replace(request, runtime=replace(request.runtime, state={**state, _FORKED: remembered}))


def _pinnable(request: Request) -> Question:
    """Ask about the tools that a skill may bring back if they are hidden, where the agent has skills."""
    tools = request.tools if request.state.get("skills_metadata") else ()
    pinnable = [tool for tool in tools if _is_ours_to_hide(tool) and not is_deferred(tool)]
    return Question(pinnable, request.runtime, request.state)


def _is_ours_to_hide(tool: Any) -> TypeGuard[BaseTool]:
    return isinstance(tool, BaseTool) and not is_harness_tool(tool)


class _Summarization(SummarizationMiddleware):
    """The harness's summarization, which counts only those tools that a request is going to have.

    It stands ahead of the selection, where it would count them all, and find with a thousand tools at each
    model call that the conversation has to be compacted.
    """

    @property
    def name(self) -> str:
        return self.serialized_name

    @classmethod
    def like(cls, other: SummarizationMiddleware) -> _Summarization:
        """Return a copy of another one."""
        copied = cls.__new__(cls)
        vars(copied).update(vars(other))
        return copied

    def wrap_model_call(self, request: Request, handler: Handler) -> Response:
        def with_all(few: Request) -> Answer:
            return handler(few.override(tools=request.tools))

        return super().wrap_model_call(_with_few_tools(request), with_all)

    async def awrap_model_call(self, request: Request, handler: AsyncHandler) -> Response:
        async def with_all(few: Request) -> Answer:
            return await handler(few.override(tools=request.tools))

        return await super().awrap_model_call(_with_few_tools(request), with_all)


def _with_few_tools(request: Request) -> Request:
    """Return the request with what is never hidden, and what the last one was shown beside.

    What the first call of a thread is shown is not known yet. By default it takes no more than 15 % of the
    model's input limit (`token_budget`), and so much the harness leaves free.
    """
    record = ThreadRecord.from_state(request.state)
    few = [tool for tool in request.tools if not _is_ours_to_hide(tool) or tool.name in record.shown]
    return request.override(tools=[_as_shown(tool, record) for tool in few])


def _as_shown(tool: Any, record: ThreadRecord) -> Any:
    is_stub = _is_ours_to_hide(tool) and was_stub(record, tool.name)
    return stub_in({tool.name: tool}, tool.name) if is_stub else tool


def _pinning(pins: Sequence[str], response: Answer) -> Response:
    return types.ExtendedModelResponse(response, Command(update={PINS: list(pins)})) if pins else response


def _as_asked(message: Any) -> Any:
    """Return a message as the selection is to read it: the harness's words are none of the user's."""
    if not isinstance(message, HumanMessage):
        return message
    if any(map(message.additional_kwargs.get, _HARNESS_MARKS)):
        marked = {**message.additional_kwargs, "lc_source": "deepagents"}
        return message.model_copy(update={"additional_kwargs": marked})
    if _FORK_PREAMBLE and isinstance(message.content, str) and message.content.startswith(_FORK_PREAMBLE):
        return message.model_copy(update={"content": message.content.removeprefix(_FORK_PREAMBLE)})
    return message


def _named_by(skills: Sequence[Mapping[str, Any]], messages: Sequence[Any]) -> Iterator[str]:
    """Yield the tools that those of the skills name which the model has read, or was given."""
    by_path = {_normal(skill["path"]): skill for skill in skills}
    asked: dict[str | None, Any] = {}
    for message in messages:
        path = None
        if isinstance(message, AIMessage):
            reads = (call for call in message.tool_calls if call["name"] == "read_file")
            asked.update((call["id"], call["args"].get("file_path")) for call in reads)
        elif isinstance(message, ToolMessage) and message.status != "error":
            path = asked.get(message.tool_call_id)
        elif message.additional_kwargs.get("lc_source") == "pinned_skill":
            path = (message.additional_kwargs.get("skill") or {}).get("path")
        if path is not None and (skill := by_path.get(_normal(path))) is not None:
            yield from _included(skill)
            yield from skill.get("allowed_tools") or ()


def _included(skill: Mapping[str, Any]) -> list[str]:
    return str((skill.get("metadata") or {}).get(_INCLUDE) or "").split()


def _without(names: Collection[str | None], skill: Mapping[str, Any]) -> dict[str, Any]:
    """Return a skill that does not include these tools."""
    left = " ".join(name for name in _included(skill) if name not in names)
    return {**skill, "metadata": {**(skill.get("metadata") or {}), _INCLUDE: left}}


def _normal(path: Any) -> str:
    """Return a path as the harness's `read_file` reads it; what it does not read at all is no skill's."""
    try:
        return validate_path(path) if isinstance(path, str) else ""
    except ValueError:
        return ""

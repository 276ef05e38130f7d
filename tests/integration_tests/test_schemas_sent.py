"""Pruned schemas: what a model is sent of a tool, and that the tool that runs is the whole one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.tools import StructuredTool, Tool
from langchain_core.tools import tool as as_tool
from langchain_openai import custom_tool
from pydantic import BaseModel

from langchain_tool_selection import Discovery, SchemaPruning, ToolSelectionMiddleware
from langchain_tool_selection.testing import ScriptedChatModel, call, schema_of

from .agents import (
    DISCOVER,
    Rewriting,
    answers,
    build,
    discover,
    make_tool,
    office,
    run,
    thread,
    user,
)
from .exposures import (
    CALL,
    CLIENTS,
    StrictLog,
    additional_tools,
    agent_on,
    array,
    chat_completions,
    converse,
    say,
    searching,
    tool_addition,
    tool_reference,
)
from .pruned import KEEP, PRUNED, definitions, deploy, schema, served, tools

pytestmark = pytest.mark.slow


def named(value: Any) -> str:
    return getattr(value, "__name__", value)


PATHS = {tool_addition: "sync", tool_reference: "async", additional_tools: "async", chat_completions: "sync"}
"""Each client on one of the two paths, which differ in who awaits only."""

WAYS = [
    (chat_completions, "per_turn"),
    (chat_completions, "grow"),
    (tool_addition, "append"),
    (tool_reference, "append"),
    (additional_tools, "append"),
]

over_ways = pytest.mark.parametrize(
    ("client", "exposure", "path"), [(client, name, PATHS[client]) for client, name in WAYS], ids=named
)
over_clients = pytest.mark.parametrize(("client", "path"), [(c, PATHS[c]) for c in CLIENTS], ids=named)


@pytest.fixture
def log():
    """A log that refuses what providers refuse."""
    log = StrictLog()
    yield log
    assert not log.refused


# -- what is sent ----------------------------------------------------------------------------------------


@over_ways
@pytest.mark.parametrize(("tool", "arguments"), [(deploy, {"replicas": 3}), (served, {"owner": "me"})])
async def test_a_tool_is_sent_pruned_and_runs_whole(client, exposure, tool, arguments, path, log):
    name = tool().name
    script = [
        discover(f"{name} deploy a service"),
        call(name, service="api", **arguments),
        "Deployed.",
        "Sent.",
    ]
    agent = agent_on(
        client,
        script,
        log,
        exposure,
        tools=tools(),
        prune=SchemaPruning(),
        discovery=Discovery(max_results=1),
    )
    result = await run(path, agent, user("send an email"), thread())
    await say(path, agent, "send another")
    (said,) = answers(result, name)
    assert str(arguments["replicas"] if tool is deploy else arguments["owner"]) in said
    for payload in log.payloads[1:]:
        assert schema(payload, name) == PRUNED
        assert "probes" not in json.dumps(payload)
    assert len({json.dumps(definitions(payload, name)) for payload in log.payloads[1:]}) == 1


@over_ways
async def test_a_tool_that_is_shown_by_rank_is_pruned_too(client, exposure, path, log):
    agent = agent_on(client, [], log, exposure, tools=tools()[:-1], prune=SchemaPruning())
    await say(path, agent, "deploy a service to production")
    (payload,) = log.payloads
    (definition,) = definitions(payload, "deploy")
    assert "deploy" in array(payload)
    assert schema(payload, "deploy") == PRUNED
    assert definition["description"] == "Deploy a service to production."


@over_clients
async def test_a_small_catalogue_is_pruned_as_well(client, path, log):
    script = [call("deploy", service="api", region="us"), "Done."]
    agent = agent_on(client, script, log, tools=tools(), prune=SchemaPruning(), top_k=99)
    result = await run(path, agent, user("deploy"), thread())
    assert answers(result, "deploy") == ["api in us, 1 of it"]
    assert all(array(payload) == [tool.name for tool in tools()] for payload in log.payloads)
    assert schema(log.payloads[0], "deploy") == schema(log.payloads[1], "deploy_remotely") == PRUNED


async def test_without_the_option_schemas_are_whole(path, log):
    agent = agent_on(chat_completions, [], log, "per_turn", tools=tools()[:-1])
    await say(path, agent, "deploy a service to production")
    assert list(schema(log.payloads[0], "deploy")["properties"]) == [*deploy().args]


async def test_what_keep_names_stays(path):
    agent, model = build(["Done."], tools=tools()[:-1], prune=KEEP)
    await run(path, agent, user("deploy a service"))
    assert list(schema([*model.calls[0].schemas], "deploy")["properties"]) == [*deploy().args]
    assert "title" not in json.dumps(model.calls[0].schemas)


def pods() -> StructuredTool:
    def list_pods(namespace: str = "", limit: int = 0, label: str = "", watch: bool = False) -> str:
        return f"{limit} pods"

    return StructuredTool.from_function(list_pods, description="List pods.\n\nAll of them.")


async def test_a_tool_that_requires_nothing_names_what_it_takes_in_its_description(path):
    script = [call("list_pods", limit=3), "Done."]
    agent, model = build(script, tools=[*office(), pods()], prune=SchemaPruning())
    result = await run(path, agent, user("list the pods"))
    (definition,) = definitions([*model.calls[0].schemas], "list_pods")
    assert definition["description"] == "List pods.\nAlso takes: namespace, limit, label, watch."
    assert answers(result, "list_pods") == ["3 pods"]


async def test_the_tool_that_runs_is_the_registered_object(path):
    ran: list[Any] = []

    class Noting(AgentMiddleware):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            ran.append(request.tool)
            return handler(request)

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            ran.append(request.tool)
            return await handler(request)

    script = [call("deploy", service="api"), "Done."]
    agent, _ = build(script, tools=tools()[:-1], prune=SchemaPruning(), inner=[Noting()])
    await run(path, agent, user("deploy a service"))
    assert len(ran) == 1
    assert ran[0] is deploy()


@pytest.mark.parametrize("mode", ["messages", "values"])
async def test_streaming_sends_the_same(mode, path, log):
    for how in ("custom", mode):
        agent = agent_on(
            chat_completions, [], log, "per_turn", tools=tools()[:-1], prune=SchemaPruning(), top_k=1
        )
        await say(path, agent, "deploy a service", mode=how)
    assert [schema(payload, "deploy") for payload in log.payloads] == [PRUNED] * 2


# -- the whole schema on demand --------------------------------------------------------------------------


@pytest.mark.parametrize("request_text", ["send an email", "deploy a service to production"])
async def test_a_search_by_name_shows_the_whole_schema(request_text, path, log):
    agent = agent_on(
        chat_completions,
        [discover(names=["deploy"]), "Done."],
        log,
        "per_turn",
        tools=tools(),
        prune=SchemaPruning(),
    )
    result = await run(path, agent, user(request_text), thread())
    (answer,) = answers(result)
    whole = json.loads(answer.partition("All that `deploy` takes: ")[2])
    assert whole == schema_of(deploy())["function"]["parameters"]
    assert schema(log.payloads[-1], "deploy") == PRUNED


@pytest.mark.parametrize(
    ("settings", "arguments"), [({}, {"names": ["deploy"]}), ({"prune": SchemaPruning()}, {})]
)
async def test_otherwise_a_search_does_not(settings, arguments, path):
    script = [discover("" if arguments else "deploy a service", **arguments), "Done."]
    agent, _ = build(script, tools=tools(), **settings)
    result = await run(path, agent, user("send an email"))
    assert "deploy" in answers(result)[0]
    assert "replicas" not in answers(result)[0]


# -- behind a proxy --------------------------------------------------------------------------------------


def through(name: str, **arguments: Any) -> Any:
    return call(CALL, name=name, arguments=arguments)


@over_clients
async def test_behind_a_proxy_the_search_shows_the_pruned_schema_and_the_call_is_checked_by_the_original(
    client, path, log
):
    script = [
        discover("deploy a service"),
        through("deploy", service="api", replicas=3),
        through("deploy_remotely", service="api", replicas=3),
        "Done.",
    ]
    agent = agent_on(client, script, log, "proxy", tools=tools(), prune=SchemaPruning())
    result = await run(path, agent, user("send an email"), thread())
    (found,) = answers(result)
    shown = [json.loads(line.partition("parameters: ")[2]) for line in found.splitlines()[2::2]]
    assert shown == [PRUNED, PRUNED]
    assert answers(result, "deploy") == ["api in eu, 3 of it"]
    assert answers(result, "deploy_remotely") == ['{"service": "api", "replicas": 3}']
    assert log.prefix_report().intact


@pytest.mark.parametrize("tool", [deploy, served])
async def test_a_wrong_call_through_the_proxy_is_answered_with_the_whole_schema(tool, path, log):
    script = [through(tool().name, service="api", replicas="many"), "Done."]
    agent = agent_on(chat_completions, script, log, "proxy", tools=tools(), prune=SchemaPruning())
    result = await run(path, agent, user("send an email"), thread())
    (answer,) = answers(result, CALL)
    assert "'replicas'" in answer
    assert '"region"' in answer


async def test_behind_a_proxy_a_search_by_name_shows_the_whole_schema(path, log):
    script = [searching("deploy"), "Done."]
    agent = agent_on(chat_completions, script, log, "proxy", tools=tools(), prune=SchemaPruning())
    result = await run(path, agent, user("send an email"), thread())
    assert '"replicas"' in answers(result)[0]


async def test_behind_a_proxy_a_tool_that_requires_nothing_is_found_with_what_it_takes(path, log):
    agent = agent_on(
        chat_completions,
        [discover("list the pods"), through("list_pods", limit=3), "Done."],
        log,
        "proxy",
        tools=[*office(), pods()],
        prune=SchemaPruning(),
    )
    result = await run(path, agent, user("send an email"), thread())
    assert "namespace, limit, label, watch" in answers(result)[0]
    assert answers(result, "list_pods") == ["3 pods"]


@pytest.mark.parametrize(
    ("exposure", "kind"), [("per_turn", "free text"), ("proxy", "free text"), ("proxy", "broken")]
)
async def test_a_search_by_name_finds_a_tool_without_a_schema_that_can_be_read(exposure, kind, path, log):
    tool = odd(NOWHERE, "braid") if kind == "broken" else run_code()
    agent = agent_on(
        chat_completions,
        [searching(tool.name), "Done."],
        log,
        exposure,
        tools=[*office(), tool],
        prune=SchemaPruning(),
    )
    result = await run(path, agent, user("send an email"), thread())
    assert f"`{tool.name}`: {tool.description}" in answers(result)[0]


# -- the same bytes --------------------------------------------------------------------------------------


@over_clients
@pytest.mark.parametrize("exposure", ["auto", "proxy"])
async def test_pruned_bytes_stay_the_same_over_calls_turns_and_a_restart(
    client, exposure, path, tmp_path, log
):
    await converse(
        client, exposure, path, tmp_path, log, tools=tools(), prune=KEEP, always_include=["deploy"]
    )
    assert len({json.dumps(definitions(payload, "deploy")) for payload in log.payloads}) == 1
    if (client, exposure) != (chat_completions, "auto"):
        assert log.prefix_report().intact, log.prefix_report()
    for name in ("send_email", "play_music", DISCOVER):
        assert len({json.dumps(d) for payload in log.payloads for d in definitions(payload, name)}) <= 1


async def test_other_tools_that_come_and_go_change_no_bytes(path, memory):
    sent = []
    for tools_now in (tools()[:-1], [make_tool("extra", "Something else."), *tools()[:-1]]):
        agent, model = build(["Done."], tools=tools_now, prune=KEEP, saver=memory)
        await run(path, agent, user("deploy a service"), thread())
        sent += [json.dumps(definitions([*c.schemas], "deploy")) for c in model.calls]
    assert len(set(sent)) == 1


async def test_a_tool_whose_schema_changes_is_pruned_anew(path, memory):
    def other(service: str, a: str = "", b: str = "", c: str = "", *, zone: str) -> str:
        return zone

    changed = StructuredTool.from_function(other, name="deploy", description=deploy().description)
    selection = ToolSelectionMiddleware(top_k=1, prune=SchemaPruning())
    for tool, left in ((deploy(), ["service"]), (changed, ["service", "zone"])):
        agent, model = build(["Done."], tools=[*office(), tool], selection=selection, saver=memory)
        await run(path, agent, user("deploy a service"), thread())
        assert list(schema([*model.calls[0].schemas], "deploy")["properties"]) == left


async def test_marks_of_other_middleware_survive_on_the_pruned_copy(path, log):
    mark = {"cache_control": {"type": "ephemeral"}}

    def marked(request: Any) -> Any:
        return request.override(
            tools=[t.model_copy(update={"extras": mark}) if t.name == "deploy" else t for t in request.tools]
        )

    for top_k in (1, 99):
        agent = agent_on(
            tool_reference,
            [],
            log,
            "per_turn",
            tools=tools()[:-1],
            prune=SchemaPruning(),
            outer=[Rewriting(marked)],
            top_k=top_k,
        )
        await say(path, agent, "deploy a service")
        (definition,) = definitions(log.payloads[-1], "deploy")
        assert definition["cache_control"] == mark["cache_control"]
        assert definition["input_schema"] == PRUNED


# -- what is not pruned ----------------------------------------------------------------------------------


async def test_the_harness_keeps_its_own_descriptions(path):
    deepagents = pytest.importorskip("deepagents")
    model = ScriptedChatModel(script=["Done."])
    agent = deepagents.create_deep_agent(
        model,
        tools(),
        middleware=[ToolSelectionMiddleware(top_k=1, prune=SchemaPruning())],
        subagents=[{"name": "poet", "description": "Writes verses.", "system_prompt": "Rhyme."}],
    )
    await run(path, agent, user("deploy a service"))
    (task,) = [s["function"] for s in model.calls[0].schemas if s["function"]["name"] == "task"]
    assert "poet" in task["description"]
    assert schema([*model.calls[0].schemas], "deploy") == PRUNED or "deploy" not in model.calls[0].tools


async def test_the_search_tool_keeps_the_description_that_it_was_given(path):
    text = "Search all tools.\n\nAsk before you say no."
    agent, model = build(["Done."], prune=SchemaPruning(), discovery=Discovery(description=text))
    await run(path, agent, user("send an email"))
    (definition,) = definitions([*model.calls[0].schemas], DISCOVER)
    assert definition["description"].startswith(text)


def run_code() -> Any:
    @custom_tool
    def run_code(code: str) -> str:
        """Run code that is written freely."""
        return code

    return run_code


async def test_a_providers_tools_stay_as_they_are(path, log):
    search = {"type": "web_search", "filters": {"allowed_domains": ["a.example"]}}
    agent = agent_on(
        additional_tools,
        [],
        log,
        tools=[*tools(), run_code(), search],
        prune=SchemaPruning(),
        always_include=["run_code"],
    )
    await say(path, agent, "send an email")
    (payload,) = log.payloads
    assert search in payload["tools"]
    (custom,) = [tool for tool in payload["tools"] if tool.get("type") == "custom"]
    assert custom["description"] == "Run code that is written freely."


# -- bad input -------------------------------------------------------------------------------------------


def warnings_in(caplog: Any) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]


@pytest.mark.parametrize(
    ("keep", "named"),
    [
        (["region", "regoin"], "regoin"),
        ({"deploy": ["nowhere"]}, "deploy.nowhere"),
        ({"gone": ["x"]}, "gone"),
    ],
    ids=str,
)
async def test_an_unknown_name_in_keep_is_warned_of_once(keep, named, path, memory, caplog):
    agent, _ = build(
        [call("deploy", service="api"), "Done."],
        tools=tools()[:-1],
        prune=SchemaPruning(keep=keep),
        saver=memory,
    )
    for text in ("deploy a service", "send an email"):
        await run(path, agent, user(text), thread())
    (warning,) = warnings_in(caplog)
    assert f"SchemaPruning.keep names '{named}'" in warning


async def test_it_is_warned_of_where_all_tools_are_sent_too(path, caplog):
    agent, _ = build(["Done."], tools=tools(), prune=SchemaPruning(keep=["regoin"]), top_k=99)
    await run(path, agent, user("deploy a service"))
    assert len(warnings_in(caplog)) == 1


def nested(levels: int) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        part = {"type": "object", "properties": {"a": part}}
    return part


class Node(BaseModel):
    """A node."""

    value: str
    children: list[Node] = []
    label: str = ""
    color: str = ""


def odd(args_schema: Any, name: str = "odd") -> StructuredTool:
    def run(**arguments: Any) -> str:
        return "odd did it"

    return StructuredTool(name=name, description="Braid the ribbons.", args_schema=args_schema, func=run)


def plain(text: str) -> str:
    return "odd did it"


CYCLE = {
    "type": "object",
    "properties": {"node": {"$ref": "#/$defs/Node"}},
    "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
}
LOOP = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/A"}},
    "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}},
}
NOWHERE = {"type": "object", "properties": {"a": {"$ref": "#/$defs/Gone"}}}
ODD = {
    "a cycle": lambda: odd(CYCLE),
    "a cycle of references only": lambda: odd(LOOP),
    "a recursive model": lambda: odd(Node),
    "150 levels": lambda: odd({"type": "object", "properties": {"a": nested(150)}}),
    "empty": lambda: odd({}),
    "without a schema": lambda: Tool(name="odd", description="Braid the ribbons.", func=plain),
    "without parameters": lambda: as_tool(odd_without_parameters),
}


def odd_without_parameters() -> str:
    """Braid the ribbons."""
    return "odd did it"


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize(
    ("client", "exposure", "path"),
    [*((client, name, PATHS[client]) for client, name in WAYS), (chat_completions, "proxy", "async")],
    ids=named,
)
async def test_odd_schemas_are_no_exception(kind, client, exposure, path, log):
    script = [discover("braid ribbons"), "Done."]
    agent = agent_on(
        client,
        script,
        log,
        exposure,
        tools=[*office(), ODD[kind]()],
        prune=SchemaPruning(keep=["text"]),
        token_budget=5_000,
    )
    await say(path, agent, "send an email")
    assert len(log.payloads) == 2


@pytest.mark.parametrize("settings", [{"token_budget": 500}, {"token_budget": None}], ids=str)
@pytest.mark.parametrize("parameters", [nested(300), NOWHERE], ids=["300 levels", "nowhere"])
async def test_a_schema_that_langchain_cannot_read_ends_no_run_in_which_it_stays_hidden(
    parameters, settings, path
):
    with pytest.raises((KeyError, RecursionError)):
        schema_of(odd(parameters))
    agent, model = build(
        [discover("send email"), "Done."],
        tools=[*office(), odd(parameters)],
        prune=SchemaPruning(keep=["text"]),
        **settings,
    )
    result = await run(path, agent, user("send an email"))
    assert result["messages"][-1].content == "Done."
    assert "odd" not in model.calls[-1].tools

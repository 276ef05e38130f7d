"""`exposure="stubs"`: every tool by name and one line, and the schema in the answer to a call that does not fit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    ModelFallbackMiddleware,
    SummarizationMiddleware,
)
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool, Tool, tool
from langgraph.types import Command
from pydantic import BaseModel

from langchain_tool_selection import SchemaPruning, ToolSelectionMiddleware
from langchain_tool_selection.testing import ModelCall, PayloadLog, ScriptedChatModel, call, scripted_client

from .agents import (
    DISCOVER,
    OFFICE,
    Offering,
    Rewriting,
    answers,
    build,
    discover,
    make_tool,
    office,
    open_saver,
    pins_of,
    run,
    sent,
    thread,
    user,
)
from .exposures import (
    CALL,
    StrictLog,
    agent_on,
    array,
    chat_completions,
    converse,
    say,
    searching,
    selections,
    steps,
    tool_addition,
    use,
)

OPEN = {"type": "object", "properties": {}, "additionalProperties": True}
APPROVE = Command(resume={"decisions": [{"type": "approve"}]})


@pytest.fixture
def log():
    log = StrictLog()
    yield log
    assert not log.refused


@tool
def ship(street: str, number: int, note: str = "") -> str:
    """Ship a parcel to an address. The carrier is chosen for you.

    Takes a day.
    """
    return f"shipped to {street} {number}"


def remote(name: str = "measure", ran: list[Any] | None = None) -> StructuredTool:
    """Return a tool as an MCP server gives it: its schema is a dict, which nobody checks a call against."""

    def run(**arguments: Any) -> str:
        if ran is not None:
            ran.append(arguments)
        return f"{name} got {arguments}"

    schema = {
        "type": "object",
        "properties": {
            "unit": {"type": "string", "enum": ["metre", "inch"]},
            "digits": {"type": "integer", "description": "Behind the point."},
        },
        "required": ["unit"],
    }
    return StructuredTool(name=name, description="Measure a room.", args_schema=schema, func=run)


SYLLABLES = ("bak", "dol", "fim", "gur", "hep", "kov", "lun", "mif", "nog", "pul")


def word(number: int) -> str:
    """Return a word that stands for a number below 1,000, and for no other."""
    return "".join(SYLLABLES[int(digit)] for digit in f"{number:03}") + "o"


def many(count: int) -> list[Any]:
    """Return tools that share no word of theirs with each other."""
    return [make_tool(f"tool_{number}", f"Polishes {word(number)}.") for number in range(count)]


def arrays(model: ScriptedChatModel) -> set[str]:
    return {json.dumps(sent.schemas) for sent in model.calls}


def said_by(result: dict[str, Any], name: str) -> list[ToolMessage]:
    return [m for m in result["messages"] if isinstance(m, ToolMessage) and m.name == name]


# -- the array -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("client", [chat_completions, tool_addition])
async def test_the_array_keeps_its_bytes_over_discoveries_topics_and_a_restart(client, path, tmp_path, log):
    played = await converse(client, "stubs", path, tmp_path, log)
    assert [array(payload) for payload in log.payloads] == [[DISCOVER, *OFFICE]] * 12
    assert all(payload["tools"] == log.payloads[0]["tools"] for payload in log.payloads)
    report = log.prefix_report()
    assert report.intact, report
    assert [event["changed"] for event in played] == [None, *[False] * 11]
    assert {event["hidden"] for event in played} == {0}
    assert {why["kind"] for event in played for why in event["shown"].values()} == {"stub", "discovery"}


async def test_a_stub_is_the_name_and_the_first_sentence_with_a_schema_that_takes_anything(path):
    agent, model = build(["Done."], tools=[*office(), ship], exposure="stubs")
    await run(path, agent, user("hello"))
    by_name = {one["function"]["name"]: one["function"] for one in model.calls[0].schemas}
    assert by_name["ship"] == {
        "name": "ship",
        "description": "Ship a parcel to an address.",
        "parameters": OPEN,
    }
    assert by_name[DISCOVER]["parameters"]["properties"].keys() == {"query", "names", "domain"}
    assert "without their parameters" in by_name[DISCOVER]["description"]


async def test_what_is_always_included_and_what_the_provider_runs_stay_whole(path, log):
    search = {"type": "web_search_20250305", "name": "web_search"}
    later = make_tool("later", "Is loaded later.", extras={"defer_loading": True})
    tools = [*office(), search, later]
    agent = agent_on(
        tool_addition, ["Done."], log, "stubs", tools=tools, always_include=["lock_door", "track_*"]
    )
    await run(path, agent, user("hello"), thread())
    by_name = {one["name"]: one for one in log.payloads[0]["tools"]}
    assert by_name["web_search"] == search
    whole = {n for n, one in by_name.items() if one.get("input_schema", {}).get("properties")}
    assert whole == {DISCOVER, "lock_door", "track_parcel", "later"}


async def test_a_tool_that_is_named_in_tool_choice_is_the_stub_that_it_was(path, memory):
    choices = iter([None, {"type": "function", "function": {"name": "play_music"}}, None])
    choosing = Rewriting(lambda request: request.override(tool_choice=next(choices)))
    agent, model = build(
        ["Hello.", "Hello.", "Hello."], exposure="stubs", inner=[], outer=[choosing], saver=memory
    )
    for _ in range(3):
        await run(path, agent, user("hello"), thread())
    assert len(arrays(model)) == 1


async def test_what_may_not_be_used_is_no_stub_and_is_not_run(path):
    ran: list[Any] = []
    script = [call("measure", unit="metre"), call("measure", wrong=1), discover("measure a room"), "Done."]
    agent, model = build(
        script,
        tools=[*office(), remote(ran=ran)],
        exposure="stubs",
        allow=lambda tool, runtime: tool.name != "measure",
    )
    result = await run(path, agent, user("measure a room"))
    assert all("measure" not in names for names in sent(model))
    assert not ran
    assert [text.partition(".")[0] for text in answers(result, "measure")] == [
        "There is no tool named `measure`"
    ] * 2
    assert "measure`" not in answers(result)[0]


async def test_with_few_tools_nothing_is_a_stub(path):
    agent, model = build(["Done."], exposure="stubs", top_k=12)
    await run(path, agent, user("hello"))
    assert model.calls[0].tools == [*OFFICE]
    assert all(one["function"]["parameters"]["properties"] for one in model.calls[0].schemas)


async def test_without_a_checkpointer_a_conversation_has_one_array(path):
    agent, model = build([call("send_email", text="Hi"), "Sent.", "Bye."], tools=many(200), exposure="stubs")
    result = await run(path, agent, user(word(150)))
    await run(path, agent, {"messages": [*result["messages"], *user(word(180))["messages"]]})
    assert "tool_150" in model.calls[0].tools
    assert len(arrays(model)) == 1


# -- calls -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", [chat_completions, tool_addition])
async def test_a_right_call_runs_at_once(client, path, log):
    ran: list[Any] = []
    script = [call("ship", street="Main", number=3), call("measure", unit="inch"), "Done."]
    agent = agent_on(client, script, log, "stubs", tools=[*office(), ship, remote(ran=ran)])
    result = await run(path, agent, user("ship it"), thread())
    assert answers(result, "ship") == ["shipped to Main 3"]
    assert ran == [{"unit": "inch"}]


WRONG = [
    ("ship", {"street": "Main"}, "argument 'number'"),
    ("ship", {"address": "Main 3"}, "argument 'street'"),
    ("ship", {"street": "Main", "number": 3, "express": True}, "there is no argument 'express'"),
    ("measure", {}, "'unit' is a required property"),
    ("measure", {"unit": "mile"}, "argument 'unit': 'mile' is not one of"),
    ("measure", {"unit": "inch", "precision": 2}, "there is no argument 'precision'"),
]
RIGHT = {"ship": {"street": "Main", "number": 3}, "measure": {"unit": "inch"}}
PROPERTY = {"ship": '"number":{"type":"integer"}', "measure": '"enum":("metre","inch")'}


@pytest.mark.parametrize(("name", "arguments", "mistake"), WRONG)
async def test_a_wrong_call_is_answered_with_what_is_wrong_and_the_schema_and_the_next_one_runs(
    name, arguments, mistake, path, memory
):
    ran: list[Any] = []
    script = [call(name, **arguments), call(name, **RIGHT[name]), "Done."]
    agent, model = build(script, tools=[*office(), ship, remote(ran=ran)], exposure="stubs", saver=memory)
    result = await run(path, agent, user("hello"), thread())
    wrong, right = said_by(result, name)
    assert (wrong.status, right.status) == ("error", "success")
    assert str(wrong.content).startswith(f"`{name}` was not called: ")
    assert mistake in wrong.text
    assert json.loads(wrong.text.partition("It takes: ")[2])["required"] == [*RIGHT[name]]
    assert len(ran) == (name == "measure")
    assert len(arrays(model)) == 1


async def test_parallel_calls_are_each_their_own(path):
    both = call("ship", street="Main")
    both.tool_calls += call("measure", unit="inch").tool_calls
    both.tool_calls[1]["id"] = "other"
    agent, _ = build([both, "Done."], tools=[*office(), ship, remote()], exposure="stubs")
    result = await run(path, agent, user("hello"))
    assert "It takes" in answers(result, "ship")[0]
    assert answers(result, "measure") == ["measure got {'unit': 'inch'}"]


async def test_once_the_schema_was_read_a_call_is_the_tools_own_to_judge(path, memory):
    ran: list[Any] = []
    script = [call("measure"), call("measure", unit="mile"), "Done.", call("measure", unit="ell"), "Done."]
    agent, _ = build(script, tools=[*office(), remote(ran=ran)], exposure="stubs", saver=memory)
    for _ in range(2):
        await run(path, agent, user("hello"), thread())
    assert ran == [{"unit": "mile"}, {"unit": "ell"}]


async def test_what_a_search_has_quoted_was_read(path):
    ran: list[Any] = []
    script = [discover(names=["measure"]), call("measure", unit="mile"), "Done."]
    agent, _ = build(script, tools=[*office(), remote(ran=ran)], exposure="stubs")
    await run(path, agent, user("hello"))
    assert ran == [{"unit": "mile"}]


async def test_what_was_read_ahead_of_a_compaction_is_quoted_again(path, memory):
    ran: list[Any] = []
    summary = ScriptedChatModel(script=["They talked."])
    compaction = SummarizationMiddleware(model=summary, trigger=("messages", 6), keep=("messages", 1))
    script = [call("measure"), "Hm.", "Hm.", "Hm.", call("measure", unit="mile"), "Done."]
    agent, _ = build(
        script, tools=[*office(), remote(ran=ran)], exposure="stubs", saver=memory, outer=[compaction]
    )
    for _ in range(4):
        result = await run(path, agent, user("hello"), thread())
    assert not ran
    assert "It takes" in answers(result, "measure")[-1]


async def test_a_tool_gets_its_runtime_and_its_arguments_are_checked_without_it(path):
    @tool
    def whoami(greeting: str, runtime: ToolRuntime) -> str:
        """Say who is asking."""
        return f"{greeting} {runtime.tool_call_id}"

    agent, _ = build([call("whoami", greeting="Hi"), "Done."], tools=[*office(), whoami], exposure="stubs")
    result = await run(path, agent, user("hello"))
    assert answers(result, "whoami")[0].startswith("Hi call_")


async def test_an_approval_sees_the_real_tool_over_a_restart(path, tmp_path):
    tools = [*office(), ship]
    approval = [HumanInTheLoopMiddleware({"ship": True})]
    settings: Any = {"tools": tools, "exposure": "stubs", "outer": approval}
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent, _ = build([call("ship", street="Main", number=3)], saver=saver, **settings)
        result = await run(path, agent, user("ship it"), thread())
        (asked,) = result["__interrupt__"][0].value["action_requests"]
        assert (asked["name"], asked["args"]) == ("ship", {"street": "Main", "number": 3})
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent, _ = build(["Done."], saver=saver, **settings)
        result = await run(path, agent, APPROVE, thread())
    assert answers(result, "ship") == ["shipped to Main 3"]


async def test_what_is_streamed_names_the_real_tool(path, log):
    script = [call("ship", street="Main"), call("ship", street="Main", number=3), "Done."]
    agent = agent_on(chat_completions, script, log, "stubs", tools=[*office(), ship])
    updates = await say(path, agent, "ship it", mode="updates")
    ran = [m for update in updates for m in (update.get("tools") or {}).get("messages", ())]
    assert [(m.name, m.status) for m in ran] == [("ship", "error"), ("ship", "success")]


async def test_a_stub_counts_as_shown_where_that_is_enforced(path):
    script = [call("ship", street="Main"), call("ship", street="Main", number=3), call("nope"), "Done."]
    agent, _ = build(script, tools=[*office(), ship], exposure="stubs", enforce=True)
    result = await run(path, agent, user("hello"))
    assert "It takes" in answers(result, "ship")[0]
    assert answers(result, "ship")[1] == "shipped to Main 3"
    assert answers(result, "nope")[0].startswith("There is no tool named `nope`")


async def test_a_wrong_call_is_audited_as_refused(path, caplog):
    caplog.set_level("INFO", "langchain_tool_selection.audit")
    agent, _ = build([call("ship"), "Done."], tools=[*office(), ship], exposure="stubs", audit=True)
    await run(path, agent, user("hello"))
    written = [json.loads(r.getMessage()) for r in caplog.records if r.name.endswith("audit")]
    assert [(w["event"], w.get("why")) for w in written if w.get("tool") == "ship"] == [
        ("refused", "arguments")
    ]


async def test_where_schemas_are_pruned_the_answer_has_the_pruned_one(path):
    script = [call("measure"), call("measure", unit="inch", digits=2), "Done."]
    ran: list[Any] = []
    tools = [*office(), remote(ran=ran), *many(5)]
    agent, _ = build(script, tools=tools, exposure="stubs", prune=SchemaPruning(keep_all_up_to=0))
    result = await run(path, agent, user("hello"))
    schema = json.loads(answers(result, "measure")[0].partition("It takes: ")[2])
    assert schema["properties"].keys() == {"unit"}
    assert ran == [{"unit": "inch", "digits": 2}]


async def test_what_no_schema_is_sent_of_is_called_as_it_is(path):
    def shout(text: str) -> str:
        return text.upper()

    single = Tool(name="shout", description="Shout a text.", func=shout)
    agent, _ = build(
        [call("shout", text="hi"), call("shout", __arg1="hi"), "Done."],
        tools=[*office(), single],
        exposure="stubs",
    )
    result = await run(path, agent, user("hello"))
    assert "__arg1" in answers(result, "shout")[0]
    assert answers(result, "shout")[1] == "HI"


# -- searches --------------------------------------------------------------------------------------------


async def test_a_search_answers_with_schemas_and_pins(path, memory):
    agent, _ = build(
        [discover("ship a parcel"), "Done."], tools=[*office(), ship], exposure="stubs", saver=memory
    )
    result = await run(path, agent, user("hello"), thread())
    (answer,) = answers(result)
    assert answer.startswith("Found ")
    assert "Call by name:\n- `ship`: Ship a parcel to an address." in answer
    assert '"street":{"type":"string"}' in answer
    assert "ship" in await pins_of(path, agent, thread())


# -- more tools than an array takes ----------------------------------------------------------------------


async def test_beyond_the_bound_the_best_are_shown_and_the_rest_is_found_and_called(path, tmp_path):
    tools = many(300)
    script = [
        call("tool_250", text="Hi"),
        discover(word(299)),
        use("tool_299", text="Hi"),
        call(CALL, name="tool_298", arguments={"wrong": 1}),
        "Done.",
    ]
    settings: Any = {"tools": tools, "exposure": "stubs", "saver": None}
    async with open_saver("sqlite", path, tmp_path) as saver:
        agent, model = build(steps(*script), **{**settings, "saver": saver})
        result = await run(path, agent, user(word(250)), thread())
    names = model.calls[0].tools
    assert len(names) == 121
    assert names[:2] == [DISCOVER, CALL]
    assert names[2:] == sorted(names[2:], key=lambda name: int(name.removeprefix("tool_")))
    assert "tool_250" in names
    assert "tool_299" not in names
    assert answers(result, "tool_250") == ["tool_250 did it"]
    assert "Call by call_tool(name, arguments), not directly:\n- `tool_299`" in answers(result)[0]
    assert answers(result, "tool_299") == ["tool_299 did it"]
    async with open_saver("sqlite", path, tmp_path) as saver:
        again, later = build(steps(use("tool_299")), **{**settings, "saver": saver})
        result = await run(path, again, user(word(270)), thread())
    assert answers(result, "tool_299")[-1] == "tool_299 did it"
    assert len(arrays(model) | arrays(later)) == 1


async def test_beyond_the_bound_what_was_not_found_is_refused_where_that_is_enforced(path):
    script = [call("tool_299"), discover(word(299)), use("tool_299"), "Done."]
    agent, _ = build(steps(*script), tools=many(300), exposure="stubs", enforce=True)
    result = await run(path, agent, user(word(250)))
    early, late = answers(result, "tool_299")
    assert early.startswith("`tool_299` is not in your list")
    assert late == "tool_299 did it"


async def test_a_token_budget_bounds_the_array(path):
    agent, model = build(["Done."], tools=many(60), exposure="stubs", token_budget=2_000)
    await run(path, agent, user(word(55)))
    names = model.calls[0].tools
    assert 20 < len(names) < 50
    assert {"tool_55", CALL} <= set(names)


async def test_a_tool_that_joins_later_is_found_and_the_array_only_grows_by_the_way_to_call_it(path, memory):
    joins = iter([[], [ship], [ship], [ship], [ship]])
    offering = Offering(lambda request: next(joins))
    script = ["Hello.", discover("ship a parcel"), use("ship", street="Main", number=3), "Done."]
    agent, model = build(steps(*script), exposure="stubs", outer=[offering], saver=memory)
    for _ in range(2):
        result = await run(path, agent, user("hello"), thread())
    assert [sent.tools for sent in model.calls] == [
        [DISCOVER, *OFFICE],
        *[[DISCOVER, *OFFICE, CALL]] * 3,
    ]
    assert answers(result, "ship") == ["shipped to Main 3"]


async def test_a_tool_that_is_gone_is_gone_and_that_is_said(path, memory, log):
    there = iter([True, False])
    outer = [
        Rewriting(
            lambda request: request.override(
                tools=[t for t in request.tools if t.name != "play_music" or next(there)]
            )
        )
    ]
    agent = agent_on(chat_completions, ["Hello.", "Hello."], log, "stubs", outer=outer, saver=memory)
    events = [*await say(path, agent, "hello"), *await say(path, agent, "hello")]
    assert selections(events)[1]["why"] == "tools that are no longer there: 1"
    assert "play_music" not in array(log.payloads[1])


# -- beside other ways -----------------------------------------------------------------------------------


class Refusing(ScriptedChatModel):
    """Claude that checks its prefix, through a client that cannot add tools."""

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        reported = super()._get_ls_params(stop, **kwargs)
        return {**reported, "ls_provider": "amazon_bedrock", "ls_model_name": "anthropic.claude-opus-5-5"}


async def test_a_thread_goes_back_from_a_fallback_to_the_array_that_it_had(path, log):
    """Both by "auto": additions on Anthropic's API, and stubs where the same model runs at a reseller."""
    fails = iter([False, True, False])

    def answer(sent: ModelCall) -> str:
        if next(fails):
            raise ConnectionError
        return "Sent."

    reseller = Refusing(script=["Sent from elsewhere."])
    agent = agent_on(tool_addition, answer, log, outer=[ModelFallbackMiddleware(reseller)])
    events = [event for _ in range(3) for event in selections(await say(path, agent, "send an email"))]
    assert [event["exposure"] for event in events] == ["append", "append", "stubs", "append"]
    assert reseller.calls[0].tools == [DISCOVER, *OFFICE]
    assert [array(payload) for payload in log.payloads] == [[DISCOVER, "send_email"]] * 3
    assert log.prefix_report().intact
    assert "stub" not in {why["kind"] for why in events[-1]["shown"].values()}


class Verdict(BaseModel):
    """What it came to."""

    verdict: str


async def test_strict_tools_cannot_be_stubs(path, log, caplog):
    script = ['{"verdict": "good"}']
    for form, taken in ((ProviderStrategy, "grow"), (ToolStrategy, "stubs")):
        settings = {"response_format": form(Verdict)}
        last = script if form is ProviderStrategy else [call("Verdict", verdict="good")]
        agent = agent_on(chat_completions, last, log, "stubs", agent_settings=settings)
        (event,) = selections(await say(path, agent, "send an email"))
        assert event["exposure"] == taken
    assert "tools are sent to it as strict ones" in caplog.text


async def test_stubs_need_a_search_tool():
    with pytest.raises(ValueError, match="exposure='stubs'"):
        ToolSelectionMiddleware(exposure="stubs", discovery=None)


async def test_in_a_deep_agent_a_stub_is_read_and_called(path, memory, log):
    deepagents = pytest.importorskip("deepagents")
    script = [
        call("measure"),
        call("measure", unit="inch"),
        searching("lock_door"),
        call("lock_door"),
        "Done.",
    ]
    rest = iter(script)
    agent = deepagents.create_deep_agent(
        scripted_client(chat_completions(), lambda _: next(rest), log),
        [*office(), remote()],
        middleware=[ToolSelectionMiddleware(top_k=1, exposure="stubs")],
        checkpointer=memory,
    )
    result = await run(path, agent, user("measure it"), thread())
    assert answers(result, "measure")[1] == "measure got {'unit': 'inch'}"
    assert answers(result, "lock_door") == ["lock_door did it"]
    assert all(payload["tools"] == log.payloads[0]["tools"] for payload in log.payloads)
    files = next(t for t in log.payloads[0]["tools"] if t["function"]["name"] == "read_file")
    assert files["function"]["parameters"]["properties"]


@pytest.mark.parametrize("exposure", ["stubs", "proxy"])
def test_a_runtime_that_langgraph_passes_by_name_is_no_argument_of_the_models(exposure):
    def count_sheep(number: int, runtime: Any) -> str:
        return f"{number} sheep, {type(runtime).__name__}"

    sheep = StructuredTool.from_function(func=count_sheep, description="Count sheep.")
    agent = agent_on(
        chat_completions,
        [use("count_sheep", number=3), "Done."],
        PayloadLog(),
        exposure,
        tools=[*office(), sheep],
    )
    messages = agent.invoke(user("send an email"), thread())["messages"]
    assert [message.text for message in messages if message.type == "tool"] == ["3 sheep, ToolRuntime"]

"""What keeps a tool from being shown although it ranks: a token budget, a tool like it, another domain."""

from __future__ import annotations

import statistics
import time
from typing import Any, NotRequired

import pytest
from grouped import grouped
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.types import Command

from langchain_tool_selection import (
    Discovery,
    SchemaPruning,
    ToolHints,
    ToolSelectionMiddleware,
    count_tokens,
)
from langchain_tool_selection.testing import ScriptedChatModel, call, schema_of

from .agents import (
    DISCOVER,
    Watching,
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
    StrictLog,
    additional_tools,
    agent_on,
    array,
    chat_completions,
    say,
    searching,
    selections,
    steps,
    tool_addition,
    tool_reference,
    visible,
)
from .pruned import served

FIVE = ["send_email", "book_flight", "play_music", "track_parcel", "lock_door"]
WANT_FIVE = "send an email, book a flight, play music, track a parcel, lock the front door"


def cost(*names: str) -> int:
    """Return what tools of the office, and the search tool, take in a request."""
    known = {tool.name: tool for tool in (*office(), *ToolSelectionMiddleware().tools)}
    return count_tokens(schema_of(known[name]) for name in names).tokens


def with_profile(limit: int | None, *script: Any) -> ScriptedChatModel:
    """Return a scripted model that says how many tokens it takes."""
    profile = None if limit is None else {"max_input_tokens": limit}
    return ScriptedChatModel(script=steps(*script), profile=profile)


def agent_with(model: Any, saver: Any = None, tools: Any = None, inner: Any = (), **settings: Any) -> Any:
    return create_agent(
        model,
        office() if tools is None else tools,
        middleware=[
            ToolSelectionMiddleware(**{"top_k": 5, "exposure": "per_turn", **grouped(**settings)}),
            *inner,
        ],
        checkpointer=saver,
    )


async def events_of(path: str, agent: Any, text: str, config: Any = None) -> list[dict[str, Any]]:
    return selections(await say(path, agent, text, config))


def warnings_in(caplog: Any) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]


# -- the token budget ------------------------------------------------------------------------------------


async def ranked(path: str, text: str = WANT_FIVE) -> list[str]:
    """Return the office by rank for a request, best first."""
    agent, _ = build(["Done."], top_k=9)
    (event,) = await events_of(path, agent, text)
    places = {name: why for name, why in event["shown"].items() if why["kind"] == "rank"}
    return sorted(places, key=lambda name: places[name]["rank"])


@pytest.mark.parametrize("fits", [0, 1, 3, 5])
async def test_tools_are_shown_by_rank_until_the_budget_is_full_and_the_event_says_what_was_cut(fits, path):
    best = await ranked(path)
    budget = cost(DISCOVER, *best[:fits])
    model = with_profile(None)
    (event,) = await events_of(path, agent_with(model, token_budget=budget), WANT_FIVE)
    shown = [name for name in event["shown"] if name != DISCOVER]
    assert sorted(shown) == sorted(best[:fits])
    assert event["cut"] == best[fits:5]
    assert count_tokens(model.calls[0].schemas).tokens <= budget


@pytest.mark.parametrize("share", [0.5, 0.15])
async def test_a_share_counts_of_the_models_input_limit(share, path):
    best = await ranked(path)
    limit = round(cost(DISCOVER, *best[:2]) / share) + 2
    settings = {} if share == 0.15 else {"token_budget": share}
    model = with_profile(limit)
    (event,) = await events_of(path, agent_with(model, **settings), WANT_FIVE)
    assert sorted(event["shown"]) == sorted([DISCOVER, *best[:2]])
    assert event["cut"] == best[2:5]


@pytest.mark.parametrize(("limit", "budget"), [(None, 0.15), (100, None), (1_000_000, 0.15)], ids=str)
async def test_a_share_of_an_unknown_limit_and_no_budget_cut_nothing(limit, budget, path):
    model = with_profile(limit)
    (event,) = await events_of(path, agent_with(model, token_budget=budget), WANT_FIVE)
    assert sorted(event["shown"]) == sorted([DISCOVER, *FIVE])
    assert event["cut"] == []


async def test_a_clients_own_profile_is_a_limit(path):
    log = StrictLog()
    client = chat_completions()
    limit = round(cost(DISCOVER, *FIVE[:1]) / 0.15) + 20
    client.profile = {**(client.profile or {}), "max_input_tokens": limit}
    agent = agent_on(client, [], log, "per_turn", top_k=5)
    (event,) = await events_of(path, agent, WANT_FIVE)
    assert len(event["cut"]) == 4
    assert len(array(log.payloads[0])) == 2


async def test_what_is_always_included_and_pinned_comes_before_what_ranks(path, memory):
    best = await ranked(path)
    budget = cost(DISCOVER, "water_plants", "order_pizza", best[0])
    model = with_profile(None, discover(names=["order_pizza"]), "Found.", "Done.")
    agent = agent_with(model, memory, always_include=["water_plants"], token_budget=budget)
    await events_of(path, agent, "hello")
    (event,) = await events_of(path, agent, WANT_FIVE)
    kinds = {name: why["kind"] for name, why in event["shown"].items()}
    assert kinds == {
        DISCOVER: "discovery",
        "water_plants": "core",
        "order_pizza": "pinned",
        best[0]: "rank",
    }
    assert event["cut"] == best[1:5]


async def test_a_small_tool_behind_one_that_does_not_fit_is_shown(path):
    tools = [
        make_tool("polish_mirror", "Polish a mirror. " + "Slowly and with care. " * 40),
        make_tool("polish_kettle", "Polish a kettle made of copper."),
        *office(),
    ]
    model = with_profile(None)
    (event,) = await events_of(
        path, agent_with(model, tools=tools, top_k=2, token_budget=cost(DISCOVER) + 100), "polish the mirror"
    )
    assert event["cut"] == ["polish_mirror"]
    assert "polish_kettle" in event["shown"]


async def test_a_budget_too_small_for_the_core_is_warned_of_once_and_the_core_stays(path, memory, caplog):
    model = with_profile(None, discover("music"), "Found.", "Done.")
    agent = agent_with(model, memory, always_include=["send_email"], token_budget=10)
    for name in ("one", "two"):
        for text in ("book a flight", "track a parcel"):
            await events_of(path, agent, text, thread(name))
    (warning,) = warnings_in(caplog)
    assert f"needs {cost(DISCOVER, 'send_email')} tokens, more than token_budget=10" in warning
    assert all({DISCOVER, "send_email"} <= set(c.tools) for c in model.calls)
    assert "play_music" in model.calls[1].tools, "what was found stays too"
    assert not {"book_flight", "track_parcel"} & {name for c in model.calls for name in c.tools}


async def test_a_budget_counts_what_is_sent_of_pruned_tools(path):
    pruned = agent_with(
        with_profile(None), tools=[*office(), served()], token_budget=220, prune=SchemaPruning()
    )
    whole = agent_with(with_profile(None), tools=[*office(), served()], token_budget=220)
    cuts = [
        (await events_of(path, agent, "deploy a service remotely"))[0]["cut"] for agent in (pruned, whole)
    ]
    assert cuts == [[], ["deploy_remotely"]]


async def test_what_the_provider_loads_on_demand_takes_nothing_of_the_budget(path, caplog):
    later = [
        make_tool(f"later_{n}", f"Do the {n}th thing, later.", extras={"defer_loading": True})
        for n in range(20)
    ]
    best = await ranked(path)
    model = with_profile(None)
    agent = agent_with(model, tools=[*later, *office()], token_budget=cost(DISCOVER, *best[:2]))
    (event,) = await events_of(path, agent, WANT_FIVE)
    assert {name for name in event["shown"] if not name.startswith("later")} == {DISCOVER, *best[:2]}
    assert warnings_in(caplog) == []


async def test_without_a_search_tool_something_is_shown_though_nothing_that_ranks_fits(path):
    large = make_tool("polish_mirror", "Polish a mirror. " + "Slowly and with care. " * 40)
    model = with_profile(None)
    budget = cost("send_email", "create_invoice") + 5
    agent = agent_with(
        model, tools=[large, *office()], top_k=5, discovery=None, token_budget=budget, keep_used=0
    )
    (event,) = await events_of(path, agent, "polish the mirror")
    assert model.calls[0].tools == ["send_email", "create_invoice"]
    assert event["cut"] == ["polish_mirror"]


# -- within a turn ---------------------------------------------------------------------------------------


async def test_within_a_turn_the_list_only_grows_by_what_is_found_even_beyond_the_budget(path, memory):
    best = await ranked(path)
    model = with_profile(None, searching("order_pizza", "water_plants"), call("order_pizza"), "Done.")
    agent = agent_with(model, memory, token_budget=cost(DISCOVER, *best[:2]))
    events = await events_of(path, agent, WANT_FIVE)
    first, second, third = [set(c.tools) for c in model.calls]
    assert first == {DISCOVER, *best[:2]}
    assert second == third == first | {"order_pizza", "water_plants"}
    assert model.calls[1].tools[: len(first)] == model.calls[0].tools
    assert events[0]["cut"] == best[2:5]


@pytest.mark.parametrize("budgets", [(1_000_000, 10), (150, None)], ids=str)
async def test_another_budget_in_the_middle_of_a_turn_changes_nothing(budgets, path, tmp_path):
    approve = Command(resume={"decisions": [{"type": "approve"}]})
    lists = []
    for budget, what in zip(budgets, (user(WANT_FIVE), approve), strict=True):
        async with open_saver("sqlite", path, tmp_path) as saver:
            model = with_profile(None, call("send_email") if what is not approve else "Done.")
            ask = HumanInTheLoopMiddleware({"send_email": True})
            agent = agent_with(model, saver, token_budget=budget, inner=[ask])
            await run(path, agent, what, thread())
            lists += [c.tools for c in model.calls]
    assert len(lists) == 2
    assert lists[1][: len(lists[0])] == lists[0]
    assert set(lists[1]) <= {*lists[0], "send_email"}, "what was called stays in the turn"


async def test_another_models_limit_in_the_middle_of_a_turn_changes_nothing(path, memory):
    small = with_profile(500, "Done.")

    class Switching(Watching):
        def _note(self, request: Any) -> Any:
            super()._note(request)
            return request.override(model=small) if len(self.requests) > 1 else request

    model = with_profile(1_000_000, call("send_email"))
    agent = create_agent(
        model,
        office(),
        middleware=[Switching(), ToolSelectionMiddleware(top_k=5, exposure="per_turn")],
        checkpointer=memory,
    )
    await run(path, agent, user(WANT_FIVE), thread())
    assert small.calls[0].tools == model.calls[0].tools


# -- where what is shown stays for the thread ------------------------------------------------------------


async def test_grow_selects_anew_once_when_it_is_over_the_budget(path):
    log = StrictLog()
    found = ["play_music", "lock_door", "order_pizza"]
    budget = max(cost(DISCOVER, *found), cost(DISCOVER, "send_email", *found[:2]))
    script = [searching(*found), "Found.", "Done.", "Done."]
    agent = agent_on(chat_completions, script, log, "grow", token_budget=budget)
    events = [
        event
        for text in ("send an email", "track a parcel by its number", "water the plants in the garden")
        for event in await events_of(path, agent, text)
    ]
    assert [event["why"] for event in events] == [
        "",
        f"added {', '.join(f'{name} (pinned)' for name in found)}",
        "over the token budget",
        "",
    ]
    assert array(log.payloads[2]) == array(log.payloads[3]) == [DISCOVER, *found]
    assert "track_parcel" in events[2]["cut"]


async def test_grow_whose_pins_alone_are_over_the_budget_changes_nothing_from_then_on(path):
    log = StrictLog()
    found = ["play_music", "lock_door", "order_pizza"]
    script = [searching(*found), "Found."]
    agent = agent_on(chat_completions, script, log, "grow", token_budget=cost(DISCOVER, "send_email") + 5)
    texts = ("send an email", "track a parcel by its number", "water the plants", "resize an image", "hello")
    events = [event for text in texts for event in await events_of(path, agent, text)]
    assert [event["changed"] for event in events] == [None, True, True, False, False, False]
    assert {tuple(array(payload)) for payload in log.payloads[2:]} == {(DISCOVER, *found)}


@pytest.mark.parametrize("client", [tool_addition, tool_reference, additional_tools])
async def test_append_keeps_its_prefix_over_the_budget_and_adds_nothing_unasked(client, path):
    log = StrictLog()
    script = [searching("play_music", "lock_door"), "Found."]
    agent = agent_on(client, script, log, "append", token_budget=cost(DISCOVER, "send_email") + 60)
    texts = ("send an email", "track a parcel by its number", "water the plants in the garden")
    events = [event for text in texts for event in await events_of(path, agent, text)]
    assert log.prefix_report().intact, log.prefix_report()
    assert not {"track_parcel", "water_plants"} & set(visible(log.payloads[-1]))
    assert any("track_parcel" in event["cut"] for event in events)
    assert not log.refused


# -- tools that are alike --------------------------------------------------------------------------------

TWINS = {
    "alpha_weather": "Get the weather of a city.",
    "beta_weather": "Gets the weather of a city",
    "gamma_forecast": "Predict rain, wind and sun by the hour.",
}


def twins() -> list[Any]:
    return [*office(), *(make_tool(name, text) for name, text in TWINS.items())]


async def test_of_tools_that_are_alike_one_is_shown_and_the_event_says_so(path, memory):
    agent, model = build(["Done."], tools=twins(), top_k=3, saver=memory)
    (event,) = await events_of(path, agent, "get the weather of a city", thread())
    assert "alpha_weather" in model.calls[0].tools
    assert "beta_weather" not in model.calls[0].tools
    assert event["alike"] == {"beta_weather": "alpha_weather"}


async def test_it_is_the_better_ranked_one(path):
    hints = {"beta_weather": ToolHints(examples=["is it pouring in Lisbon"])}
    agent, model = build(["Done."], tools=twins(), top_k=3, hints=hints)
    (event,) = await events_of(path, agent, "weather: is it pouring in Lisbon?")
    assert "beta_weather" in model.calls[0].tools
    assert "alpha_weather" not in model.calls[0].tools
    assert event["alike"] == {"alpha_weather": "beta_weather"}


async def test_what_must_stay_stands_for_its_twin(path):
    agent, model = build(["Done."], tools=twins(), top_k=3, always_include=["beta_weather"])
    (event,) = await events_of(path, agent, "get the weather of a city")
    assert "alpha_weather" not in model.calls[0].tools
    assert event["alike"] == {"alpha_weather": "beta_weather"}


async def test_two_that_are_alike_and_must_stay_both_stay(path):
    agent, model = build(["Done."], tools=twins(), always_include=["alpha_weather", "beta_weather"])
    await run(path, agent, user("get the weather"))
    assert {"alpha_weather", "beta_weather"} <= set(model.calls[0].tools)


async def test_a_search_finds_one_of_them_and_names_the_other(path, memory):
    agent, _ = build([discover("weather of a city"), "Done."], tools=twins(), saver=memory)
    result = await run(path, agent, user("send an email"), thread())
    assert "`alpha_weather` says the same as: beta_weather." in answers(result)[0]
    assert await pins_of(path, agent, thread()) == ["alpha_weather"]


async def test_asked_for_by_name_the_other_is_found_too(path, memory):
    script = [discover("weather of a city"), discover(names=["beta_weather"]), "Done."]
    agent, model = build(script, tools=twins(), saver=memory)
    await run(path, agent, user("send an email"), thread())
    assert {"alpha_weather", "beta_weather"} <= set(model.calls[-1].tools)


async def test_many_that_are_alike_leave_room_for_others(path):
    tools = [make_tool(f"get_weather_{n}", "Get the weather of a city.") for n in range(40)]
    other = make_tool("city_map", "Get a map of a city.")
    agent, model = build(["Done."], tools=[*tools, *office(), other], top_k=2)
    await run(path, agent, user("get the weather of a city"))
    assert "city_map" in model.calls[0].tools
    assert len(model.calls[0].tools) == 3


async def test_which_of_them_is_shown_stays_for_the_turn(path, memory):
    script = [discover("play music"), call("alpha_weather"), "Done."]
    agent, model = build(script, tools=twins(), top_k=3, saver=memory)
    await run(path, agent, user("get the weather of a city"), thread())
    assert all("alpha_weather" in c.tools and "beta_weather" not in c.tools for c in model.calls)


# -- domains ---------------------------------------------------------------------------------------------


class PhaseState(AgentState[Any]):
    phase: NotRequired[str]


PHASES = {"migration": {"database"}, "nothing": set(), "several": ["database", "mail"]}


def by_phase(state: Any, runtime: Any) -> Any:
    return PHASES.get(state.get("phase"))


def server_tools() -> list[Any]:
    rows = {
        "database": ["migrate the schema", "drop a table", "query the rows", "restore a dump"],
        "mail": ["send a letter", "archive the inbox", "forward a memo"],
    }
    return [
        make_tool(text.replace(" ", "_"), f"{text.capitalize()}.", metadata={"domain": domain})
        for domain, texts in rows.items()
        for text in texts
    ]


def phased(script: Any, tools: Any = None, **settings: Any) -> tuple[Any, ScriptedChatModel]:
    return build(
        script,
        tools=server_tools() if tools is None else tools,
        **{"domains": by_phase, "top_k": 2, "agent_settings": {"state_schema": PhaseState}, **settings},
    )


DATABASE = {tool.name for tool in server_tools()[:4]}


async def test_in_a_phase_only_the_tools_of_its_domains_are_shown_and_found(path, memory):
    script = [
        discover("send a letter"),
        discover(names=["send_a_letter"]),
        discover(domain="mail"),
        discover("drop a table"),
        "Done.",
    ]
    agent, model = phased(script, saver=memory)
    result = await run(path, agent, {**user("send a letter, query the rows"), "phase": "migration"}, thread())
    assert {name for names in sent(model) for name in names} <= DATABASE
    assert "query_the_rows" in sent(model)[0]
    assert await pins_of(path, agent, thread()) == ["drop_a_table"]
    assert not any("Send a letter" in answer for answer in answers(result))


@pytest.mark.parametrize("phase", [{}, {"phase": "unknown"}], ids=str)
async def test_without_domains_all_are_in_play(phase, path):
    agent, model = phased(["Done."])
    await run(path, agent, {**user("send a letter, query the rows"), **phase})
    assert set(sent(model)[0]) == {"send_a_letter", "query_the_rows"}


async def test_a_list_of_domains_is_taken_too(path):
    agent, model = phased(["Done."])
    await run(path, agent, {**user("send a letter, query the rows"), "phase": "several"})
    assert set(sent(model)[0]) == {"send_a_letter", "query_the_rows"}


async def test_what_is_always_included_is_so_in_every_phase(path):
    agent, model = phased(["Done."], always_include=["archive_the_inbox"])
    await run(path, agent, {**user("query the rows"), "phase": "migration"})
    assert {"archive_the_inbox", "query_the_rows"} <= set(sent(model)[0])


async def test_a_small_catalogue_is_limited_too(path):
    agent, model = phased(["Done."], top_k=99)
    await run(path, agent, {**user("query the rows"), "phase": "migration"})
    assert set(sent(model)[0]) == DATABASE
    assert DISCOVER not in model.calls[0].tools


async def test_with_no_domain_in_play_nothing_is_shown(path):
    agent, model = phased(["Done."])
    await run(path, agent, {**user("query the rows"), "phase": "nothing"})
    assert model.calls[0].tools == []


async def test_pins_wait_for_their_phase(path, memory):
    agent, model = phased([discover(names=["send_a_letter"]), "Found.", "Done."], saver=memory, keep_used=0)
    await run(path, agent, user("query the rows"), thread())
    for phase in ("migration", ""):
        await run(path, agent, {**user("drop a table"), "phase": phase}, thread())
    *_, within, after = sent(model)
    assert "send_a_letter" not in within
    assert "send_a_letter" in after


async def test_the_tools_of_a_phase_that_begins_in_mid_turn_are_shown_at_once(path, memory):
    def begin_migration(runtime: ToolRuntime) -> Command[Any]:
        """Begin the migration."""
        answer = ToolMessage("It begins.", tool_call_id=runtime.tool_call_id)
        return Command(update={"phase": "migration", "messages": [answer]})

    begin = StructuredTool.from_function(begin_migration)
    agent, model = phased(
        [call("begin_migration"), "Done."],
        tools=[*server_tools(), begin],
        always_include=["begin_migration"],
        saver=memory,
    )
    await run(path, agent, user("send a letter, then migrate the schema and drop a table"), thread())
    assert set(sent(model)[-1]) <= {*DATABASE, "begin_migration"}
    assert {"migrate_the_schema", "drop_a_table"} <= set(sent(model)[-1])


async def test_a_tool_that_tool_choice_names_is_there_in_every_phase(path):
    class Choosing(Watching):
        def _note(self, request: Any) -> Any:
            return request.override(tool_choice="send_a_letter")

    agent, model = phased(["Done."], outer=[Choosing()])
    await run(path, agent, {**user("query the rows"), "phase": "migration"})
    assert "send_a_letter" in sent(model)[0]


@pytest.mark.parametrize("returned", ["database", 5, [1]], ids=str)
async def test_what_is_no_collection_of_names_counts_as_a_failure(returned, path, caplog):
    agent, model = phased(["Done."], domains=lambda state, runtime: returned)
    await run(path, agent, user("send a letter, query the rows"))
    assert set(sent(model)[0]) == {"send_a_letter", "query_the_rows"}
    (warning,) = warnings_in(caplog)
    assert "All domains are searched for this call" in warning


async def test_a_failure_leaves_all_domains_in_play_and_is_warned_of_once(path, memory, caplog):
    def failing(state: Any, runtime: Any) -> Any:
        raise LookupError("no phase")

    agent, model = phased([discover("restore a dump"), "Done.", "Done."], domains=failing, saver=memory)
    for text in ("send a letter, query the rows", "forward a memo"):
        await run(path, agent, user(text), thread())
    assert set(sent(model)[0]) == {"send_a_letter", "query_the_rows"}
    (warning,) = warnings_in(caplog)
    assert "no phase" in warning


async def test_domains_may_go_by_the_runtime(path):
    agent, model = phased(
        ["Done."],
        domains=lambda state, runtime: runtime.context["domains"],
        agent_settings={"context_schema": dict},
    )
    if path == "sync":
        agent.invoke(user("send a letter, query the rows"), context={"domains": ["mail"]})
    else:
        await agent.ainvoke(user("send a letter, query the rows"), context={"domains": ["mail"]})
    assert sent(model) == [["send_a_letter"]]


@pytest.mark.parametrize("query", ["", "drop a table"])
async def test_a_search_in_a_domain_that_does_not_exist_lists_those_that_do(query, path):
    agent, _ = phased([discover(query, domain="nonsense"), "Done."])
    result = await run(path, agent, user("query the rows"))
    (answer,) = answers(result)
    assert "nonsense" in answer
    assert "database, mail" in answer
    assert "''" not in answer


# -- the overview ----------------------------------------------------------------------------------------

OVERVIEW = Discovery(overview=True)


def described(model: ScriptedChatModel) -> list[str]:
    return [
        schema["function"]["description"]
        for c in model.calls
        for schema in c.schemas
        if schema["function"]["name"] == DISCOVER
    ]


async def test_an_overview_names_the_domains_by_size(path):
    agent, model = phased(["Done."], discovery=OVERVIEW)
    await run(path, agent, user("query the rows"))
    (description,) = described(model)
    assert description == f"{Discovery().description} There are tools for: database (4), mail (3)."


async def test_without_the_option_there_is_none(path):
    agent, model = phased(["Done."])
    await run(path, agent, user("query the rows"))
    assert described(model) == [Discovery().description]


@pytest.mark.parametrize("before", [server_tools, office], ids=["some domains", "none"])
@pytest.mark.parametrize("exposure", ["per_turn", "grow", "proxy"])
async def test_an_overview_stays_the_same_for_a_thread_when_tools_change(before, exposure, path, tmp_path):
    more = make_tool("order_tea", "Order tea.", metadata={"domain": "kitchen"})
    seen: list[str] = []
    for tools in (before(), [*before(), more], before()[1:]):
        async with open_saver("sqlite", path, tmp_path) as saver:
            agent, model = phased(
                [discover("tea"), "Done."], tools=tools, discovery=OVERVIEW, saver=saver, exposure=exposure
            )
            await run(path, agent, user("query the rows"), thread())
            seen += described(model)
    assert len(seen) == 6
    assert len(set(seen)) == 1


async def test_a_new_thread_gets_a_new_overview(path, memory):
    more = make_tool("order_tea", "Order tea.", metadata={"domain": "kitchen"})
    seen = []
    for number, tools in enumerate((server_tools(), [*server_tools(), more])):
        agent, model = phased(["Done."], tools=tools, discovery=OVERVIEW, saver=memory)
        await run(path, agent, user("query the rows"), thread(str(number)))
        seen += described(model)
    assert [text.count("kitchen (1)") for text in seen] == [0, 1]


# -- what it costs ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_warm_call_over_1_000_tools_spends_next_to_nothing_on_counting(memory):
    # Pairs of calls, so that a machine that is busy with something else is so for both.
    tools = [
        make_tool(f"tool_{n:04}", f"Polish the item of number {n} in the {n % 97}th hall.")
        for n in range(1000)
    ]
    agents = [
        agent_with(with_profile(None), tools=tools, top_k=15, token_budget=budget) for budget in (None, 1_500)
    ]
    times: list[list[float]] = [[], []]
    for _ in range(15):
        for agent, taken in zip(agents, times, strict=True):
            start = time.perf_counter()
            agent.invoke(user("polish the item of number 77 in the hall"))
            taken.append(time.perf_counter() - start)
    without, with_it = (statistics.median(taken[3:]) for taken in times)
    assert with_it < 1.25 * without + 0.002

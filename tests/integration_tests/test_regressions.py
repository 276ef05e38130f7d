"""What a hostile reader of the first version broke, each as the behaviour that holds now."""

from __future__ import annotations

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_tool_selection import (
    LexicalRanker,
    Query,
    Search,
    Thread,
    ToolDocument,
    ToolSelectionMiddleware,
)
from langchain_tool_selection.testing import ScriptedChatModel, call

from .agents import DISCOVER, OFFICE, PINS, Rewriting, make_tools, office, sent, thread, user

DOCUMENTS = tuple(ToolDocument(name, text) for name, text in OFFICE.items())


def test_catalogues_that_differ_in_punctuation_alone_can_take_turns() -> None:
    ranker = LexicalRanker()
    other = tuple(ToolDocument(d.name, f"{d.description}!") for d in DOCUMENTS)
    for documents in (DOCUMENTS, other, DOCUMENTS):
        assert ranker.rank(Query.of("schedulle a meetting"), documents)[0].name == "schedule_meeting"


def test_a_typo_is_found_whichever_sibling_catalogue_was_searched_before() -> None:
    ranker = LexicalRanker()
    ranker.rank(Query.of("pizza"), DOCUMENTS)
    for thing in ("chandelier", "telescope", "microscope"):
        documents = (*DOCUMENTS[:-1], ToolDocument("lock_door", f"Repaint the gorgeous {thing}."))
        misspelled = thing[:-2] + thing[-1]
        assert [hit.name for hit in ranker.rank(Query.of(misspelled), documents)] == ["lock_door"]


def test_tools_of_middleware_ahead_of_this_one_stay() -> None:
    model = ScriptedChatModel(script=["Done."])
    middleware = [TodoListMiddleware(), ToolSelectionMiddleware(top_k=1)]
    create_agent(model, office(), middleware=middleware).invoke(user("order a pizza"))
    assert sent(model) == [["write_todos", "order_pizza"]]


def test_a_user_tool_that_is_named_like_a_harness_tool_is_ranked_as_any_other() -> None:
    model = ScriptedChatModel(script=["Done."])
    tools = [*make_tools({"write_todos": "Write a list of todos."}), *office()]
    create_agent(model, tools, middleware=[ToolSelectionMiddleware(top_k=1)]).invoke(user("order a pizza"))
    assert sent(model) == [["order_pizza"]]


def test_the_best_matches_of_one_search_stay_when_there_are_too_many() -> None:
    names = ["alpha", "beta", "gamma", "delta"]
    tools = [
        *make_tools({f"parcel_{n}": "Weigh parcels." + " Or not." * i for i, n in enumerate(names)}),
        *office(),
    ]
    model = ScriptedChatModel(script=[call(DISCOVER, query="weigh parcels"), "Done."])
    agent = create_agent(
        model,
        tools,
        middleware=[ToolSelectionMiddleware(top_k=1, thread=Thread(max_pins=2))],
        checkpointer=InMemorySaver(),
    )
    state = agent.invoke(user("book a flight"), thread())
    assert agent.get_state(thread()).values[PINS] == ["parcel_alpha", "parcel_beta"]
    assert "Found 2 tools" in state["messages"][2].text


def test_a_reminder_that_middleware_adds_in_the_users_role_is_no_request() -> None:
    reminder = HumanMessage("<reminder> play music, book a flight")
    model = ScriptedChatModel(script=[call("order_pizza"), "Done."])
    outer = Rewriting(lambda request: request.override(messages=[*request.messages, reminder]))
    agent = create_agent(model, office(), middleware=[outer, ToolSelectionMiddleware(top_k=1)])
    agent.invoke(user("order a pizza"))
    assert sent(model) == [["order_pizza"]] * 2


def test_with_a_query_of_ones_own_a_new_user_message_is_still_a_new_turn() -> None:
    model = ScriptedChatModel(script=[call("order_pizza"), "Done.", "Done.", "Done."])
    selection = ToolSelectionMiddleware(top_k=1, search=Search(query=lambda _: "send an email"))
    agent = create_agent(model, office(), middleware=[selection], checkpointer=InMemorySaver())
    for text in ("one", "two", "three"):
        agent.invoke(user(text), thread())
    assert sent(model)[-1] == ["send_email"]


@pytest.mark.parametrize("answer", [5, ["email"], Query], ids=str)
def test_a_query_function_that_returns_nonsense_does_not_end_the_run(answer: object) -> None:
    model = ScriptedChatModel(script=["Done."])
    selection = ToolSelectionMiddleware(top_k=1, search=Search(query=lambda _: answer))  # type: ignore[arg-type, return-value]
    create_agent(model, office(), middleware=[selection]).invoke(user("order a pizza"))
    assert sent(model) == [["order_pizza"]]


def test_a_turn_without_a_match_shows_what_the_turn_before_showed_even_if_it_was_also_used() -> None:
    model = ScriptedChatModel(script=[call("send_email"), "Done.", "Done.", "Done."])
    selection = ToolSelectionMiddleware(
        top_k=1, search=Search(query=lambda request: request.messages[-1].text)
    )
    agent = create_agent(model, office(), middleware=[selection], checkpointer=InMemorySaver())
    for text in ("send an email", "send an email again", "zzz"):
        agent.invoke(user(text), thread())
    assert sent(model)[-1] == ["send_email"]


def test_a_search_answers_for_every_name_and_for_the_words() -> None:
    model = ScriptedChatModel(
        script=[call(DISCOVER, query="lock the door", names=["send_email", "nope"]), "Done."]
    )
    agent = create_agent(
        model, office(), middleware=[ToolSelectionMiddleware(top_k=1)], checkpointer=InMemorySaver()
    )
    state = agent.invoke(user("order a pizza"), thread())
    assert set(agent.get_state(thread()).values[PINS]) >= {"send_email", "lock_door"}
    assert "no tool named: nope" in state["messages"][2].text


def test_a_search_for_more_names_than_it_adds_says_which_were_left() -> None:
    names = list(OFFICE)[:8]
    model = ScriptedChatModel(script=[call(DISCOVER, names=names), "Done."])
    agent = create_agent(model, office(), middleware=[ToolSelectionMiddleware(top_k=1)])
    state = agent.invoke(user("water the plants"))
    assert all(name in state["messages"][2].text for name in names)


def test_a_deferred_tool_is_never_the_last() -> None:
    deferred = make_tools({"deferred": "Rarely needed."})[0].model_copy(
        update={"extras": {"defer_loading": True}}
    )
    model = ScriptedChatModel(script=["Done."])
    tools = [*office(), deferred]
    create_agent(model, tools, middleware=[ToolSelectionMiddleware(top_k=1)]).invoke(user("zzz"))
    assert model.calls[0].tools == ["deferred", DISCOVER]


def test_a_tool_that_takes_the_name_of_the_search_tool_in_a_request_is_left_out(caplog) -> None:
    rival = {"type": "function", "function": {"name": DISCOVER, "description": "", "parameters": {}}}
    model = ScriptedChatModel(script=["Done."])
    agent = create_agent(model, [*office(), rival], middleware=[ToolSelectionMiddleware(top_k=1)])
    agent.invoke(user("order a pizza"))
    assert model.calls[0].tools == [DISCOVER, "order_pizza"]
    assert model.calls[0].schemas[0]["function"]["description"]
    assert "two tools are named 'discover_tools'" in caplog.text

"""What a conversation is searched for, seen by a ranker in a real agent."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from conversations import searched_for, shown_for
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver

from langchain_tool_selection import Query, Thread, ToolSelectionMiddleware
from langchain_tool_selection.evals import Case
from langchain_tool_selection.testing import PayloadLog, ScriptedChatModel, scripted_client

SUMMARY = HumanMessage(
    "Summary: the user asked for the weather.", additional_kwargs={"lc_source": "summarization"}
)
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def texts(*messages: Any) -> list[str]:
    return [text for text, _ in searched_for(*messages).parts]


def weights(*said: Any) -> list[float]:
    return [weight for _, weight in searched_for(*map(HumanMessage, said)).parts]


def called(*names: str) -> AIMessage:
    calls = [{"name": name, "args": {}, "id": f"c{number}"} for number, name in enumerate(names)]
    return AIMessage("", tool_calls=calls)


def answered(name: str) -> ToolMessage:
    return ToolMessage("done", tool_call_id="c0", name=name)


# -- Query


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_a_blank_text_is_an_empty_query(text):
    query = Query.of(text)
    assert not query
    assert query == Query()
    assert query.text == ""


def test_a_query_knows_its_newest_text_and_does_not_change():
    query = Query((("new", 1.0), ("old", 0.5)))
    assert query
    assert query.text == "new"
    with pytest.raises(FrozenInstanceError):
        query.parts = ()


# -- who wrote it


@pytest.mark.parametrize(
    "message", [HumanMessage("hi"), {"role": "user", "content": "hi"}, {"type": "human", "content": "hi"}], ids=repr
)  # fmt: skip
def test_a_message_of_the_user_is_searched_for(message):
    assert texts(HumanMessage("weather?"), message) == ["hi", "weather?"]


@pytest.mark.parametrize(
    "message",
    [
        SUMMARY,
        HumanMessage("Skill text", additional_kwargs={"lc_source": "pinned_skill"}),
        {"role": "user", "content": "Summary", "additional_kwargs": {"lc_source": "summarization"}},
        SystemMessage("hi"),
        answered("alpha"),
    ],
    ids=repr,
)
def test_a_message_that_a_middleware_or_a_tool_wrote_is_not_searched_for(message):
    assert texts(HumanMessage("weather?"), called("alpha"), answered("alpha"), message) == ["weather?"]


def test_what_the_model_asked_back_is_searched_for_at_a_lower_weight():
    query = searched_for(
        HumanMessage("book it"), AIMessage("When shall I book the hotel?"), HumanMessage("at nine")
    )
    (newest, _), (reply, weight), _ = query.parts
    assert (newest, reply) == ("at nine", "When shall I book the hotel?")
    assert weight < 1


# -- words of a message


def test_text_blocks_are_joined_with_a_separator():
    content = [{"type": "text", "text": "cancel order"}, {"type": "text", "text": "now"}]
    assert searched_for(HumanMessage(content)).text.split() == ["cancel", "order", "now"]


def test_bare_strings_among_blocks_are_read_and_images_are_not():
    assert texts(HumanMessage(["look at", IMAGE, {"type": "text", "text": "this"}])) == ["look at\nthis"]


NO_WORDS = [
    "",
    [],
    [IMAGE],
    [{"type": "text", "text": ""}],
    [{"type": "text", "text": None}],
    [{"type": "text"}],
]


@pytest.mark.parametrize("content", NO_WORDS, ids=str)
def test_a_message_without_words_is_no_part_of_a_query(content):
    assert not searched_for(HumanMessage(content))
    assert texts(HumanMessage("weather?"), HumanMessage(content)) == ["weather?"]


@pytest.mark.parametrize("content", [None, 5])
def test_stored_content_of_another_kind_has_no_words(content):
    assert Case("now?", ("a",), ({"role": "user", "content": content},)).search_query() == Query.of("now?")


def test_a_huge_paste_is_cut():
    assert len(searched_for(HumanMessage("x" * 200_000)).text) == 20_000
    blocks = [{"type": "text", "text": "x" * 15_000}] * 20
    assert len(searched_for(HumanMessage(blocks)).text) == 20_000


# -- turns


def test_only_what_users_wrote_is_searched_for_the_newest_first():
    conversation = [
        SystemMessage("You are helpful."),
        HumanMessage("weather?"),
        called("weather_lookup", "stock_price"),
        answered("weather_lookup"),
        HumanMessage("translate it"),
        called("translate_text"),
        answered("translate_text"),
    ]
    assert texts(*conversation) == ["translate it", "weather?"]


@pytest.mark.parametrize(
    "messages", [[AIMessage("hi"), SystemMessage("x"), answered("alpha")], [called("alpha")]]
)
def test_a_conversation_without_a_user_is_searched_for_nothing(messages):
    assert not searched_for(*messages)


class Turns:
    """An agent that remembers, and what its model calls were sent."""

    def __init__(self, keep_used: int = 1) -> None:
        self.model = ScriptedChatModel(script=lambda _: "Done.")
        self.selection = ToolSelectionMiddleware(top_k=1, thread=Thread(keep_used=keep_used), discovery=None)
        tools = {"alpha": "Open an issue.", "beta": "Send an email.", "gamma": "Get the weather."}
        self.agent = create_agent(
            self.model,
            [
                StructuredTool.from_function(func=lambda text="": "", name=name, description=description)
                for name, description in tools.items()
            ],
            middleware=[self.selection],
            checkpointer=InMemorySaver(),
        )

    def shown(self, *messages: Any) -> list[str]:
        self.agent.invoke({"messages": list(messages)}, {"configurable": {"thread_id": "t"}})
        return self.model.calls[-1].tools


def test_complete_and_incomplete_tool_calls_both_keep_their_tools():
    message = AIMessage(
        "",
        tool_calls=[{"name": "alpha", "args": {"x": 1}, "id": "1"}],
        invalid_tool_calls=[{"name": "beta", "args": "{broken", "id": "2", "error": "no JSON"}],
    )
    answer = ToolMessage("done", tool_call_id="1", name="alpha")
    shown = Turns().shown(HumanMessage("hello"), message, answer, HumanMessage("the weather"))
    assert shown == ["alpha", "beta", "gamma"]


def test_messages_in_the_users_name_open_no_turn():
    # A tool that was called in the turn before stays, and one of an earlier turn does not.
    first = [HumanMessage("hello"), called("alpha"), answered("alpha")]
    second = [HumanMessage("send an email"), called("gamma"), answered("gamma")]
    assert Turns().shown(*first, *second, SUMMARY) == ["alpha", "beta", "gamma"]
    assert Turns().shown(*first, *second, HumanMessage("send another email")) == ["beta", "gamma"]


def test_calls_before_any_user_message_keep_their_tools_as_a_turn_of_their_own():
    assert Turns().shown(SUMMARY, called("alpha"), answered("alpha"), HumanMessage("send an email")) == [
        "alpha", "beta",
    ]  # fmt: skip
    assert Turns(keep_used=0).shown(
        SUMMARY, called("alpha"), answered("alpha"), HumanMessage("an email")
    ) == ["beta"]


@pytest.mark.parametrize(
    "calls", [None, "alpha", 5, [None], [{"args": {}}], [{"name": None, "args": {}}]], ids=repr
)
def test_stored_calls_that_cannot_be_read_are_passed_over(calls):
    history = ({"role": "user", "content": "weather?"}, {"role": "assistant", "tool_calls": calls})
    assert [text for text, _ in Case("yes", ("a",), history).search_query().parts] == ["yes", "weather?"]


def test_a_turn_goes_on_while_its_message_is_the_newest_and_another_message_of_the_same_words_opens_one():
    turns = Turns()
    opening = HumanMessage("send an email", id="m1")
    before = turns.shown(opening)
    record = turns.agent.get_state({"configurable": {"thread_id": "t"}}).values["tool_selection_thread"]
    assert turns.shown(called("gamma"), answered("gamma")) == [*before, "gamma"]
    thread = {"configurable": {"thread_id": "t"}}
    assert turns.agent.get_state(thread).values["tool_selection_thread"]["key"] == record["key"]
    turns.shown(HumanMessage("send an email", id="m2"))
    assert turns.agent.get_state(thread).values["tool_selection_thread"]["key"] != record["key"]


def test_a_user_message_without_words_still_opens_a_turn():
    turns, thread = Turns(), {"configurable": {"thread_id": "t"}}
    turns.shown(HumanMessage("weather?", id="1"))
    older = turns.agent.get_state(thread).values["tool_selection_thread"]["key"]
    turns.shown(HumanMessage([IMAGE], id="2"))
    assert turns.agent.get_state(thread).values["tool_selection_thread"]["key"] not in ("", older)


# -- what to search for


@pytest.mark.parametrize(
    "follow_up",
    ["do it", "yes", "ok, now the second one", "and in Berlin?", "那就发吧", "👍", "", "go ahead please"],
)
def test_a_follow_up_keeps_the_tools_of_the_request_before(follow_up):
    request = HumanMessage("open an issue in the tracker about the crash")
    assert shown_for(request, HumanMessage(follow_up)) == ["create_issue"]


def test_an_image_alone_keeps_the_tools_of_the_request_before():
    assert texts(HumanMessage("translate this text"), HumanMessage([IMAGE])) == ["translate this text"]


def test_a_follow_up_to_a_follow_up_keeps_them_too():
    assert shown_for(*map(HumanMessage, ("open an issue about the crash", "yes", "do it"))) == [
        "create_issue"
    ]


def test_a_long_new_request_is_not_polluted_by_the_old_one():
    new = "Now send an email to the person in charge, with a short greeting and the numbers of last week"
    assert shown_for(HumanMessage("open an issue in the tracker"), HumanMessage(new)) == ["send_email"]
    newest, *older = searched_for(HumanMessage("open an issue"), HumanMessage(new)).parts
    assert newest == (new, 1.0)
    assert all(weight < 0.2 for _, weight in older)


def test_the_more_the_newest_text_says_the_less_the_older_ones_count():
    newest = ("yes", "Berlin", "Berlin weather", "email the weather of Berlin to Anna")
    old = [weights("open an issue", text)[1] for text in newest]
    assert old == sorted(set(old), reverse=True)
    assert weights("open an issue", "Berlin " * 50) == weights("open an issue", "Berlin")


def test_older_turns_count_less_the_older_they_are_and_end_after_a_few():
    parts = searched_for(*(HumanMessage(f"request {number}") for number in range(20))).parts
    found = [weight for _, weight in parts]
    assert found[0] == 1.0
    assert found == sorted(set(found), reverse=True)
    assert len(parts) <= 6
    assert [text for text, _ in parts][:2] == ["request 19", "request 18"]


def test_a_query_never_holds_an_empty_text():
    said = [HumanMessage(""), HumanMessage([IMAGE]), HumanMessage("weather"), HumanMessage("  ")]
    assert texts(*said) == ["weather"]


def test_the_same_messages_give_the_same_query_with_or_without_a_summary_in_between():
    before = [HumanMessage("open an issue", id="1"), called("create_issue"), answered("create_issue")]
    assert searched_for(*before) == searched_for(*before, SUMMARY)


def test_a_summary_is_searched_for_only_for_want_of_anything_else():
    assert searched_for(SUMMARY) == Query.of(SUMMARY.content)
    assert searched_for(SUMMARY, HumanMessage([IMAGE], additional_kwargs={"lc_source": "x"})) == Query.of(
        SUMMARY.content
    )
    assert texts(SUMMARY, HumanMessage("weather?")) == ["weather?"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "tool", "system"]), "content": JSON},
        optional={"tool_calls": JSON, "additional_kwargs": JSON, "id": JSON},
    ),
    max_size=5,
)


@given(MESSAGES, st.text(max_size=5))
def test_no_conversation_is_too_odd_to_be_read(messages, text):
    query = Case(text, ("a",), tuple(messages)).search_query()
    assert all(text.strip() and 0 < weight <= 1 for text, weight in query.parts)


# -- a change of topic: where a change of the tools array costs the cache, only that brings a tool unasked


def array_after(*said: str) -> list[str]:
    """Return the tools array of the last of these messages under `grow`."""
    openai = pytest.importorskip("langchain_openai")
    log = PayloadLog()
    model = scripted_client(openai.ChatOpenAI(model="gpt-4o", api_key="none"), lambda _: "Done.", log)
    tools = [
        StructuredTool.from_function(func=lambda text="": "", name=name, description=description)
        for name, description in {
            "send_email": "Send an email, or write to a person.",
            "book_flight": "Book a flight to a city.",
            "water_plants": "Water the plants.",
        }.items()
    ]
    selection = ToolSelectionMiddleware(top_k=1, exposure="grow", thread=Thread(keep_used=0), discovery=None)
    agent = create_agent(model, tools, middleware=[selection], checkpointer=InMemorySaver())
    for text in said:
        agent.invoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": "t"}})
    return log.calls[-1].tools


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("now book a flight to the city of Lisbon", ["book_flight"]),
        ("now write an email to a person about the flight", []),
        ("do it", []),
        ("tell me a joke about penguins", []),
        ("flight", []),
    ],
)
def test_a_topic_shifts_when_a_message_of_its_own_weight_wants_another_tool_most(text, added):
    assert array_after("send an email", text) == ["send_email", *added]


def test_the_first_message_shifts_no_topic():
    assert array_after("book a flight to Lisbon") == ["book_flight"]

from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage

from langchain_tool_selection import LexicalRanker, Query, ToolDocument, ToolIndex
from langchain_tool_selection._ground.messages import is_from_user, text_of, tool_calls
from langchain_tool_selection._ranking.query import (
    conversation_query,
    is_topic_shift,
    read_turns,
    summary_query,
)

SUMMARY = HumanMessage(
    "Summary: the user asked for the weather.", additional_kwargs={"lc_source": "summarization"}
)
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def called(*names):
    return AIMessage(
        "", tool_calls=[{"name": name, "args": {}, "id": f"c{i}"} for i, name in enumerate(names)]
    )


def answered(name):
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
def test_a_message_of_the_user_is_from_the_user(message):
    assert is_from_user(message)


@pytest.mark.parametrize(
    "message",
    [
        SUMMARY,
        HumanMessage("Skill text", additional_kwargs={"lc_source": "pinned_skill"}),
        {"role": "user", "content": "Summary", "additional_kwargs": {"lc_source": "summarization"}},
        AIMessage("hi"),
        SystemMessage("hi"),
        answered("alpha"),
        RemoveMessage(id="x"),
        {"role": "assistant", "content": "hi"},
        {},
        None,
    ],
    ids=repr,
)
def test_a_message_that_a_middleware_or_a_model_wrote_is_not_from_the_user(message):
    assert not is_from_user(message)


# -- words of a message


def test_text_blocks_are_joined_with_a_separator():
    content = [{"type": "text", "text": "cancel order"}, {"type": "text", "text": "now"}]
    assert text_of(HumanMessage(content)).split() == ["cancel", "order", "now"]


def test_bare_strings_among_blocks_are_read_and_images_are_not():
    assert text_of(HumanMessage(["look at", IMAGE, {"type": "text", "text": "this"}])) == "look at\nthis"


@pytest.mark.parametrize(
    "content", ["", [], [IMAGE], [{"type": "text", "text": ""}], [{"type": "text", "text": None}], [{"type": "text"}]],
    ids=str,
)  # fmt: skip
def test_a_message_without_words_is_empty(content):
    assert text_of({"role": "user", "content": content}).strip() == ""


@pytest.mark.parametrize("content", [None, 5])
def test_content_of_another_kind_is_empty(content):
    assert text_of({"role": "user", "content": content}) == ""


def test_a_huge_paste_is_cut():
    assert len(text_of(HumanMessage("x" * 200_000))) == 20_000
    assert len(text_of(HumanMessage([{"type": "text", "text": "x" * 15_000}] * 20))) == 20_000


# -- calls of a message


def test_complete_and_incomplete_tool_calls_are_both_calls():
    message = AIMessage(
        "",
        tool_calls=[{"name": "alpha", "args": {"x": 1}, "id": "1"}],
        invalid_tool_calls=[{"name": "beta", "args": "{broken", "id": "2", "error": "no JSON"}],
    )
    assert list(tool_calls(message)) == [("alpha", {"x": 1}), ("beta", {})]


@pytest.mark.parametrize(
    "calls", [None, "alpha", 5, [None], [{"args": {}}], [{"name": None, "args": {}}]], ids=repr
)
def test_calls_that_cannot_be_read_are_passed_over(calls):
    assert list(tool_calls({"role": "assistant", "tool_calls": calls})) == []


# -- turns


def test_a_turn_is_what_the_user_wrote_and_what_was_called_until_the_next_time():
    turns = read_turns(
        [
            SystemMessage("You are helpful."),
            HumanMessage("weather?"),
            called("weather_lookup", "stock_price"),
            answered("weather_lookup"),
            AIMessage("Sunny."),
            HumanMessage("translate it"),
            called("translate_text"),
        ]
    )
    assert [(turn.text, turn.calls) for turn in turns] == [
        ("translate it", ("translate_text",)),
        ("weather?", ("weather_lookup", "stock_price")),
    ]


def test_messages_in_the_users_name_open_no_turn():
    turns = read_turns([HumanMessage("weather?"), called("alpha"), SUMMARY, called("beta")])
    assert [(turn.text, turn.calls) for turn in turns] == [("weather?", ("alpha", "beta"))]


def test_calls_before_any_user_message_make_a_turn_without_text_or_key():
    turns = read_turns([SUMMARY, called("alpha"), HumanMessage("weather?")])
    assert [(turn.text, bool(turn.key), turn.calls) for turn in turns] == [
        ("weather?", True, ()), ("", False, ("alpha",)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "messages", [[], [AIMessage("hi"), SystemMessage("x"), answered("alpha")], [SUMMARY], [None]]
)
def test_a_conversation_without_user_or_calls_has_no_turns(messages):
    assert read_turns(messages) == []
    assert not conversation_query(read_turns(messages))


def test_a_key_stays_the_same_while_the_turn_goes_on_and_differs_from_other_turns():
    opening = HumanMessage("weather?", id="m1")
    (before,) = read_turns([opening])
    (after,) = read_turns([opening, called("alpha"), answered("alpha")])
    again, _ = read_turns([opening, HumanMessage("weather?", id="m2")])
    assert before.key == after.key != again.key


def test_a_user_message_without_words_still_opens_a_turn():
    newest, older = read_turns([HumanMessage("weather?", id="1"), HumanMessage([IMAGE], id="2")])
    assert newest.key
    assert newest.key != older.key
    assert newest.text == ""


# -- what to search for

TOOLS = [
    ToolDocument("weather_lookup", "Get the weather forecast for a city."),
    ToolDocument("create_issue", "Open an issue in the tracker."),
    ToolDocument("send_email", "Send an email to a person."),
    ToolDocument("translate_text", "Translate text to another language."),
    *(ToolDocument(f"filler_{i}", f"Does unrelated job number {i}.") for i in range(10)),
]


def found(*texts):
    turns = read_turns([HumanMessage(text, id=str(number)) for number, text in enumerate(texts)])
    catalog = ToolIndex(LexicalRanker()).sync(TOOLS)
    return [hit.name for hit in catalog.search(conversation_query(turns))]


@pytest.mark.parametrize(
    "follow_up",
    ["do it", "yes", "ok, now the second one", "and in Berlin?", "那就发吧", "👍", "", "go ahead please"],
)
def test_a_follow_up_keeps_the_tools_of_the_request_before(follow_up):
    assert found("open an issue in the tracker about the crash", follow_up)[0] == "create_issue"


def test_an_image_alone_keeps_the_tools_of_the_request_before():
    turns = read_turns([HumanMessage("translate this text", id="1"), HumanMessage([IMAGE], id="2")])
    assert [text for text, _ in conversation_query(turns).parts] == ["translate this text"]


def test_a_follow_up_to_a_follow_up_keeps_them_too():
    assert found("open an issue about the crash", "yes", "do it")[0] == "create_issue"


def test_a_long_new_request_is_not_polluted_by_the_old_one():
    new = "Now send an email to the person in charge, with a short greeting and the numbers of last week"
    assert found("open an issue in the tracker", new)[0] == "send_email"
    newest, *older = conversation_query(read_turns([HumanMessage("open an issue"), HumanMessage(new)])).parts
    assert newest == (new, 1.0)
    assert all(weight < 0.2 for _, weight in older)


def test_the_more_the_newest_text_says_the_less_the_older_ones_count():
    def weight_of_old(newest):
        turns = read_turns([HumanMessage("open an issue"), HumanMessage(newest)])
        return conversation_query(turns).parts[1][1]

    weights = [
        weight_of_old(text)
        for text in ("yes", "Berlin", "Berlin weather", "email the weather of Berlin to Anna")
    ]
    assert weights == sorted(weights, reverse=True)
    assert len(set(weights)) == len(weights)
    assert weight_of_old("Berlin " * 50) == weight_of_old("Berlin")


def test_older_turns_count_less_the_older_they_are_and_end_after_a_few():
    turns = read_turns([HumanMessage(f"request {number}") for number in range(20)])
    parts = conversation_query(turns).parts
    weights = [weight for _, weight in parts]
    assert weights[0] == 1.0
    assert weights == sorted(set(weights), reverse=True)
    assert len(parts) <= 6
    assert [text for text, _ in parts][:2] == ["request 19", "request 18"]


def test_a_query_never_holds_an_empty_text():
    turns = read_turns([HumanMessage(""), HumanMessage([IMAGE]), HumanMessage("weather"), HumanMessage("  ")])
    assert all(text.strip() for text, _ in conversation_query(turns).parts)


def test_the_same_messages_give_the_same_query_with_or_without_a_summary_in_between():
    before = [HumanMessage("open an issue", id="1"), called("create_issue")]
    assert conversation_query(read_turns(before)) == conversation_query(read_turns([*before, SUMMARY]))


def test_a_summary_is_searched_for_only_for_want_of_anything_else():
    assert summary_query([SUMMARY, AIMessage("x")]) == Query.of(SUMMARY.content)
    assert summary_query([SUMMARY, HumanMessage([IMAGE], additional_kwargs={"lc_source": "x"})]).text
    assert not summary_query([AIMessage("x"), SystemMessage("y")])
    assert not summary_query([])


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


@given(MESSAGES)
def test_no_conversation_is_too_odd_to_be_read(messages):
    query = conversation_query(read_turns(messages))
    assert all(text.strip() and 0 < weight <= 1 for text, weight in query.parts)


@pytest.mark.parametrize(
    ("text", "best", "shift"),
    [
        ("now book a flight to Lisbon", ["book_flight", "book_hotel"], True),
        ("now book a flight to Lisbon", ["book_flight", "send_email"], True),
        ("now write to Ann in Lisbon", ["send_email", "book_flight"], False),
        ("do it", ["book_flight"], False),
        ("book a flight", [], False),
    ],
)
def test_a_topic_shifts_when_a_message_of_its_own_weight_wants_another_tool_most(text, best, shift):
    turns = read_turns([{"role": "user", "content": "send an email"}, {"role": "user", "content": text}])
    assert is_topic_shift(turns, best, {"send_email"}) is shift


def test_the_first_message_shifts_no_topic():
    turns = read_turns([{"role": "user", "content": "book a flight to Lisbon"}])
    assert not is_topic_shift(turns, ["book_flight"], ())

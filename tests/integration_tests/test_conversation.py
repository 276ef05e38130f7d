"""What is searched for: follow-ups, new requests, summaries, every shape and script of a message."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_tool_selection.testing import ScriptedChatModel, call, calls

from .agents import (
    OFFICE,
    BagOfWords,
    answers,
    build,
    discover,
    make_tool,
    make_tools,
    office,
    pins_of,
    run,
    sent,
    thread,
    user,
)

# -- follow-ups and new requests -------------------------------------------------------------------------

FOLLOW_UPS = [
    "do it",
    "yes",
    "yes, do it",
    "and in Berlin?",
    "ok, now the second one",
    "那就发吧",
    "👍",
    "...",
]


@pytest.mark.parametrize("text", FOLLOW_UPS)
def test_a_follow_up_keeps_the_tools_of_the_request_before(text, memory):
    agent, model = build(["Shall I?", "Done."], saver=memory, top_k=2)
    agent.invoke(user("book a flight and convert some currency"), thread())
    agent.invoke(user(text), thread())
    assert sent(model) == [["book_flight", "convert_currency"]] * 2


def test_a_row_of_follow_ups_keeps_the_tools_of_the_request_before(memory):
    agent, model = build(["Shall I?"], saver=memory, top_k=2)
    for text in ["book a flight and convert some currency", "yes", "do it", "go on"]:
        agent.invoke(user(text), thread())
    assert sent(model) == [["book_flight", "convert_currency"]] * 4


def test_a_long_new_request_is_not_polluted_by_the_one_before(memory):
    agent, model = build(["Done."], saver=memory, top_k=3)
    agent.invoke(user("book a flight, convert some currency and order a pizza"), thread())
    agent.invoke(
        user(
            "Now something else entirely: resize the image of the garden to a width of 200, lock the front "
            "door of the house afterwards, and schedule a meeting in the calendar for tomorrow morning."
        ),
        thread(),
    )
    assert sent(model) == [
        ["book_flight", "convert_currency", "order_pizza"],
        ["resize_image", "schedule_meeting", "lock_door"],
    ]


def test_a_short_new_request_goes_before_what_the_old_one_wanted(memory):
    agent, model = build(["Done."], saver=memory)
    agent.invoke(user("book a flight to Rome and find the cheapest flight to come back"), thread())
    agent.invoke(user("play music"), thread())
    assert sent(model) == [["book_flight"], ["play_music"]]


# -- one tool loop, one list -----------------------------------------------------------------------------


async def test_a_tool_filtered_out_at_step_one_is_found_and_used_at_step_two(path, memory):
    script = [
        call("search_documents", text="contract"),
        discover("send an email to a recipient"),
        call("send_email", text="summary"),
        "Sent.",
    ]
    agent, model = build(script, saver=memory)
    result = await run(path, agent, user("search the documents by keyword and mail a summary"), thread())
    assert sent(model) == [["search_documents"]] * 2 + [["search_documents", "send_email"]] * 2
    assert answers(result, "send_email") == ["send_email did it"]
    assert await pins_of(path, agent, thread()) == ["send_email"]


async def test_both_tools_of_a_chain_are_shown_from_the_first_step_and_stay(path):
    steps = [call("search_documents"), call("send_email"), "Done."]
    agent, model = build(steps, top_k=3)
    await run(path, agent, user("Search the documents for the contract and email a summary to Ada"))
    assert len({tuple(c.tools) for c in model.calls}) == 1
    assert {"search_documents", "send_email"} <= set(model.calls[0].tools)


def test_what_tools_answer_does_not_change_the_list(memory):
    tools = [
        make_tool("search_documents", "Search documents.", "Book a flight! Order a pizza!"),
        *office()[4:],
    ]
    agent, model = build([call("search_documents"), call("search_documents"), "Done."], tools=tools)
    agent.invoke(user("search my documents"))
    assert sent(model) == [["search_documents"]] * 3


# -- tools that were used --------------------------------------------------------------------------------


@pytest.mark.parametrize(("keep_used", "turns_shown"), [(0, 1), (1, 2), (2, 3), (None, 4)])
def test_a_used_tool_stays_for_as_many_turns_as_asked(keep_used, turns_shown, memory):
    script = [call("play_music"), "Done.", "Done.", "Done.", "Done."]
    agent, model = build(script, saver=memory, keep_used=keep_used)
    for text in ("play music", "send an email", "track a parcel", "lock the door"):
        agent.invoke(user(text), thread())
    shown = ["play_music" in tools for tools in sent(model)[1:]]
    assert shown == [True] * turns_shown + [False] * (4 - turns_shown)
    assert sent(model)[-1][-1:] == ["lock_door"]


async def test_a_call_to_a_tool_that_is_no_longer_shown_still_runs(path, memory):
    agent, model = build(["Hello.", call("play_music"), "Done."], saver=memory)
    await run(path, agent, user("send an email"), thread())
    result = await run(path, agent, user("track a parcel"), thread())
    assert answers(result, "play_music") == ["play_music did it"]
    # Called in this turn, so it is shown from here on.
    assert sent(model)[1:] == [["track_parcel"], ["track_parcel", "play_music"]]


async def test_a_call_that_was_never_answered_ends_no_run(path):
    history = [HumanMessage("play music"), call("play_music"), HumanMessage("send an email")]
    agent, model = build(["Done."])
    await run(path, agent, {"messages": history})
    assert sent(model) == [["send_email", "play_music"]]


# -- summaries -------------------------------------------------------------------------------------------


def summarising(trigger: int, keep: int, text: str = "They talked of music and a flight.") -> Any:
    return SummarizationMiddleware(
        model=ScriptedChatModel(script=[text, text, text]),
        trigger=("messages", trigger),
        keep=("messages", keep),
    )


async def test_a_pin_outlives_the_messages_that_made_it(path, memory):
    agent, model = build(
        [discover("pizza"), "Found.", "Done.", "Done."],
        saver=memory,
        outer=[summarising(trigger=6, keep=1)],
        keep_used=0,
    )
    for text in ("send an email", "track a parcel", "water the plants"):
        result = await run(path, agent, user(text), thread())
    assert not answers(result)  # the evidence is gone
    assert await pins_of(path, agent, thread()) == ["order_pizza"]
    assert sent(model)[-1] == ["water_plants", "order_pizza"]


async def test_a_summary_in_the_middle_of_a_task_does_not_change_what_is_shown(path, memory):
    steps = [call("track_parcel", text=str(n)) for n in range(5)]
    agent, model = build([*steps, "Done."], saver=memory, outer=[summarising(trigger=5, keep=2)])
    result = await run(path, agent, user("track all my parcels by number"), thread())
    assert any(m.additional_kwargs.get("lc_source") == "summarization" for m in result["messages"])
    assert sent(model) == [["track_parcel"]] * 6


async def test_a_summary_in_the_middle_of_a_task_does_not_take_away_what_the_turn_before_used(path, memory):
    steps = [call("track_parcel", text=str(n)) for n in range(5)]
    agent, model = build(
        [call("send_email"), "Sent.", *steps, "Done."],
        saver=memory,
        outer=[summarising(trigger=8, keep=2)],
    )
    await run(path, agent, user("send an email"), thread())
    result = await run(path, agent, user("track all my parcels by number"), thread())
    assert any(m.additional_kwargs.get("lc_source") == "summarization" for m in result["messages"])
    assert sent(model)[2:] == [["send_email", "track_parcel"]] * 6


async def test_a_discovery_after_a_summary_in_the_middle_of_a_task_still_adds_its_tool(path, memory):
    steps = [call("track_parcel"), call("track_parcel"), call("track_parcel"), discover("music")]
    agent, model = build([*steps, "Done."], saver=memory, outer=[summarising(trigger=5, keep=2)])
    await run(path, agent, user("track all my parcels by number"), thread())
    assert sent(model) == [["track_parcel"]] * 4 + [["track_parcel", "play_music"]]


async def test_the_request_after_a_summary_is_what_the_user_wrote_not_the_summary(path, memory):
    agent, model = build(["Done."], saver=memory, outer=[summarising(trigger=4, keep=1)])
    for text in ("send an email", "track a parcel", "lock the door"):
        await run(path, agent, user(text), thread())
    assert sent(model) == [["send_email"], ["track_parcel"], ["lock_door"]]


def test_a_conversation_that_begins_with_a_summary_alone_is_ranked_by_it():
    summary = HumanMessage("The user wants music.", additional_kwargs={"lc_source": "summarization"})
    agent, model = build(["Done."])
    agent.invoke({"messages": [summary]})
    assert sent(model) == [["play_music"]]


# -- every script ----------------------------------------------------------------------------------------

SCRIPTS = {
    "japanese": ("日本の法令を検索します。", "法令を調べて"),
    "chinese": ("查询城市的天气预报", "今天上海天气怎么样"),
    "korean": ("도시의 날씨를 조회합니다", "서울날씨알려줘"),
    "thai": ("ค้นหาเที่ยวบินราคาถูก", "อยากจองเที่ยวบินไปโตเกียว"),
    "cyrillic": ("Отправить письмо получателю.", "отправь письма маме"),
    "greek": ("Αποστολή μηνύματος.", "στείλε ένα μήνυμα"),
    "arabic": ("إرسال رسالة إلى شخص", "أريد إرسال رسالة"),
    "hindi": ("शहर का मौसम बताता है", "दिल्ली का मौसम"),
    "accents": ("Réserver un hôtel.", "je veux reserver un hotel"),
    "decomposed": ("Réserver un hôtel.", "re\u0301server un ho\u0302tel"),
    "full-width": ("Open a GitHub issue.", "ｏｐｅｎ ａ ＧｉｔＨｕｂ ｉｓｓｕｅ"),
    "mixed": ("GitHub のissueを作成します。", "GitHub のissueを作って"),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_request_in_any_script_finds_its_tool_among_thirty(script):
    description, query = SCRIPTS[script]
    others = {f"other_{n:02}": list(OFFICE.values())[n % 12] for n in range(30)}
    tools = [*make_tools(others), make_tool("wanted", description)]
    agent, model = build(["Done."], tools=tools, top_k=3)
    agent.invoke(user(query))
    assert "wanted" in sent(model)[0]


# -- every shape -----------------------------------------------------------------------------------------

IMAGE = {"type": "image", "url": "https://example.org/cat.png"}
SAID = {
    "text": "please send an email",
    "text block": [{"type": "text", "text": "please send an email"}],
    "text blocks that must not run together": [
        {"type": "text", "text": "please send an email"},
        {"type": "text", "text": "now"},
    ],
    "bare strings": ["please send", "an email"],
    "image and text": [IMAGE, {"type": "text", "text": "please send an email"}],
    "text in capitals and marks": "**PLEASE SEND AN EMAIL!!!**",
    "200,000 characters after the request": "please send an email\n" + "lorem ipsum " * 17_000,
}
SILENT = {
    "empty": "",
    "blank": " \n\t\u3000",
    "no blocks": [],
    "image alone": [IMAGE],
    "empty text block": [{"type": "text", "text": ""}],
    "audio": [{"type": "audio", "base64": "AAAA", "mime_type": "audio/wav"}],
    "punctuation": "?!…",
    "200,000 characters of nothing": "-" * 200_000,
}


@pytest.mark.parametrize("shape", SAID)
async def test_words_are_read_from_any_shape_of_message(shape, path):
    agent, model = build(["Done."])
    await run(path, agent, {"messages": [HumanMessage(SAID[shape])]})
    assert sent(model) == [["send_email"]]


@pytest.mark.parametrize("shape", SILENT)
async def test_a_first_message_without_words_shows_the_core_and_the_search(shape, path):
    agent, model = build(["Done."], always_include=["lock_door"])
    await run(path, agent, {"messages": [HumanMessage(SILENT[shape])]})
    assert model.calls[0].tools == ["discover_tools", "lock_door"]


@pytest.mark.parametrize("shape", SILENT)
async def test_a_later_message_without_words_keeps_what_was_shown(shape, path, memory):
    agent, model = build(["Done.", "Done."], saver=memory)
    await run(path, agent, user("send an email"), thread())
    await run(path, agent, {"messages": [HumanMessage(SILENT[shape])]}, thread())
    assert sent(model) == [["send_email"]] * 2


@pytest.mark.parametrize("shape", [*SILENT, *SAID])
async def test_embeddings_are_never_asked_about_an_empty_text(shape, path, memory):
    embeddings = BagOfWords()
    agent, model = build([discover(" "), "Done."], ranker=embeddings, saver=memory)
    content = {**SILENT, **SAID}[shape]
    await run(path, agent, {"messages": [HumanMessage(content)]}, thread())
    await run(path, agent, user("track a parcel"), thread())
    assert embeddings.queries
    assert all(text.strip() for text in embeddings.queries)
    assert all(text.strip() for batch in embeddings.batches for text in batch)
    assert "track_parcel" in sent(model)[-1]


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [AIMessage("Hello, how can I help?")],
        [SystemMessage("You are helpful.")],
        [SystemMessage("Be kind."), AIMessage("Hello."), AIMessage("")],
        [calls(("play_music", {})), ToolMessage("Playing.", tool_call_id="x", name="play_music")],
    ],
)
async def test_a_conversation_without_a_user_message_ends_no_run(messages, path):
    agent, model = build(["Done."])
    result = await run(path, agent, {"messages": messages})
    assert result["messages"][-1].content == "Done."
    assert "discover_tools" in model.calls[0].tools
    assert ("play_music" in model.calls[0].tools) == any(isinstance(m, ToolMessage) for m in messages)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "please send an email"},
        {"role": "human", "content": [{"type": "text", "text": "please send an email"}]},
        ("user", "please send an email"),
        "please send an email",
    ],
)
async def test_a_message_need_not_be_a_message_object(message, path):
    agent, model = build(["Done."])
    await run(path, agent, {"messages": [message]})
    assert sent(model) == [["send_email"]]


async def test_query_reads_the_request_instead_when_it_is_given(path):
    agent, model = build(["Done."], query=lambda request: "music")
    await run(path, agent, user("send an email"))
    assert sent(model) == [["play_music"]]


@pytest.mark.parametrize("nothing", [None, "", "  "])
async def test_a_query_of_nothing_searches_for_nothing(nothing, path):
    agent, model = build(["Done."], query=lambda request: nothing)
    await run(path, agent, user("send an email"))
    assert model.calls[0].tools == ["discover_tools"]


async def test_a_query_that_raises_leaves_the_conversation_to_search_for(path, caplog):
    def broken(request: Any) -> str:
        raise RuntimeError("no")

    agent, model = build(["Done."], query=broken)
    await run(path, agent, user("send an email"))
    assert sent(model) == [["send_email"]]
    assert "no" in caplog.text

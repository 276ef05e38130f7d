"""What `LexicalRanker` promises beyond the contract of every ranker."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_tool_selection import FieldWeights, LexicalRanker, Query, ToolDocument, ToolIndex

DISTRACTORS = [
    ToolDocument(f"{verb}_{noun}", f"{verb.title()} a {noun} in the workspace.", (("id", f"Which {noun}."),))
    for verb in ("create", "delete", "update", "list", "archive")
    for noun in ("page", "user", "team", "label", "invoice", "webhook")
]


def rank(tools, text, **options):
    return LexicalRanker(**options).rank(Query.of(text), tuple(tools))


def names(hits):
    return [hit.name for hit in hits]


# -- what it finds, among thirty others


@pytest.mark.parametrize(
    ("description", "text"),
    [
        ("日本の法令を検索します。", "法令を調べて"),
        ("查询城市的天气预报", "北京天气怎么样"),
        ("캘린더에 일정을 추가합니다", "내일일정추가해줘"),
        ("Создаёт новую задачу в трекере", "создай мне задачи"),
        ("الحصول على حالة الطقس في المدينة", "ما هو الطقس اليوم؟"),
        ("Réserve une chambre d'hôtel", "je voudrais l'HOTEL"),
        ("Búsqueda de vuelos", "busqueda de un vuelo"),
        ("ค้นหาเที่ยวบินราคาถูก", "อยากได้เที่ยวบิน"),
        ("शहर का मौसम बताता है", "आज मौसम कैसा है"),
        ("Αναζήτηση αρχείων", "αναζητηση αρχειου"),
        ("Search ＧＩＴＨＵＢ code", "GitHub のcodeを探して"),
    ],
)
def test_a_request_in_any_script_finds_its_tool(description, text):
    tools = [*DISTRACTORS[:15], ToolDocument("wanted", description), *DISTRACTORS[15:]]
    assert names(rank(tools, text))[:1] == ["wanted"]


@pytest.mark.parametrize(
    "name", ["createTicket", "jira.create-ticket", "JIRA_CREATE_TICKET", "create_ticket"]
)
def test_a_request_finds_every_way_of_writing_a_name(name):
    assert names(rank([*DISTRACTORS, ToolDocument(name)], "create a ticket"))[0] == name


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("put it in my calender", "create_calendar_event"),
        ("trasnlate this", "translate_text"),
        ("show the wether", "weather_lookup"),
    ],
)
def test_a_typo_finds_the_tool(text, wanted):
    tools = [
        *DISTRACTORS,
        ToolDocument("create_calendar_event", "Put an appointment into the calendar."),
        ToolDocument("translate_text", "Translate text."),
        ToolDocument("weather_lookup", "Get the weather."),
    ]
    assert names(rank(tools, text))[0] == wanted


def test_a_word_spelled_right_counts_more_than_one_found_through_its_spelling():
    tools = (ToolDocument("calender_machine", "Calender paper."), ToolDocument("calendar", "Paper calendar."))
    assert names(rank(tools, "calender"))[0] == "calender_machine"
    (right,) = rank(tools[1:], "calendar")
    (wrong,) = rank(tools[1:], "calender")
    assert 0 < wrong.score < right.score


@pytest.mark.parametrize(
    "text",
    ["quantum entanglement", "天気", "!!! ???", "the of and please", "xq", "I need to crunch some numbers"],
)
def test_a_request_that_shares_no_word_gets_no_hits(text):
    assert rank(DISTRACTORS, text) == []


# -- what counts how much


def test_a_tool_whose_whole_name_is_asked_for_comes_before_its_longer_sibling():
    tools = [
        ToolDocument("create_issue_comment", "Create a comment on an issue."),
        ToolDocument("create_issue", "Create an issue."),
    ]
    assert names(rank([*DISTRACTORS, *tools], "create an issue"))[0] == "create_issue"
    assert names(rank([*DISTRACTORS, *tools], "create a comment on the issue"))[0] == "create_issue_comment"


def test_a_rare_word_counts_more_than_a_common_one():
    tools = [*DISTRACTORS, ToolDocument("rotate_certificate", "Rotate a certificate in the workspace.")]
    assert names(rank(tools, "workspace certificate"))[0] == "rotate_certificate"


def test_repeating_a_word_gains_next_to_nothing():
    plain = ToolDocument("send_invoice", "Send an invoice to a customer.")
    stuffed = ToolDocument("do_stuff", "invoice " * 50)
    assert names(rank([*DISTRACTORS[:4], stuffed, plain], "send an invoice"))[0] == "send_invoice"


def test_a_long_description_does_not_lose_to_a_short_one_that_says_less():
    long = ToolDocument("send_invoice", "Send an invoice. " + "Works with any account and plan. " * 40)
    short = ToolDocument("send_ping", "Send.")
    assert names(rank([*DISTRACTORS, short, long], "send an invoice"))[0] == "send_invoice"


@pytest.mark.parametrize(
    "document",
    [
        ToolDocument("wanted_zebra"),
        ToolDocument("wanted", "A zebra."),
        ToolDocument("wanted", parameters=(("zebra", ""),)),
        ToolDocument("wanted", parameters=(("x", "The zebra."),)),
        ToolDocument("wanted", examples=("find my zebra",)),
        ToolDocument("wanted", tags=("zebra",)),
        ToolDocument("wanted", domain="zebra"),
    ],
    ids=["name", "description", "parameter name", "parameter description", "example", "tag", "domain"],
)
def test_every_field_is_searched(document):
    assert names(rank([*DISTRACTORS, document], "zebra")) == [document.name]


def test_a_field_without_weight_is_not_searched():
    tools = [*DISTRACTORS, ToolDocument("wanted", "A zebra.", tags=("lion",))]
    assert rank(tools, "zebra", weights=FieldWeights(description=0)) == []
    assert names(rank(tools, "lion", weights=FieldWeights(description=0))) == ["wanted"]


def test_a_word_in_the_name_counts_more_than_one_in_the_description():
    tools = [ToolDocument("alpha", "About zebra."), ToolDocument("zebra", "About alpha.")]
    assert names(rank(tools, "zebra"))[0] == "zebra"


# -- the incremental index

WORDS = ["open", "close", "file", "mail", "issue", "user", "calendar", "天気", "файл"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
variants = st.builds(
    lambda description, tags, parameters: (description, tuple(tags), tuple((name, name) for name in parameters)),
    texts, st.lists(st.sampled_from(WORDS), max_size=2), st.lists(st.sampled_from(WORDS), max_size=3),
)  # fmt: skip
catalogues = st.dictionaries(
    st.sampled_from([f"{a}_{b}" for a in WORDS[:5] for b in WORDS[:4]]), variants, max_size=8
)


@st.composite
def histories(draw):
    """Draw catalogues of which each keeps most of the one before, and some of them in another order."""
    current = draw(catalogues)
    history = [current]
    for _ in range(draw(st.integers(1, 4))):
        removed = draw(st.sets(st.sampled_from(sorted(current)), max_size=2)) if current else set()
        current = {name: value for name, value in current.items() if name not in removed} | draw(
            st.dictionaries(st.sampled_from([*current, "new_file", "new_mail"]), variants, max_size=2)
        )
        if draw(st.booleans()):
            current = dict(reversed(current.items()))
        history.append(current)
    # Beside thirty tools that stay: an index is only grown while most of its tools do.
    return [
        (
            *DISTRACTORS,
            *(
                ToolDocument(name, text, parameters, (), tags)
                for name, (text, tags, parameters) in state.items()
            ),
        )
        for state in history
    ]


@settings(max_examples=100, deadline=None)
@given(history=histories(), text=texts)
def test_an_index_that_grew_equals_one_made_afresh(history, text):
    grown = LexicalRanker()
    query = Query(((text, 1.0), ("fiel calender", 0.4)))
    for tools in history:
        hits, fresh = grown.rank(query, tools), LexicalRanker().rank(query, tools)
        assert dict(hits) == pytest.approx(dict(fresh), abs=1e-5)
        assert names(hits) == names(fresh)


def test_a_large_index_that_grew_equals_one_made_afresh():
    # More tools match than the name bonus looks at, so which of them get it must not depend on history.
    tools = [ToolDocument(f"list_item{number}x", f"List the item {number % 7}.") for number in range(300)]
    grown = LexicalRanker()
    for registered in (tools[50:], tools, tools[:20] + tools[60:], tools[::-1]):
        query = Query.of("list item")
        hits = grown.rank(query, tuple(registered))
        fresh = LexicalRanker().rank(query, tuple(registered))
        assert dict(hits) == pytest.approx(dict(fresh), abs=1e-5)
        assert names(hits) == names(fresh)


def test_tools_of_equal_fit_have_equal_scores_however_many_there_are():
    tools = [ToolDocument(f"list_q{number}z", "Show things.") for number in range(300)]
    hits = rank(tools, "list")
    assert len({hit.score for hit in hits}) == 1
    assert names(hits) == [tool.name for tool in tools]


def test_an_empty_catalogue_in_between_does_no_harm():
    ranker = LexicalRanker()
    for tools in (DISTRACTORS, [], DISTRACTORS, DISTRACTORS[:1], []):
        assert ranker.rank(Query.of("archive a webhook"), tuple(tools)) == rank(tools, "archive a webhook")


def test_documents_may_come_as_a_list_that_changes_later():
    ranker = LexicalRanker()
    tools = [ToolDocument("a", "zebra")]
    assert names(ranker.rank(Query.of("zebra"), tools)) == ["a"]
    tools[0] = ToolDocument("b", "zebra lion")
    assert names(ranker.rank(Query.of("lion"), tools)) == ["b"]


def test_words_of_other_catalogues_do_not_correct_the_spelling_here():
    ranker = LexicalRanker()
    ranker.rank(Query.of("calender"), (ToolDocument("calendar_event"),))
    assert ranker.rank(Query.of("calender"), (ToolDocument("weather_lookup"),)) == []
    assert names(ranker.rank(Query.of("calender"), (ToolDocument("calendar_event"),))) == ["calendar_event"]


def test_many_threads_that_change_the_catalogue_each_see_their_own():
    ranker = LexicalRanker()

    def work(worker):
        for step in range(20):
            own = ToolDocument(f"own{worker}_{step}", f"Zebra{worker}q{step} and calendar.")
            tools = (*DISTRACTORS[worker:], own)
            assert names(ranker.rank(Query.of(f"zebra{worker}q{step}"), tools)) == [own.name]
            assert names(ranker.rank(Query.of("calender"), tools)) == [own.name]
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_a_very_long_request_and_a_very_long_description_are_ranked():
    tools = [*DISTRACTORS, ToolDocument("zebra", "zebra lion " * 50_000)]
    assert names(ToolIndex().sync(tools).search(Query.of("zebra " + "noise " * 50_000))) == ["zebra"]

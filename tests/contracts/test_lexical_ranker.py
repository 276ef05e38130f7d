"""What `LexicalRanker` promises beyond the contract of every ranker."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_tool_selection import FieldWeights, LexicalRanker, Query, ToolDocument, ToolIndex

DISTRACTORS = [
    ToolDocument(f"{verb}_{noun}", f"{verb.title()} a {noun} in the workspace.", (("id", f"Which {noun}."),))
    for verb in ("create", "delete", "update", "list", "archive")
    for noun in ("page", "user", "team", "label", "invoice", "webhook")
]


def rank(tools, text, *, limit=None, **options):
    return LexicalRanker(**options).rank(Query.of(text), tuple(tools), limit=limit)


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


# -- several wishes in one request


WISHES = ["Invoice the customer", "Rotate the certificate", "Translate the letter"]
WORDY = (
    "Then archive each page and label and webhook of the user and the team and the invoice in the workspace, "
    "and list and update and delete and create a page, a user, a team, a label, an invoice and a webhook"
)
WISHED = [
    ToolDocument("invoice_customer", "Sends an invoice."),
    ToolDocument("rotate_certificate", "Makes a new certificate."),
    ToolDocument("translate_letter", "Translates it."),
]


@pytest.mark.parametrize("end", [". ", "! ", "; ", "\n", ".\n", "\n- "])
def test_each_of_several_sentences_finds_its_tool_although_one_is_wordy(end):
    said = "revenue margin forecast region currency chart audience appendix deadline owner template quarter".split()
    reports = [
        ToolDocument(f"report{number}q", f"Write a report: {', '.join((said * 2)[number : number + 5])}.")
        for number in range(8)
    ]
    others = [
        ToolDocument("set_brightness", "Dims or brightens a lamp."),
        ToolDocument("call_relative", "Phones a grandmother."),
    ]
    wishes = [f"Write the report with {', '.join(said)}", "Dim the lamp", "Phone my grandmother"]
    wanted = {"set_brightness", "call_relative"}
    assert wanted <= set(names(rank([*reports, *others], end.join(wishes)))[:8])
    assert not wanted <= set(names(rank([*reports, *others], ", ".join(wishes)))[:8])


def test_the_best_score_is_that_of_the_request_as_a_whole_and_a_sentence_of_nothing_changes_none():
    tools = [*DISTRACTORS, *WISHED]
    plain = rank(tools, "rotate the certificate of the team")
    assert rank(tools, "Hello! Rotate the certificate of the team. Thanks a lot!") == plain


def pasted(lines):
    """Return a request of so many lines, each of which asks for what no other does."""
    return "\n".join(f"zebra{number}q of lion{number}q" for number in range(lines))


def test_more_sentences_than_a_list_of_wishes_has_are_scored_as_a_whole():
    tools = [ToolDocument(f"zebra{number}q", f"A lion{number}q.") for number in range(20)]
    one_line = {count: pasted(count).replace("\n", ", ") for count in (12, 13)}
    assert rank(tools, pasted(13)) == rank(tools, one_line[13])
    assert rank([*tools, *DISTRACTORS], pasted(13)) == rank([*tools, *DISTRACTORS], one_line[13])
    # Up to twelve count one by one, which shows where two share a tool.
    both = [ToolDocument("both", "zebra1q lion2q"), *tools]
    assert rank(both, pasted(12)) != rank(both, one_line[12])


def test_sentences_of_earlier_messages_are_not_scored_one_by_one():
    earlier = "Update the label of the invoice. Rotate the certificate."
    tools = (*DISTRACTORS, *WISHED)
    asked = [
        LexicalRanker().rank(Query((("archive it", 1.0), (text, 0.5))), tools)
        for text in (earlier, earlier.replace(".", ","))
    ]
    assert asked[0] == asked[1]


# -- tools of one server


@st.composite
def servers(draw):
    """Draw up to four servers, one of them perhaps unknown, and a server for each distractor."""
    known = draw(st.lists(st.sampled_from(["", "crm", "wiki", "billing"]), min_size=1, max_size=4))
    return [replace(tool, domain=draw(st.sampled_from(known))) for tool in DISTRACTORS]


def domain_of(tools, name):
    return next(tool.domain for tool in tools if tool.name == name)


def without_servers(tools, text):
    """Rank the same tools of no known server: no request here says the name of one."""
    return rank([replace(tool, domain="") for tool in tools], text)


REQUESTS = [f"{verb} the {noun} of my {other}" for verb, noun, other in
            [("create", "page", "team"), ("list", "label", "invoice"), ("archive", "user", "webhook")]]  # fmt: skip


@settings(max_examples=examples(60), deadline=None)
@given(tools=servers(), text=st.sampled_from(REQUESTS))
def test_the_server_of_a_tool_changes_neither_the_first_place_nor_its_score_nor_what_is_found(tools, text):
    hits, alone = rank(tools, text), without_servers(tools, text)
    assert hits[0].name == alone[0].name
    assert hits[0].score == pytest.approx(alone[0].score, rel=1e-5)
    assert set(names(hits)) == set(names(alone))
    # Its best five gain, if anything; what a server has beyond them gives way to others.
    for domain in {tool.domain for tool in tools}:
        scores = [(name, score) for name, score in hits if domain_of(tools, name) == domain]
        in_full = scores[:5] if domain and len({tool.domain for tool in tools}) > 1 else scores
        assert all(score >= dict(alone)[name] * (1 - 1e-5) for name, score in in_full)


@pytest.mark.parametrize("domain", ["", "crm"], ids=["no server", "one server"])
def test_a_catalogue_without_servers_or_of_one_is_left_alone(domain):
    tools = [replace(tool, domain=domain) for tool in DISTRACTORS]
    for text in REQUESTS:
        assert rank(tools, text) == without_servers(tools, text)


def test_a_catalogue_with_a_server_for_each_tool_is_left_alone():
    tools = [replace(tool, domain=f"server{number}q") for number, tool in enumerate(DISTRACTORS)]
    for text in REQUESTS:
        assert rank(tools, text) == without_servers(tools, text)


def test_a_tool_beside_the_one_that_fits_best_comes_before_its_equal_elsewhere():
    tools = [
        ToolDocument("tool_one", "Open a file.", domain="disk"),
        ToolDocument("tool_two", "Open a file.", domain="disk"),
        ToolDocument("tool_six", "Open a file.", domain="deck"),
        ToolDocument("add_slide", "Add a slide to a file.", domain="deck"),
    ]
    text = "add a slide to the file"
    assert names(without_servers(tools, text)) == ["add_slide", "tool_one", "tool_two", "tool_six"]
    assert names(rank(tools, text)) == ["add_slide", "tool_six", "tool_one", "tool_two"]


def test_tools_of_no_known_server_are_no_neighbours():
    best, other, elsewhere = (
        ToolDocument("add_slide", "Add a slide to a file."),
        ToolDocument("tool_one", "Open a file."),
        ToolDocument("tool_two", "Open a file.", domain="disk"),
    )
    beside = [ToolDocument(f"tool{number}q", domain="disk") for number in range(4)]
    hits = dict(rank([best, other, elsewhere, *beside], "add a slide to the file"))
    assert hits["tool_one"] == pytest.approx(hits["tool_two"])


# -- a server with many tools


def issues(count, domain, said=""):
    """Return tools of one server that all match a request for issues, the more so the earlier they come."""
    return [
        ToolDocument(f"issue_{domain}{number}q", f"Handles issues. {said} {'Part of it. ' * number}", domain=domain)
        for number in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("limit", [15, None])
def test_a_server_leaves_room_for_other_servers_that_match_less(limit):
    crowd = issues(50, "flood", "File, open, close, assign, label, merge and search any issue.")
    others = [
        ToolDocument(f"tool{number}q", "Open and label an issue.", domain=f"other{number}q")
        for number in range(4)
    ]
    hits = rank([*crowd, *others, *DISTRACTORS], "open, close and label the issue", limit=limit)
    assert {tool.name for tool in others} <= set(names(hits)[:15])
    assert names(hits)[:5] == [tool.name for tool in crowd[:5]]


def test_ten_tools_of_one_server_come_first_where_no_other_server_matches():
    wanted = issues(10, "github")
    others = [replace(tool, domain="crm") for tool in DISTRACTORS]
    assert names(rank([*others, *wanted], "all that there is for issues")) == [tool.name for tool in wanted]


def test_tools_of_no_known_server_are_no_crowd():
    crowd, other = issues(20, ""), ToolDocument("tool", "An issue.", domain="other")
    beside = [replace(tool, domain="crm") for tool in DISTRACTORS]
    assert names(rank([other, *crowd, *beside], "issues"))[:20] == [tool.name for tool in crowd]


@settings(max_examples=examples(100), deadline=None)
@given(tools=servers(), text=st.sampled_from(REQUESTS), limit=st.integers(1, 30))
@pytest.mark.slow
def test_a_crowd_keeps_its_own_order_and_a_limit_only_cuts_the_list(tools, text, limit):
    hits, alone = rank(tools, text), without_servers(tools, text)
    assert rank(tools, text, limit=limit) == hits[:limit]
    for domain in {tool.domain for tool in tools}:
        inside = {tool.name for tool in tools if tool.domain == domain}
        assert [n for n in names(hits) if n in inside] == [n for n in names(alone) if n in inside]


# -- words that are there to be found

OFFERED = {
    "send_email": "Sends a message to one or more recipients, with attachments.",
    "create_invoice": "Bills a customer for the positions of an order.",
    "track_parcel": "Tells where a shipment is and when it arrives.",
    "resize_image": "Scales a picture to a width and a height in pixels.",
    "convert_currency": "Exchanges an amount at the rate of the day.",
    "schedule_meeting": "Puts an appointment into the calendars of everybody invited.",
    "translate_text": "Renders a passage in another language and keeps its tone.",
    "search_documents": "Finds pages and files by keyword, author or date.",
    "book_flight": "Reserves seats on a plane between two airports.",
    "play_music": "Starts a song, an album or a playlist on a speaker.",
    "weather_forecast": "Says how warm, wet and windy a city is going to be.",
    "deploy_service": "Rolls a release out to a cluster and watches its health.",
    "rotate_certificate": "Replaces the key of a host before it expires.",
    "merge_branch": "Combines two lines of work in a repository.",
    "lock_door": "Secures the entrance of a house and reports its battery.",
    "water_plants": "Opens the valve in the garden for some minutes.",
}


@st.composite
def stuffed(draw):
    """Draw a request in words of one tool, and a catalogue in which another has repeated them."""
    target, other = draw(st.lists(st.sampled_from(sorted(OFFERED)), min_size=2, max_size=2, unique=True))
    said = [word.strip(",.").casefold() for word in OFFERED[target].split()]
    words = draw(st.lists(st.sampled_from(target.split("_")), min_size=1, unique=True))
    words += draw(st.lists(st.sampled_from(said), max_size=len(said), unique=True))
    asked = draw(st.permutations(words))
    appended = (draw(st.lists(st.sampled_from(asked), max_size=200)) * draw(st.integers(1, 20)))[:200]
    tools = OFFERED | {other: f"{OFFERED[other]} {' '.join(appended)}"}
    return " ".join(asked), target, other, [ToolDocument(*tool) for tool in tools.items()]


@settings(max_examples=examples(500), deadline=None)
@given(stuffed())
@pytest.mark.slow
def test_words_of_a_request_never_lift_a_tool_above_the_one_whose_name_and_description_say_them(case):
    """At least half of its name is asked for, and each other word of the request is in its description, once.

    So far goes what words can tell. Of words that no other tool says, nobody knows that they are not meant.
    """
    text, target, other, tools = case
    found = names(rank(tools, text))
    assert target in found
    assert other not in found[: found.index(target)]


@pytest.mark.parametrize("times", [2, 5, 50, 1_000])
@pytest.mark.parametrize("field", ["description", "parameters", "examples"])
def test_a_word_that_is_said_again_and_again_counts_a_quarter_more_at_most(field, times):
    def text(count):
        said = f"{'zebra ' * count or 'plain '}and something about the workspace of the customer"
        return {"description": said, "parameters": (("x", said),)}.get(field, (said,))

    once, often = (ToolDocument(f"t{count}", **{field: text(count)}) for count in (1, times))
    other = [ToolDocument(f"other{number}q", **{field: text(0)}) for number in range(20)]
    hits = dict(rank([*other, once, often], "zebra"))
    assert hits[often.name] <= 1.25 * hits[once.name]


def test_repeated_words_of_a_name_count_once():
    once, often = ToolDocument("zebra_lion"), ToolDocument("zebra_zebra_zebra_lion")
    hits = dict(rank([*DISTRACTORS, once, often], "zebra"))
    assert hits["zebra_lion"] == pytest.approx(hits["zebra_zebra_zebra_lion"])


@pytest.mark.parametrize("count", [1, 40])
@pytest.mark.parametrize("field", ["description", "parameters", "examples", "tags"])
@pytest.mark.slow
def test_tools_that_say_every_word_there_is_come_behind_those_that_are_asked_for(field, count):
    dictionary = " ".join([*OFFERED, *OFFERED.values(), *(f"word{number}q" for number in range(2_000))])
    words = dictionary.replace("_", " ").split()
    said = {"description": dictionary, "parameters": tuple((word, word) for word in words)}
    flood = [
        ToolDocument(f"all_{number}q", **{field: said.get(field, tuple(words))}) for number in range(count)
    ]
    tools = [ToolDocument(*tool) for tool in OFFERED.items()]
    for name in OFFERED:
        assert names(rank([*flood, *tools], f"please {name.replace('_', ' ')} for me"))[0] == name


def test_a_name_of_many_words_comes_behind_the_name_that_is_asked_for():
    long = ToolDocument("search_create_delete_update_get_list_send_email_calendar", "Send an email.")
    short = ToolDocument("send_email", "Delivers it.")
    assert names(rank([*DISTRACTORS, long, short], "send an email"))[0] == "send_email"


def test_hints_of_a_few_words_count_in_full_and_thousands_count_next_to_nothing():
    one, few, many = (
        ToolDocument(f"t{count}", tags=("zebra", *["lion"] * (count - 1))) for count in (1, 4, 3_000)
    )
    scores = dict(rank([*DISTRACTORS, many, few, one], "zebra"))
    assert scores["t4"] == scores["t1"] > 10 * scores["t3000"]


def test_what_is_allowed_changes_no_score_of_a_neighbour_or_of_a_sentence():
    tools = [replace(tool, domain=tool.name.partition("_")[0]) for tool in [*DISTRACTORS, *WISHED]]
    catalog, query = ToolIndex(LexicalRanker()).sync(tools), Query.of(". ".join([WORDY, *WISHES]))
    hits = catalog.search(query)
    for hidden in (hits[0].name, hits[3].name):
        allowed = {tool.name for tool in tools} - {hidden}
        assert catalog.search(query, allowed=allowed) == [hit for hit in hits if hit.name != hidden]


def test_an_explained_score_is_the_score_that_ranks():
    tools = tuple(replace(tool, domain=tool.name.partition("_")[0]) for tool in [*DISTRACTORS, *WISHED])
    ranker, query = LexicalRanker(), Query(((". ".join([WORDY, *WISHES]), 1.0), ("a customer", 0.5)))
    hits = dict(ranker.rank(query, tools))
    explained = ranker.explain(query, tools, [tool.name for tool in tools])
    assert {name: score for name, (score, _) in explained.items() if score} == hits


# -- the incremental index

SERVED = [replace(tool, domain=["", "crm", "wiki"][number % 3]) for number, tool in enumerate(DISTRACTORS)]
WORDS = ["open", "close", "file", "mail", "issue", "user", "calendar", "天気", "файл"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
variants = st.builds(
    lambda description, tags, parameters, domain: (
        description, tuple(tags), tuple((name, name) for name in parameters), domain
    ),
    texts, st.lists(st.sampled_from(WORDS), max_size=2), st.lists(st.sampled_from(WORDS), max_size=3),
    st.sampled_from(["", "crm", "wiki", "mail"]),
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
            *SERVED,
            *(
                ToolDocument(name, text, parameters, (), tags, domain)
                for name, (text, tags, parameters, domain) in state.items()
            ),
        )
        for state in history
    ]


@settings(max_examples=examples(100), deadline=None)
@given(history=histories(), text=texts)
@pytest.mark.slow
def test_an_index_that_grew_equals_one_made_afresh(history, text):
    grown = LexicalRanker()
    query = Query(((f"{text}. {text[::-1]} user. Open files", 1.0), ("fiel calender", 0.4)))
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
            own = ToolDocument(
                f"own{worker}_{step}", f"Zebra{worker}q{step} and calendar.", domain=f"own{worker}q"
            )
            tools = (*SERVED[worker:], own)
            assert names(ranker.rank(Query.of(f"zebra{worker}q{step}"), tools)) == [own.name]
            assert names(ranker.rank(Query.of("calender"), tools)) == [own.name]
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_a_very_long_request_and_a_very_long_description_are_ranked():
    tools = [*DISTRACTORS, ToolDocument("zebra", "zebra lion " * 50_000)]
    assert names(ToolIndex().sync(tools).search(Query.of("zebra " + "noise " * 50_000))) == ["zebra"]

"""How the text of a request and of a tool come to meet, seen in what the default ranker finds."""

from __future__ import annotations

import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tool_selection import LexicalRanker, Query, ToolDocument, ToolIndex

OTHERS = tuple(ToolDocument(f"zq{number}", f"qx{number} qy{number} qz{number}.") for number in range(8))
RANKER = LexicalRanker()
MAX_CHARACTERS = 20_000
"""Text beyond this is not read."""


def score(request: str, text: str = "", *, name: str = "xqx") -> float:
    """Return how well a request finds a tool of this text, among some that say nothing; 0 if not at all."""
    hits = dict(RANKER.rank(Query.of(request), (ToolDocument(name, text), *OTHERS)))
    assert not hits.keys() - {name}
    return hits.get(name, 0.0)


# -- identifiers


@pytest.mark.parametrize(
    "name",
    ["createIssue", "create_issue", "create-issue", "jira.create-issue", "JIRA_CREATE_ISSUE", "jiraCreateIssue",
     "CreateIssue", "jira/create issue"],
)  # fmt: skip
@pytest.mark.parametrize("word", ["create", "issue"])
def test_a_request_meets_every_way_of_writing_an_identifier(name, word):
    assert score(f"the {word}, please", name=name)
    assert score("create an issue", name=name) > score(f"the {word}", name=name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("getPRDiff", ["get", "PR", "diff"]),
        ("parseHTMLPage", ["parse", "HTML", "page"]),
        ("s3_put", ["put", "s3"]),
        ("k8s_get_pods", ["get", "k8s", "pods"]),
        ("HTTP2Client", ["http2client"]),
    ],
)
def test_acronyms_and_digits_inside_identifiers_are_found(name, words):
    assert all(score(word, name=name) for word in words)


def test_a_word_with_inner_capitals_is_indexed_whole_and_in_parts():
    assert score("github", "GitHub")
    assert score("hub", "GitHub")


def test_plural_and_inflected_words_meet():
    assert score("issues", "issue")
    assert score("listing files", "list file")
    assert score("задача", "задачи")
    assert score("новый", "новая")


def test_a_word_of_a_request_counts_once():
    assert score("the file, the File, please", "file") == score("file", "file") > 0


def test_stop_words_of_a_request_are_searched_for_by_nobody():
    assert not score("Can you please do this for me?", "Can you please do this for me about it?")


@pytest.mark.parametrize("verb", ["get", "list", "find", "send", "check", "show", "make", "open"])
def test_verbs_that_tools_are_named_after_are_no_stop_words(verb):
    assert score(verb, name=f"{verb}_it")


# -- apostrophes


@pytest.mark.parametrize("apostrophe", ["'", "\u2019", "\uff07"])
def test_an_apostrophe_glues_no_letter_to_a_word(apostrophe):
    assert score("user", f"user{apostrophe}s calendar") == score("user", "user calendar") > 0
    request = f"I don{apostrophe}t want what{apostrophe}s in the file"
    assert score(request, "file") == score("file", "file") > 0
    assert score("utilisateur", f"l{apostrophe}utilisateur") == score("utilisateur", "utilisateur") > 0


@pytest.mark.parametrize(
    "opening", ["let's", "I'd like to", "can't you", "we'll", "it's", "won't you", "they're"]
)
def test_a_contraction_of_stop_words_leaves_nothing_behind(opening):
    text = f"create an issue, {opening}"
    assert score(f"{opening} create an issue", text) == score("create an issue", text) > 0


# -- Unicode


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ＣＲＥＡＴＥ　ｉｓｓｕｅ", "create issue"),
        ("ﬁle", "file"),
        ("café", "cafe"),
        ("cafe\u0301", "café"),
        ("Müller", "muller"),
        ("STRASSE", "straße"),
        ("ｶﾀｶﾅ", "カタカナ"),
        ("cre\u00adate", "create"),
        ("cre\u200bate", "create"),
        ("كِتَاب", "كتاب"),
        ("ещё", "еще"),
        ("Αθήνα", "αθηνα"),
    ],
)
def test_spellings_that_a_reader_takes_for_the_same_are_the_same(one, other):
    assert score(one, other) == score(other, other) == score(other, one) > 0


@pytest.mark.parametrize(
    ("request_text", "tool_text"),
    [
        ("法令を調べて", "日本の法令を検索する"),
        ("查一下北京的天气", "查询天气预报"),
        ("일정을 추가해줘", "캘린더에 일정 추가"),
        ("ค้นหาเที่ยวบิน", "เครื่องมือค้นหาเที่ยวบินราคาถูก"),
        ("создай задачу", "Создать новую задачу"),
        ("ما هو الطقس", "الطقس اليوم"),
        ("मौसम बताओ", "शहर का मौसम"),
        ("βρες αρχεία", "Αναζήτηση σε αρχείο"),
        ("GitHub のissueを作って", "create GitHub issue"),
    ],
)
def test_a_request_in_any_script_meets_its_tool(request_text, tool_text):
    assert score(request_text, tool_text)


@pytest.mark.parametrize("part", ["天気", "予報", "気予", "雨"])
def test_scripts_without_spaces_are_found_by_any_two_characters_and_by_one_alone(part):
    assert score(part, "明日の天気予報と雨")
    assert not score("天報", "天気予報")


def test_vowel_signs_stay_inside_their_words():
    assert score("मौसम", "मौसम की जानकारी")
    assert not score("मसम", "मौसम की जानकारी")


def test_what_lies_beyond_the_limit_is_not_read():
    assert score("needle", "a " * (MAX_CHARACTERS // 2 - 10) + "needle")
    assert not score("needle", "a " * (MAX_CHARACTERS // 2) + "needle")


@given(st.text(max_size=200))
def test_any_text_finds_what_has_its_words(text):
    # Whatever a request of this text searches for, a tool of the same text has it; words of the others are none.
    found = dict(RANKER.rank(Query.of(text), (ToolDocument("same", text), ToolDocument("another", "0"))))
    assert found.get("same", 0.0) >= found.get("another", 0.0)


def test_many_threads_find_the_same():
    stems, endings = ("creat", "listen", "задач", "αρχεί"), ("ing", "ed", "s", "и")
    words = [f"{stem}{ending}" for stem in stems for ending in endings]
    tools = tuple(ToolDocument(f"t{number}", f"{word} it{number}") for number, word in enumerate(words))

    def ranked(_: int) -> list[object]:
        return [LexicalRanker().rank(Query.of(f"{word} {word}x{_}"), tools) for word in words]

    with ThreadPoolExecutor(16) as pool:
        by_thread = list(pool.map(ranked, [0] * 16))
    assert all(found == ranked(0) for found in by_thread)


# -- sentences: the best tool of each gets a share of its own, so the scores tell where one ends

TRIPS = (
    ToolDocument("find_flight", "Find a flight by airline, date, price and seat."),
    ToolDocument("book_hotel", "Book a hotel."),
    *OTHERS,
)


def scores(request: str) -> dict[str, float]:
    return dict(RANKER.rank(Query.of(request), TRIPS))


ONE = scores("Find a flight by airline and date, book the hotel")


@pytest.mark.parametrize(
    "text",
    [
        "Find a flight by airline and date. Book the hotel",
        "Find a flight by airline and date! Book the hotel?",
        "Find a flight by airline and date; Book the hotel.",
        "Find a flight by airline and date\nBook the hotel",
        "Find a flight by airline and date\r\n\r\n  Book the hotel\r\n",
        "Find a flight by airline and date... Book the hotel",
        "1. Find a flight by airline and date. 2. Book the hotel",
        "Hello! Find a flight by airline and date. Thanks! Book the hotel. Thanks a lot!",
    ],
)
def test_a_sentence_ends_with_its_mark_or_its_line_and_needs_two_words_that_say_something(text):
    assert scores(text) == scores("Find a flight by airline and date. Book the hotel") != ONE


def test_sentences_of_chinese_end_without_a_space():
    tools = (ToolDocument("weather", "查询北京的天气预报和温度"), ToolDocument("mail", "发送邮件"), *OTHERS)
    apart, together = (
        dict(RANKER.rank(Query.of(f"查询北京的天气预报{mark}发送一封邮件"), tools)) for mark in "。、"
    )
    assert apart["mail"] > together["mail"]


@pytest.mark.parametrize("joined", ["flight.airline/date.html", "flight.3.50", "v1.2.3 date.py"])
def test_a_point_inside_a_word_ends_nothing(joined):
    text = "find a {} and book the hotel"
    assert scores(text.format(joined)) == scores(text.format(joined.replace(".", "/")))


def test_what_is_quoted_is_no_sentence_of_its_own():
    quoted = 'Find a flight by airline and "date. Book the hotel" for me'
    assert scores(quoted) == scores(quoted.replace(".", ","))


# -- one line: what a name of a domain becomes, which models and states are told


def one_line(text: str) -> str:
    domains = ToolIndex().sync([ToolDocument("t", domain=text)]).domains
    return next(iter(domains), "")


LIMIT = 40


def test_one_line_leaves_plain_text_as_it_is():
    assert one_line("Evaluate a basic arithmetic expression.") == "Evaluate a basic arithmetic expression."


@pytest.mark.parametrize(
    "breaking", ["\n", "\r\n", "\t", "\x0b", "\x85", "\u2028", "\u2029", "\x00", "\x1b", "\u00a0"]
)
def test_one_line_has_no_line_breaks_or_control_characters(breaking):
    assert one_line(f"one{breaking}two") == "one two"


@pytest.mark.parametrize(
    "invisible",
    ["\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u202e", "\u2066", "\u061c", "\ufe0f", "\U000e0041",
     "\U000e0100", "\u3164"],
    ids=lambda char: f"U+{ord(char):04X}",
)  # fmt: skip
def test_one_line_has_no_characters_that_nobody_can_see(invisible):
    assert one_line(f"on{invisible}e") in ("one", "on e")


@pytest.mark.parametrize("mark", ["`", "<", ">", "[", "]", "{", "}", "|", "＜", "｀", "［"])
def test_one_line_has_no_characters_that_open_markup_or_code(mark):
    assert not set(one_line(f"a {mark}b{mark} c")) & set("`<>[]{}|＜｀［")


def test_a_cut_is_marked_and_a_text_of_just_the_limit_is_not_cut():
    text = "one two three four five six seven eight!"
    assert len(text) == LIMIT
    assert one_line(text) == text
    assert one_line(f"{text}!") == f"{text[:-1]}…"
    assert one_line("x" * (LIMIT - 2) + "   y") == "x" * (LIMIT - 2) + " y"


@given(st.text(max_size=300))
def test_one_line_of_any_text_is_one_visible_line(text):
    line = one_line(text)
    assert len(line) <= LIMIT
    assert line == line.strip()
    assert all(char == " " or unicodedata.category(char)[0] not in "CZ" for char in line)

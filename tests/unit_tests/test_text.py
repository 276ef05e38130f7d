import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tool_selection._ground.untrusted import MAX_CHARACTERS, normalize, one_line
from langchain_tool_selection._ranking.text import query_terms, sentences, terms

# -- identifiers


@pytest.mark.parametrize(
    "name",
    ["createIssue", "create_issue", "create-issue", "jira.create-issue", "JIRA_CREATE_ISSUE", "jiraCreateIssue",
     "CreateIssue", "jira/create issue"],
)  # fmt: skip
def test_a_request_meets_every_way_of_writing_an_identifier(name):
    assert set(query_terms("create an issue")) <= set(terms(name))


@pytest.mark.parametrize(
    ("name", "request_text"),
    [
        ("getPRDiff", "get PR diff"),
        ("parseHTMLPage", "parse HTML page"),
        ("s3_put", "put it into s3"),
        ("k8s_get_pods", "get the k8s pods"),
        ("HTTP2Client", "http2client"),
    ],
)
def test_acronyms_and_digits_inside_identifiers_are_found(name, request_text):
    assert set(query_terms(request_text)) <= {*terms(name), "it", "into"}


def test_a_word_with_inner_capitals_is_indexed_whole_and_in_parts():
    assert {"github", "hub"} <= set(terms("GitHub"))


def test_plural_and_inflected_words_meet():
    assert terms("issues") == terms("issue")
    assert set(query_terms("listing files")) == set(query_terms("list file"))


def test_terms_keep_order_and_repetitions_and_a_request_has_neither_repetitions_nor_stop_words():
    assert terms("the file, the file") == ["the", "file", "the", "file"]
    assert query_terms("the file, the File, please") == ["file"]


def test_stop_words_of_a_request_are_still_words_of_a_tool():
    assert query_terms("Can you please do this for me?") == []
    assert terms("about") == ["about"]


@pytest.mark.parametrize("verb", ["get", "list", "find", "send", "check", "show", "make", "open"])
def test_verbs_that_tools_are_named_after_are_no_stop_words(verb):
    assert query_terms(verb)


# -- apostrophes


@pytest.mark.parametrize("apostrophe", ["'", "\u2019", "\uff07"])
def test_an_apostrophe_glues_no_letter_to_a_word(apostrophe):
    assert terms(f"user{apostrophe}s calendar") == terms("user calendar")
    assert query_terms(f"I don{apostrophe}t want what{apostrophe}s in the file") == query_terms("file")
    assert terms(f"l{apostrophe}utilisateur") == terms("utilisateur")


@pytest.mark.parametrize(
    "opening", ["let's", "I'd like to", "can't you", "we'll", "it's", "won't you", "they're"]
)
def test_a_contraction_of_stop_words_leaves_nothing_behind(opening):
    assert query_terms(f"{opening} create an issue") == query_terms("create an issue")


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
    assert terms(one) == terms(other) != []


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
def test_a_request_in_any_script_shares_terms_with_its_tool(request_text, tool_text):
    assert set(query_terms(request_text)) & set(terms(tool_text))


def test_scripts_without_spaces_become_overlapping_pairs():
    assert query_terms("天気予報") == ["天気", "気予", "予報"]
    assert set(terms("天気予報")) == {"天気", "気予", "予報", "天", "気", "予", "報"}
    assert terms("雨") == ["雨"]


def test_vowel_signs_stay_inside_their_words():
    assert terms("मौसम की जानकारी") == ["मौसम", "की", "जानकारी"]


def test_inflected_russian_words_meet():
    assert terms("задача") == terms("задачи")
    assert terms("новый") == terms("новая")


def test_what_lies_beyond_the_limit_is_not_read():
    assert terms("a " * (MAX_CHARACTERS // 2) + "needle").count("needle") == 0
    assert len(normalize("é" * 200_000)) == MAX_CHARACTERS


@given(st.text(max_size=200))
def test_any_text_becomes_terms_without_space_or_capital(text):
    found = terms(text)
    assert set(query_terms(text)) <= set(found)
    for term in found:
        assert term
        assert not any(char.isspace() for char in term)
        assert term == term.casefold()


def test_many_threads_get_the_same_terms():
    words = [
        f"{stem}{ending}"
        for stem in ("creat", "listen", "задач", "αρχεί")
        for ending in ("ing", "ed", "s", "и")
    ]
    texts = [f"{word} {other}{number}" for number, word in enumerate(words) for other in words]
    with ThreadPoolExecutor(16) as pool:
        by_thread = list(pool.map(lambda _: [terms(text) for text in texts], range(16)))
    assert all(found == [terms(text) for text in texts] for found in by_thread)


# -- sentences


@pytest.mark.parametrize(
    "text",
    [
        "Find a flight. Book the hotel",
        "Find a flight! Book the hotel?",
        "Find a flight; Book the hotel.",
        "Find a flight\nBook the hotel",
        "Find a flight\r\n\r\n  Book the hotel\r\n",
        "Find a flight... Book the hotel",
    ],
)
def test_a_sentence_ends_with_its_mark_or_its_line(text):
    assert [part.strip() for part in sentences(text)] == ["Find a flight", "Book the hotel"]


def test_sentences_of_chinese_end_without_a_space():
    assert sentences("查询北京的天气。发送一封邮件！") == ["查询北京的天气", "发送一封邮件"]


@pytest.mark.parametrize("text", ["open example.com/a.html now", "pay 3.50 euros", "run v1.2.3 of app.py"])
def test_a_point_inside_a_word_ends_nothing(text):
    assert sentences(text) == [text]


def test_a_list_loses_its_numbers_and_a_sentence_needs_two_words_that_say_something():
    assert sentences("Hello! Could you please help me? 1. Find a flight. 2. Thanks!") == ["Find a flight"]
    assert sentences("") == sentences("Thanks a lot!") == []


def test_what_is_quoted_is_no_sentence_of_its_own():
    text = 'Post "Great hotel stay. Cheap flight tickets. Good food there." on my feed. Delete the draft'
    first, second = sentences(text)
    assert first.startswith("Post")
    assert first.endswith("on my feed")
    assert second == "Delete the draft"


@given(st.text(max_size=200))
def test_sentences_of_any_text_are_parts_of_it_that_say_something(text):
    found = sentences(text)
    assert all(len(query_terms(part)) >= 2 for part in found)
    assert len("".join(found)) <= len(text)


# -- one_line


def test_one_line_leaves_plain_text_as_it_is():
    assert (
        one_line("Evaluate a basic arithmetic expression.", 100) == "Evaluate a basic arithmetic expression."
    )


@pytest.mark.parametrize(
    "breaking", ["\n", "\r\n", "\t", "\x0b", "\x85", "\u2028", "\u2029", "\x00", "\x1b", "\u00a0"]
)
def test_one_line_has_no_line_breaks_or_control_characters(breaking):
    assert one_line(f"one{breaking}two", 100) == "one two"


@pytest.mark.parametrize(
    "invisible",
    ["\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u202e", "\u2066", "\u061c", "\ufe0f", "\U000e0041",
     "\U000e0100", "\u3164"],
    ids=lambda char: f"U+{ord(char):04X}",
)  # fmt: skip
def test_one_line_has_no_characters_that_nobody_can_see(invisible):
    assert one_line(f"on{invisible}e", 100) in ("one", "on e")


@pytest.mark.parametrize("mark", ["`", "<", ">", "[", "]", "{", "}", "|", "＜", "｀", "［"])
def test_one_line_has_no_characters_that_open_markup_or_code(mark):
    assert not set(one_line(f"a {mark}b{mark} c", 100)) & set("`<>[]{}|＜｀［")


@pytest.mark.parametrize("limit", [1, 2, 7, 8, 11])
def test_one_line_is_never_longer_than_its_limit(limit):
    assert len(one_line("one two three", limit)) <= limit


def test_a_cut_is_marked_and_a_text_of_just_the_limit_is_not_cut():
    assert one_line("one two three", 8) == "one two…"
    assert one_line("one two", 7) == "one two"


@given(st.text(max_size=300), st.integers(1, 100))
def test_one_line_of_any_text_is_one_visible_line(text, limit):
    line = one_line(text, limit)
    assert len(line) <= limit
    assert line == line.strip()
    assert all(char == " " or unicodedata.category(char)[0] not in "CZ" for char in line)

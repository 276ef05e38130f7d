from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tool_selection import ToolDocument
from langchain_tool_selection._ranking.duplicates import duplicate_of, near_duplicates

CITY = (("city", "The city."),)


def tools(**descriptions: str) -> list[ToolDocument]:
    return [ToolDocument(name, text, CITY) for name, text in descriptions.items()]


def test_a_tool_that_repeats_another_is_a_duplicate_of_the_first() -> None:
    documents = tools(a="Get the weather.", b="Book a table.", c="Get the weather.", d="Get the weather.")
    assert duplicate_of(documents) == {"c": "a", "d": "a"}
    assert near_duplicates(documents) == {"c": "a", "d": "a"}


@pytest.mark.parametrize(
    "other",
    [
        ToolDocument("b", "Get the weather", CITY),
        ToolDocument("b", "Get the weather.", (("city", "Name of a city."),)),
        ToolDocument("b", "Get the weather.", (*CITY, ("day", ""))),
    ],
    ids=["a full stop less", "a parameter described otherwise", "a parameter more"],
)
def test_an_exact_duplicate_is_the_same_to_the_letter(other: ToolDocument) -> None:
    assert duplicate_of([ToolDocument("a", "Get the weather.", CITY), other]) == {}


def test_hints_and_domains_are_no_difference_because_a_model_does_not_see_them() -> None:
    first = ToolDocument("a", "Get the weather.", CITY, examples=("is it raining",), domain="one")
    second = ToolDocument("b", "Get the weather.", CITY, tags=("rain",), domain="two")
    assert duplicate_of([first, second]) == {"b": "a"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Get the weather of a city.", "Get weather of city"),
        ("Fill out an input field", "fill out an input field!"),
        ("Gets the `weather`.", "Get the **weather**\n"),
        ("Balances a chemical equation", "Balance a chemical equation"),
        ("获取文件信息。", "获取文件信息"),
    ],
)
def test_near_duplicates_say_the_same_words_in_the_same_order(first: str, second: str) -> None:
    assert near_duplicates(tools(a=first, b=second)) == {"b": "a"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Delete a reminder by its content and its time.", "Query a reminder by its content and its time."),
        ("Skip to the next track in the user's queue.", "Skip to the previous track in the user's queue."),
        ("Convert money from USD to EUR.", "Convert money from EUR to USD."),
        ("List orders before a date.", "List orders after a date."),
        ("Get a user.", "Get users."),
        ("Read the specified pod.", "Read status of the specified pod."),
        ("获取文件信息", "获取文件大小"),
    ],
)
def test_one_word_that_differs_may_be_the_one_that_matters(first: str, second: str) -> None:
    assert near_duplicates(tools(a=first, b=second)) == {}


def test_parameters_count_by_name_in_any_order() -> None:
    documents = [
        ToolDocument("a", "Send it.", (("to", "Receiver."), ("text", ""))),
        ToolDocument("b", "Sends it", (("text", "What."), ("to", ""))),
        ToolDocument("c", "Send it.", (("to", "Receiver."),)),
    ]
    assert near_duplicates(documents) == {"b": "a"}


@pytest.mark.parametrize("description", ["", "  ", "...", "the"])
def test_tools_that_say_nothing_are_not_alike(description: str) -> None:
    assert near_duplicates(tools(a=description, b=description)) == {}
    assert duplicate_of(tools(a="", b="")) == {}


def test_one_name_twice_is_no_duplicate_of_itself() -> None:
    assert duplicate_of(tools(a="Do it.") * 2) == {}


@given(
    st.lists(
        st.tuples(st.sampled_from(["Get a b", "gets the b", "b get", ""]), st.integers(0, 1)), max_size=8
    )
)
def test_every_duplicate_leads_to_a_kept_one_before_it(texts: list[tuple[str, int]]) -> None:
    documents = [ToolDocument(f"t{i}", text, CITY[:n]) for i, (text, n) in enumerate(texts)]
    exact, near = duplicate_of(documents), near_duplicates(documents)
    for found in exact, near:
        assert not found.keys() & set(found.values())
        assert all(int(kept[1:]) < int(name[1:]) for name, kept in found.items())
    for name, kept in exact.items():
        if name in near:
            assert near[name] == near.get(kept, kept)


def test_ten_thousand_tools_take_less_time_than_pairs_would() -> None:
    documents = [ToolDocument(f"t{i}", f"Get the thing number {i}.") for i in range(10_000)]
    assert near_duplicates(documents) == {}

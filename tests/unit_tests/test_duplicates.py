"""Tools that say the same: of each group one is shown, and the selection names the others."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tool_selection import ToolDocument, ToolIndex

CITY = (("city", "The city."),)


def tools(**descriptions: str) -> list[ToolDocument]:
    return [ToolDocument(name, text, CITY) for name, text in descriptions.items()]


def alike(documents: list[ToolDocument]) -> dict[str, str]:
    """Return, for each tool that says the same as an earlier one, the first of them."""
    return ToolIndex().sync(documents).alike


def test_a_tool_that_repeats_another_is_like_the_first() -> None:
    documents = tools(a="Get the weather.", b="Book a table.", c="Get the weather.", d="Get the weather.")
    assert alike(documents) == {"c": "a", "d": "a"}


def test_hints_domains_and_texts_of_parameters_are_no_difference() -> None:
    first = ToolDocument("a", "Get the weather.", CITY, examples=("is it raining",), domain="one")
    second = ToolDocument("b", "Get the weather.", (("city", "Name of it."),), tags=("rain",), domain="two")
    assert alike([first, second]) == {"b": "a"}


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
    assert alike(tools(a=first, b=second)) == {"b": "a"}


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
    assert alike(tools(a=first, b=second)) == {}


def test_parameters_count_by_name_in_any_order() -> None:
    documents = [
        ToolDocument("a", "Send it.", (("to", "Receiver."), ("text", ""))),
        ToolDocument("b", "Sends it", (("text", "What."), ("to", ""))),
        ToolDocument("c", "Send it.", (("to", "Receiver."),)),
    ]
    assert alike(documents) == {"b": "a"}


@pytest.mark.parametrize("description", ["", "  ", "...", "the"])
def test_tools_that_say_nothing_are_not_alike(description: str) -> None:
    assert alike(tools(a=description, b=description)) == {}


def test_one_name_twice_is_no_duplicate_of_itself() -> None:
    assert alike(tools(a="Do it.") * 2) == {}


@given(
    st.lists(
        st.tuples(st.sampled_from(["Get a b", "gets the b", "b get", ""]), st.integers(0, 1)), max_size=8
    )
)
def test_every_duplicate_leads_to_a_kept_one_before_it(texts: list[tuple[str, int]]) -> None:
    documents = [ToolDocument(f"t{i}", text, CITY[:n]) for i, (text, n) in enumerate(texts)]
    found = alike(documents)
    assert not found.keys() & set(found.values())
    assert all(int(kept[1:]) < int(name[1:]) for name, kept in found.items())


def test_ten_thousand_tools_take_less_time_than_pairs_would() -> None:
    documents = [ToolDocument(f"t{i}", f"Get the thing number {i}.") for i in range(10_000)]
    catalog, start = ToolIndex().sync(documents), time.process_time()
    assert catalog.alike == {}
    assert time.process_time() - start < 5  # 0.2 s on a fast machine; all pairs would be fifty million

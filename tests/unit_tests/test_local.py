"""`LocalEmbeddings`, with the real encoder."""

import logging
import math
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from langchain_tool_selection import EmbeddingRanker
from langchain_tool_selection.local import LocalEmbeddings
from langchain_tool_selection.testing import check_ranker

TEXTS = ["How is the weather?", "Play some music", "Convert a currency", "法令を検索", "tool_name: x " * 50]


@pytest.fixture(scope="module")
def embeddings():
    pytest.importorskip("wordllama")
    return LocalEmbeddings()


def cosine(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_vectors_have_one_size_and_length_one(embeddings):
    vectors = embeddings.embed_documents(TEXTS)
    assert {len(vector) for vector in vectors} == {256}
    assert [math.hypot(*vector) for vector in vectors] == pytest.approx([1.0] * len(TEXTS))


def test_equal_text_has_an_equal_vector_in_every_instance(embeddings):
    assert (
        embeddings.embed_documents([TEXTS[0], TEXTS[1], TEXTS[0]])[::2]
        == [LocalEmbeddings().embed_query(TEXTS[0])] * 2
    )


def test_a_batch_gives_the_same_vectors_as_one_text_at_a_time(embeddings):
    assert embeddings.embed_documents(TEXTS) == [embeddings.embed_query(text) for text in TEXTS]


async def test_the_async_path_gives_the_same_vectors(embeddings):
    assert await embeddings.aembed_documents(TEXTS) == embeddings.embed_documents(TEXTS)
    assert await embeddings.aembed_query(TEXTS[0]) == embeddings.embed_query(TEXTS[0])


def test_many_threads_get_the_same_vectors(embeddings):
    expected = embeddings.embed_documents(TEXTS)
    with ThreadPoolExecutor(8) as pool:
        assert all(vectors == expected for vectors in pool.map(embeddings.embed_documents, [TEXTS] * 40))


@pytest.mark.parametrize(
    ("text", "paraphrase", "unrelated"),
    [
        ("How is the weather?", "Will it rain or be sunny tomorrow?", "Pay this invoice."),
        ("The car needs repair", "My vehicle is broken", "I like baking bread"),
        ("Listen to songs", "Play some music", "Convert a currency"),
    ],
)
def test_a_paraphrase_is_closer_than_something_else(embeddings, text, paraphrase, unrelated):
    one, same, other = embeddings.embed_documents([text, paraphrase, unrelated])
    assert cosine(one, same) > cosine(one, other) + 0.2


def test_no_texts_have_no_vectors(embeddings):
    assert embeddings.embed_documents([]) == []


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("text", ["", "\x00", "cut off \ud83d", "👩‍👩‍👧", "word " * 100_000])
def test_no_text_is_too_odd_to_be_embedded(embeddings, text):
    vector = embeddings.embed_query(text)
    assert len(vector) == 256
    assert all(map(math.isfinite, vector))


def test_a_text_without_words_is_like_nothing(embeddings):
    assert set(embeddings.embed_query("")) == {0.0}


@pytest.mark.parametrize("min_cosine", [None, 0.3])
def test_a_ranker_over_it_keeps_the_contract(embeddings, min_cosine):
    check_ranker(lambda: EmbeddingRanker(embeddings, min_cosine=min_cosine))


def test_a_missing_package_is_an_import_error_that_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(ImportError, match=r"pip install 'langchain-tool-selection\[local\]'"):
        LocalEmbeddings()


@pytest.mark.process
def test_the_applications_logging_stays_as_it_is(run_python):
    pytest.importorskip("wordllama")
    code = (
        "import logging; from langchain_tool_selection.local import LocalEmbeddings; LocalEmbeddings()\n"
        "print(logging.getLogger().handlers, logging.getLogger().level)"
    )
    assert run_python(code) == f"[] {logging.WARNING}"

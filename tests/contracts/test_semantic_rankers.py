"""What `EmbeddingRanker` and `HybridRanker` promise beyond the contract of every ranker."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from bag_of_words import BagOfWords
from langchain_core.embeddings import Embeddings

from langchain_tool_selection import (
    EmbeddingRanker,
    Hit,
    HybridRanker,
    LexicalRanker,
    Query,
    ToolDocument,
    ToolIndex,
)

TOOLS = tuple(ToolDocument(f"tool_{number}", f"Handles zebra number {number}.") for number in range(10))
ZEBRA = Query.of("handles zebra number")


def names(hits):
    return [hit.name for hit in hits]


class Fixed:
    def __init__(self, *hits):
        self.hits = [Hit(*hit) for hit in hits]

    def rank(self, query, documents, *, limit=None):
        return self.hits


# -- EmbeddingRanker


def test_all_tools_are_embedded_in_one_batch_and_once():
    embeddings = BagOfWords()
    ranker = EmbeddingRanker(embeddings)
    ranker.rank(ZEBRA, TOOLS)
    ranker.rank(ZEBRA, TOOLS)
    ranker.rank(ZEBRA, TOOLS[:3])
    assert [len(batch) for batch in embeddings.batches] == [len(TOOLS)]


def test_only_what_changed_is_embedded_again():
    embeddings = BagOfWords()
    ranker = EmbeddingRanker(embeddings)
    ranker.rank(ZEBRA, TOOLS)
    ranker.rank(ZEBRA, (*TOOLS[1:], ToolDocument("tool_0", "Handles lions.")))
    assert [len(batch) for batch in embeddings.batches] == [len(TOOLS), 1]


async def test_the_async_path_awaits_the_embeddings():
    embeddings = BagOfWords()
    ranker = EmbeddingRanker(embeddings)
    hits = await ranker.arank(ZEBRA, TOOLS)
    assert embeddings.awaited == 2
    assert hits == ranker.rank(ZEBRA, TOOLS)


def test_a_cosine_below_the_threshold_is_no_hit():
    tools = (ToolDocument("zebra", "zebra"), ToolDocument("lion", "lion"))
    assert names(EmbeddingRanker(BagOfWords()).rank(Query.of("zebra"), tools)) == ["zebra"]
    assert names(EmbeddingRanker(BagOfWords(), min_cosine=-1).rank(Query.of("zebra"), tools)) == [
        "zebra",
        "lion",
    ]


def test_a_cosine_is_between_minus_one_and_one():
    (hit,) = EmbeddingRanker(BagOfWords()).rank(Query.of("zebra: zebra"), (ToolDocument("zebra", "zebra"),))
    assert hit.score == pytest.approx(1.0)


def test_catalogues_that_share_tools_lose_none():
    ranker = EmbeddingRanker(BagOfWords())
    ranker.rank(ZEBRA, TOOLS)
    mixed = TOOLS[:5] + tuple(ToolDocument(f"other_{i}", f"Handles zebra number {i + 50}.") for i in range(5))
    assert names(ranker.rank(ZEBRA, mixed)) == [tool.name for tool in mixed]
    assert names(ranker.rank(ZEBRA, TOOLS)) == [tool.name for tool in TOOLS]


def test_many_threads_on_one_ranker_lose_no_tool():
    ranker = EmbeddingRanker(BagOfWords())
    catalogs = [TOOLS[:6], TOOLS[3:], TOOLS[::2], TOOLS[4:]]

    def work(worker):
        for step in range(20):
            tools = catalogs[(worker + step) % len(catalogs)]
            assert names(ranker.rank(ZEBRA, tools)) == [tool.name for tool in tools]
        return True

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(16)))


class Answers(Embeddings):
    """Answers what it was told to, whatever it is asked."""

    def __init__(self, documents, query=(1.0, 0.0)):
        self.documents, self.query = documents, query

    def embed_documents(self, texts):
        return self.documents

    def embed_query(self, text):
        return self.query


GOOD = [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    "embeddings",
    [
        Answers(GOOD[:1]),
        Answers([*GOOD, [1.0, 1.0]]),
        Answers([]),
        Answers([[], []]),
        Answers([[1.0, 0.0], [0.0]]),
        Answers([[1.0, 0.0], [float("nan"), 0.0]]),
        Answers([[1.0, 0.0], [float("inf"), 0.0]]),
        Answers([[1.0, 0.0], None]),
        Answers(None),
        Answers(GOOD, [float("nan"), 0.0]),
        Answers(GOOD, []),
        Answers(GOOD, None),
        Answers(GOOD, [1.0, 0.0, 0.0]),
    ],
    ids=["too few", "too many", "none", "empty", "unequal", "NaN", "infinite", "a null", "null", "query NaN",
         "query empty", "query null", "query of another length"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
async def test_vectors_that_cannot_be_right_are_a_value_error(embeddings):
    with pytest.raises(ValueError, match=r"embeddings|vector|shape|dimension"):
        EmbeddingRanker(embeddings).rank(ZEBRA, TOOLS[:2])
    with pytest.raises(ValueError, match=r"embeddings|vector|shape|dimension"):
        await EmbeddingRanker(embeddings).arank(ZEBRA, TOOLS[:2])


def test_a_bad_answer_is_not_kept():
    embeddings = Answers(GOOD[:1])
    ranker = EmbeddingRanker(embeddings)
    with pytest.raises(ValueError, match="embeddings"):
        ranker.rank(ZEBRA, TOOLS[:2])
    embeddings.documents = GOOD
    assert names(ranker.rank(ZEBRA, TOOLS[:2])) == ["tool_0"]


def test_vectors_of_length_zero_match_nothing():
    assert EmbeddingRanker(Answers([[0.0, 0.0], [0.0, 0.0]])).rank(ZEBRA, TOOLS[:2]) == []


def test_what_the_embeddings_raise_reaches_the_caller():
    class Down(BagOfWords):
        def embed_query(self, text):
            raise ConnectionError("no service")

    with pytest.raises(ConnectionError, match="no service"):
        EmbeddingRanker(Down()).rank(ZEBRA, TOOLS)


def test_anything_but_embeddings_is_an_error_that_says_what_it_got():
    with pytest.raises(TypeError, match="embeddings must be LangChain Embeddings, got str"):
        EmbeddingRanker("text-embedding-3-small")


# -- HybridRanker


def test_embeddings_as_a_ranker_are_fused_with_words():
    embeddings = BagOfWords()
    hits = ToolIndex(embeddings).sync([ToolDocument("zebra_counter"), TOOLS[0]]).search(Query.of("zebras"))
    # The words meet by their stem, which a bag of words cannot do.
    assert "zebra_counter" in names(hits)
    assert embeddings.queries == ["zebras"]


def test_the_weight_decides_between_two_rankers_that_disagree():
    first, second = Fixed(("a", 2.0), ("b", 1.0)), Fixed(("b", 200.0), ("a", 100.0))

    def best(weight):
        catalog = ToolIndex(HybridRanker(first, second, weight=weight)).sync(
            [ToolDocument("a"), ToolDocument("b")]
        )
        return names(catalog.search(Query.of("x")))

    assert best(0.0) == best(0.4) == ["a", "b"]
    assert best(1.0) == best(0.6) == ["b", "a"]
    assert best(0.5) == ["a", "b"]  # a tie, whatever the scales are


@pytest.mark.parametrize(("tools", "weight"), [(2, 0.1), (32, 0.1), (64, 0.2), (128, 0.4), (500, 0.4)])
def test_without_a_weight_the_second_ranker_counts_less_in_a_small_catalogue(tools, weight):
    documents = tuple(ToolDocument(f"tool_{number}") for number in range(tools))
    sides = Fixed(("tool_0", 1.0)), Fixed(("tool_1", 1.0))
    hits = HybridRanker(*sides).rank(Query.of("x"), documents)
    assert hits == HybridRanker(*sides, weight=weight).rank(Query.of("x"), documents)


def test_a_tool_that_one_side_does_not_find_counts_there_as_zero():
    first, second = Fixed(("a", 3.0), ("b", 1.0)), Fixed(("c", 3.0), ("a", 1.0))
    documents = tuple(map(ToolDocument, "abc"))
    scores = dict(HybridRanker(first, second, weight=0.5).rank(Query.of("x"), documents))
    # The z-scores of (3, 1, 0) and of (1, 0, 3).
    assert scores == pytest.approx({"a": 0.5345, "b": -0.6682, "c": 0.1336}, abs=1e-4)


def test_what_only_the_second_finds_needs_the_least_score():
    documents = tuple(map(ToolDocument, "abc"))
    hybrid = HybridRanker(Fixed(("a", 1.0)), Fixed(("b", 0.3), ("c", 0.1)), min_second=0.2)
    assert {hit.name for hit in hybrid.rank(Query.of("x"), documents)} == {"a", "b"}


def test_one_side_without_hits_leaves_the_order_to_the_other():
    hybrid = HybridRanker(Fixed(), Fixed(("b", 3.0), ("a", 1.0)))
    catalog = ToolIndex(hybrid).sync([ToolDocument("a"), ToolDocument("b")])
    assert names(catalog.search(Query.of("x"))) == ["b", "a"]
    assert ToolIndex(HybridRanker(Fixed(), Fixed())).sync(TOOLS).search(Query.of("x")) == []


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
def test_a_weight_outside_zero_to_one_is_an_error(weight):
    with pytest.raises(ValueError, match="weight must be between 0 and 1"):
        HybridRanker(LexicalRanker(), LexicalRanker(), weight=weight)

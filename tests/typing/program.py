"""A user's program, as type checkers see it: every documented form of a setting, and forms that are refused.

Checked by `test_typing.py`, never run. A line with an ignore comment has to be an error: both checkers report
an ignore that nothing needs.
"""

from collections.abc import Collection, Sequence
from typing import Any

from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel

from langchain_tool_selection import (
    ARITHMETIC,
    Access,
    AccessRuntime,
    ByModel,
    Collect,
    Discovery,
    EmbeddingRanker,
    Hit,
    HybridRanker,
    LexicalRanker,
    LLMRanker,
    ModelFacts,
    Query,
    RuleRanker,
    SchemaPruning,
    Search,
    Thread,
    Tokens,
    Tool,
    ToolDocument,
    ToolHints,
    ToolSelectionMiddleware,
)


class ByLength:
    def rank(self, query: Query, documents: Sequence[ToolDocument], *, limit: int | None = None) -> list[Hit]:
        return [Hit(document.name, 1 / (1 + len(document.description))) for document in documents]


def scorer(tool: Tool, words: Collection[str]) -> float:
    return float(tool.name in words)


def allow(tool: Any, runtime: AccessRuntime) -> bool:
    return bool(tool.name != "delete" or runtime.context == "admin")


async def allow_later(tool: Any, runtime: AccessRuntime) -> bool:
    return allow(tool, runtime)


embeddings = DeterministicFakeEmbedding(size=4)

ToolSelectionMiddleware()
ToolSelectionMiddleware(15, ["git_*", "tag:core", "domain:crm"])
ToolSelectionMiddleware(top_k=3, always_include={"search"})
ToolSelectionMiddleware(ranker=LexicalRanker())
ToolSelectionMiddleware(ranker=ByLength())
ToolSelectionMiddleware(ranker=embeddings)
ToolSelectionMiddleware(ranker=EmbeddingRanker(embeddings))
ToolSelectionMiddleware(ranker=HybridRanker(LexicalRanker(), EmbeddingRanker(embeddings), weight=0.3))
ToolSelectionMiddleware(ranker=RuleRanker({ARITHMETIC: "calculator"}))
ToolSelectionMiddleware(ranker=LLMRanker(FakeListChatModel(responses=["1"])))
ToolSelectionMiddleware(ranker=scorer)
ToolSelectionMiddleware(hints={"search": ToolHints(examples=["look it up"])})
ToolSelectionMiddleware(exposure="append")
ToolSelectionMiddleware(exposure="stubs")
ToolSelectionMiddleware(exposure=ByModel({"gateway.example.com": ModelFacts(wire="additional_tools")}))
ToolSelectionMiddleware(exposure="auto", discovery=Discovery(overview=True))
ToolSelectionMiddleware(discovery=None, prune=SchemaPruning(keep=["ports"]), token_budget=2_000)
ToolSelectionMiddleware(allow=allow)
ToolSelectionMiddleware(allow=allow_later)
ToolSelectionMiddleware(allow={"guest": ["lookup_*"], "admin": ["*"]})
ToolSelectionMiddleware(domains=lambda state, runtime: ["crm"], collect=Collect("cases.jsonl"))
ToolSelectionMiddleware(search=Search(timeout=None, query=lambda request: "x", min_score=1.5))
ToolSelectionMiddleware(thread=Thread(keep_used=None, max_pins=8, activate_above=Tokens(6_000)))
ToolSelectionMiddleware(thread=Thread(activate_above="break_even"))
ToolSelectionMiddleware(access=Access(enforce=True, fingerprints={"a": "0"}, audit="arguments"))

ToolSelectionMiddleware(ranker=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ToolSelectionMiddleware(ranker="words!")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ToolSelectionMiddleware(ranker=LexicalRanker)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ToolSelectionMiddleware(top_k="15")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ToolSelectionMiddleware(exposure={"gpt-*": ModelFacts()})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ToolSelectionMiddleware(exposure="always")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ToolSelectionMiddleware(allow=["search"])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ToolSelectionMiddleware(hints={"a": "b"})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
ToolSelectionMiddleware(search={"timeout": 3})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ToolSelectionMiddleware(max_pins=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Search(on_no_match="nothing")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Thread(activate_above="never")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Access(audit="all")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

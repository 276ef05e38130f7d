"""Show a LangChain agent only the tools that matter now, and let it find the rest.

`ToolSelectionMiddleware` goes into `create_agent` or `create_deep_agent`. Everything else here serves
it, and works without an agent: `ToolIndex` and the rankers search tools, `portable` is the algorithm
without any framework.

Names are imported when they are first used, because importing LangChain's agents takes seconds that a
script which only ranks tools should not pay.
"""

from typing import TYPE_CHECKING

from langchain_tool_selection._ground.lazy import lazy_names

if TYPE_CHECKING:
    from langchain_tool_selection._access.fingerprints import fingerprint_of
    from langchain_tool_selection._access.rules import AccessRuntime
    from langchain_tool_selection._exposure.base import Exposure, Rendered
    from langchain_tool_selection._ranking.index import CatalogView, ToolIndex
    from langchain_tool_selection._ranking.lexical import LexicalRanker
    from langchain_tool_selection._ranking.llm import LLMRanker
    from langchain_tool_selection._ranking.protocol import Hit, Query, Ranker
    from langchain_tool_selection._ranking.rules import ARITHMETIC, RuleRanker
    from langchain_tool_selection._ranking.semantic import EmbeddingRanker, HybridRanker
    from langchain_tool_selection._ranking.weighting import FieldWeights
    from langchain_tool_selection._run.activation import Tokens
    from langchain_tool_selection._run.collect import Collect
    from langchain_tool_selection._run.settings import Access, Discovery, Search, Thread
    from langchain_tool_selection._run.state import thread_usage
    from langchain_tool_selection._run.usage import CacheUsage
    from langchain_tool_selection._selection.policy import Reason, Selection
    from langchain_tool_selection._tools.documents import ToolDocument, ToolHints, index_text
    from langchain_tool_selection._tools.schema import SchemaPruning, prune_schema, prune_tool
    from langchain_tool_selection._tools.tokens import TokenCount, count_tokens
    from langchain_tool_selection.cost import estimate_cost
    from langchain_tool_selection.middleware import ToolSelectionMiddleware
    from langchain_tool_selection.portable import Tool, discover, lexical_score, select_tools
    from langchain_tool_selection.registry import Payload, ToolRegistry
    from langchain_tool_selection.router import Route, ToolRouter

_HOME = {
    "_access.fingerprints": ("fingerprint_of",),
    "_access.rules": ("AccessRuntime",),
    "_exposure.base": ("Exposure", "Rendered"),
    "_run.activation": ("Tokens",),
    "_run.collect": ("Collect",),
    "_run.settings": ("Access", "Discovery", "Search", "Thread"),
    "_tools.documents": ("ToolDocument", "ToolHints", "index_text"),
    "_ranking.index": ("CatalogView", "ToolIndex"),
    "_ranking.lexical": ("LexicalRanker",),
    "_ranking.weighting": ("FieldWeights",),
    "_ranking.llm": ("LLMRanker",),
    "_selection.policy": ("Reason", "Selection"),
    "_ranking.protocol": ("Hit", "Query", "Ranker"),
    "_ranking.rules": ("ARITHMETIC", "RuleRanker"),
    "_tools.schema": ("SchemaPruning", "prune_schema", "prune_tool"),
    "_ranking.semantic": ("EmbeddingRanker", "HybridRanker"),
    "_run.state": ("thread_usage",),
    "_tools.tokens": ("TokenCount", "count_tokens"),
    "_run.usage": ("CacheUsage",),
    "cost": ("estimate_cost",),
    "middleware": ("ToolSelectionMiddleware",),
    "portable": ("Tool", "discover", "lexical_score", "select_tools"),
    "registry": ("Payload", "ToolRegistry"),
    "router": ("Route", "ToolRouter"),
}
__getattr__, __dir__ = lazy_names(__name__, _HOME)

__all__ = [
    "ARITHMETIC", "Access", "AccessRuntime", "CacheUsage", "CatalogView", "Collect", "Discovery",
    "EmbeddingRanker", "Exposure", "FieldWeights", "Hit", "HybridRanker", "LLMRanker", "LexicalRanker",
    "Payload", "Query", "Ranker", "Reason", "Rendered", "Route", "RuleRanker", "SchemaPruning", "Search",
    "Selection", "Thread", "TokenCount", "Tokens", "Tool", "ToolDocument", "ToolHints", "ToolIndex",
    "ToolRegistry", "ToolRouter", "ToolSelectionMiddleware", "count_tokens", "discover", "estimate_cost",
    "fingerprint_of", "index_text", "lexical_score", "prune_schema", "prune_tool", "select_tools",
    "thread_usage",
]  # fmt: skip

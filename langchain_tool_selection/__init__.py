"""Show a LangChain agent only the tools that matter now, and let it find the rest.

`ToolSelectionMiddleware` goes into `create_agent` or `create_deep_agent`. Everything else here serves
it, and works without an agent: `ToolIndex` and the rankers search tools, `portable` is the algorithm
without any framework.

Names are imported when they are first used, because importing LangChain's agents takes seconds that a
script which only ranks tools should not pay.
"""

from langchain_tool_selection._ground.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)

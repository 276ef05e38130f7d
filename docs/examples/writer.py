"""A model that proposes requests for `docs/evaluation.md`, from a script."""

from langchain_tool_selection.testing import ScriptedChatModel

MODEL = ScriptedChatModel(
    script=[
        """[
        {"tool": "get_order", "direct": ["get order 1042"], "indirect": ["did my shoes go out?"]},
        {"tool": "refund", "direct": ["refund order 1042"], "indirect": ["I want my 30 euros back"]}
        ]"""
    ]
)

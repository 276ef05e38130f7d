"""Runnable demonstrations: `python -m langchain_tool_selection demo`."""

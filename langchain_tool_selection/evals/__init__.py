"""Measuring tool selection on catalogues and requests of one's own.

`evaluate` says how well labelled requests find their tools, `lint` what is wrong with a catalogue, `explain`
why a tool ranks where it does: none of them needs a model or an agent. `run_agent` needs both and says what a
model makes of the requests, and `verify_model` asks a provider what it does with tools that change. Names are
imported when they are first used.
"""

from langchain_tool_selection._ground.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)

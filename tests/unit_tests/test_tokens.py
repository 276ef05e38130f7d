from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages.utils import count_tokens_approximately

from langchain_tool_selection import TokenCount, count_tokens
from langchain_tool_selection.testing import ScriptedChatModel

TOOLS: list[dict[str, Any]] = [
    {
        "name": f"tool_{i}",
        "description": "Does a thing. " * i,
        "parameters": {"type": "object", "properties": {}},
    }
    for i in range(5)
]


@pytest.mark.parametrize(
    "model", [None, "", "claude-sonnet-4-5", "anthropic:claude-opus-4-8", ScriptedChatModel(script=[])]
)
def test_without_a_tokenizer_it_is_langchains_approximation(model: Any) -> None:
    expected = sum(count_tokens_approximately([], tools=[tool]) for tool in TOOLS)
    assert count_tokens(TOOLS, model) == TokenCount(expected, "approximate")


def test_no_tools_cost_nothing() -> None:
    assert count_tokens([]) == (0, "approximate")


def test_a_changed_tool_is_counted_anew() -> None:
    tool = {"name": "t", "description": "short"}
    before = count_tokens([tool]).tokens
    tool["description"] = "long " * 100
    assert count_tokens([tool]).tokens > before + 100


def test_other_scripts_are_counted_too() -> None:
    assert count_tokens([{"name": "搜索", "description": "使用必应搜索", "x": "\ud800"}]).tokens > 10


def test_what_cannot_be_sent_cannot_be_counted() -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        count_tokens([{"name": "t", "default": Path()}])


# The vocabularies themselves are megabytes and are not on every machine: made-up ones stand for them.
VOCABULARY = b"".join(b"%s %d\n" % (b64encode(bytes([byte])), byte) for byte in range(256))
ENCODINGS = "https://openaipublic.blob.core.windows.net/encodings"
"""Where tiktoken gets its vocabularies from; its cache goes by their addresses."""

IN_A_NEW_PROCESS = """
import json, os, socket, sys
cache, named, missing = {folder!r}, ("gpt-there", "openai:gpt-there", "openai/gpt-there", "ft:gpt-there:us"), "gpt-missing"
def refuse(*_, **__): raise AssertionError("a connection was made")
socket.socket.connect = refuse
socket.getaddrinfo = refuse
os.environ["TIKTOKEN_CACHE_DIR"] = cache
from tiktoken import model, registry
from tiktoken_ext import openai_public
def encoding(name):
    def made_up():
        ranks = load_tiktoken_bpe(f"{encodings}/{{name}}.tiktoken", expected_hash={expected!r})
        return {{"name": name, "pat_str": ".", "mergeable_ranks": ranks, "special_tokens": {{}}}}
    made_up.__globals__["load_tiktoken_bpe"] = openai_public.load_tiktoken_bpe
    return made_up
registry.list_encoding_names()
for name in ("there", "missing", "off"):
    registry.ENCODING_CONSTRUCTORS[name] = encoding(name)
    model.MODEL_TO_ENCODING[f"gpt-{{name}}"] = model.MODEL_TO_ENCODING[f"ft:gpt-{{name}}:us"] = name
from langchain_tool_selection import count_tokens
def counted(*names): return [count_tokens([{{"name": "t"}}], name) for name in names]
results = {{"there": counted(*named), "missing": counted(missing)}}
os.environ["TIKTOKEN_CACHE_DIR"] = ""
results["off"] = counted("gpt-off")
sys.modules["tiktoken"] = None
results["not installed"] = counted("gpt-4o")
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory, run_python: Any) -> Any:
    """Count in a process whose tiktoken has two made-up vocabularies in its cache, and no network."""
    pytest.importorskip("tiktoken")
    folder = tmp_path_factory.mktemp("tiktoken")
    for name in ("there", "off"):
        address = f"{ENCODINGS}/{name}.tiktoken"
        (folder / hashlib.sha1(address.encode()).hexdigest()).write_bytes(VOCABULARY)
    settings = {
        "folder": str(folder),
        "encodings": ENCODINGS,
        "expected": hashlib.sha256(VOCABULARY).hexdigest(),
    }
    return json.loads(run_python(IN_A_NEW_PROCESS.format(**settings)))


@pytest.mark.process
class TestTokenizer:
    def test_openais_models_are_counted_by_their_tokenizer_if_its_vocabulary_is_there(
        self, counted: Any
    ) -> None:
        compact = len('{"name":"t"}')  # one token a byte
        assert counted["there"] == [[compact, "tiktoken:there"]] * 4

    def test_nothing_is_downloaded(self, counted: Any) -> None:
        assert counted["missing"][0][1] == "approximate"

    def test_a_cache_that_is_switched_off_holds_nothing(self, counted: Any) -> None:
        assert counted["off"][0][1] == "approximate"

    def test_it_needs_no_tiktoken(self, counted: Any) -> None:
        assert counted["not installed"][0][1] == "approximate"


def test_the_installed_tiktoken_still_loads_from_there() -> None:
    # What counting relies on inside tiktoken. If this fails, counts fall back to the approximation.
    public = pytest.importorskip("tiktoken_ext.openai_public")
    for name in ("o200k_base", "cl100k_base"):
        assert f"{ENCODINGS}/{name}.tiktoken" in public.ENCODING_CONSTRUCTORS[name].__code__.co_consts


@pytest.mark.parametrize("attribute", ["model_name", "model"])
def test_a_chat_model_says_its_own_name(attribute: str) -> None:
    assert count_tokens(TOOLS, SimpleNamespace(**{attribute: "gpt-5.5"})) == count_tokens(TOOLS, "gpt-5.5")

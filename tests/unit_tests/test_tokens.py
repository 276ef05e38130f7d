from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages.utils import count_tokens_approximately

from langchain_tool_selection._tools.tokens import _ENCODINGS, TokenCount, count_tokens
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


# The vocabularies themselves are megabytes and are not on every machine: a made-up one stands for them.
VOCABULARY = b"".join(b"%s %d\n" % (b64encode(bytes([byte])), byte) for byte in range(256))


@pytest.fixture
def tiktoken_cache(tmp_path: Path, run_python: Any) -> Any:
    pytest.importorskip("tiktoken")

    def run(content: bytes | None, *models: str, disabled: bool = False) -> list[list[Any]]:
        """Count in a new process whose tiktoken has `content` as its cached vocabulary and no network."""
        url = f"{_ENCODINGS}/made_up.tiktoken"
        if content is not None:
            (tmp_path / hashlib.sha1(url.encode()).hexdigest()).write_bytes(content)
        code = f"""
import json, os, socket
os.environ["TIKTOKEN_CACHE_DIR"] = {"" if disabled else str(tmp_path)!r}
def refuse(*_, **__): raise AssertionError("a connection was made")
socket.socket.connect = refuse
socket.getaddrinfo = refuse
from tiktoken import model, registry
from tiktoken_ext import openai_public
def made_up():
    ranks = load_tiktoken_bpe({url!r}, expected_hash={hashlib.sha256(VOCABULARY).hexdigest()!r})
    return {{"name": "made_up", "pat_str": ".", "mergeable_ranks": ranks, "special_tokens": {{}}}}
made_up.__globals__["load_tiktoken_bpe"] = openai_public.load_tiktoken_bpe
registry.list_encoding_names()
registry.ENCODING_CONSTRUCTORS["made_up"] = made_up
model.MODEL_TO_ENCODING["gpt-made-up"] = model.MODEL_TO_ENCODING["ft:gpt-made-up:us"] = "made_up"
from langchain_tool_selection._tools.tokens import count_tokens
print(json.dumps([count_tokens([{{"name": "t"}}], name) for name in {models!r}]))
"""
        return json.loads(run_python(code))

    return run


def test_openais_models_are_counted_by_their_tokenizer_if_its_vocabulary_is_there(
    tiktoken_cache: Any,
) -> None:
    names = ("gpt-made-up", "openai:gpt-made-up", "openai/gpt-made-up", "ft:gpt-made-up:us")
    compact = len('{"name":"t"}')  # one token a byte
    assert tiktoken_cache(VOCABULARY, *names) == [[compact, "tiktoken:made_up"]] * 4


def test_nothing_is_downloaded(tiktoken_cache: Any) -> None:
    assert tiktoken_cache(None, "gpt-made-up")[0][1] == "approximate"


def test_a_cache_that_is_switched_off_holds_nothing(tiktoken_cache: Any) -> None:
    assert tiktoken_cache(VOCABULARY, "gpt-made-up", disabled=True)[0][1] == "approximate"


def test_the_installed_tiktoken_still_loads_from_there() -> None:
    # What `_tokens` relies on inside tiktoken. If this fails, counts fall back to the approximation.
    public = pytest.importorskip("tiktoken_ext.openai_public")
    for name in ("o200k_base", "cl100k_base"):
        assert f"{_ENCODINGS}/{name}.tiktoken" in public.ENCODING_CONSTRUCTORS[name].__code__.co_consts


@pytest.mark.parametrize("attribute", ["model_name", "model"])
def test_a_chat_model_says_its_own_name(attribute: str) -> None:
    assert count_tokens(TOOLS, SimpleNamespace(**{attribute: "gpt-5.5"})) == count_tokens(TOOLS, "gpt-5.5")


def test_it_needs_no_tiktoken(run_python: Any) -> None:
    code = (
        "import sys; sys.modules['tiktoken'] = None\n"
        "from langchain_tool_selection._tools.tokens import count_tokens\n"
        "print(count_tokens([{'name': 't'}], 'gpt-4o').counter)"
    )
    assert run_python(code) == "approximate"

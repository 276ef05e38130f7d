"""The same input gives the same bytes in every process, whatever its hash seed."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from .agents import in_new_process

SEEDS = ("0", "4242")
NAMES = (
    "rankers", "sentences_and_servers", "fingerprints", "a_pruned_tool", "a_report", "a_set_of_pins",
    "tools_of_each_call", "pruned_requests", "exposures",
)  # fmt: skip

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def written() -> list[dict[str, str]]:
    """What each process wrote, by what it is about."""
    with ThreadPoolExecutor(len(SEEDS)) as pool:
        return list(pool.map(lambda seed: in_new_process("in_every_process", PYTHONHASHSEED=seed), SEEDS))


@pytest.mark.parametrize("name", NAMES)
def test_the_bytes_are_the_same_under_every_hash_seed(name, written):
    first, *others = [results[name] for results in written]
    assert json.loads(first)
    assert all(other == first for other in others)


def test_what_is_compared_says_something(written):
    results = {name: json.loads(text) for name, text in written[0].items()}
    assert set(results) == set(NAMES)
    assert all(results["rankers"].values())
    assert len(results["exposures"]) >= 3
    assert len(results["a_set_of_pins"]) == 12
    assert "rotate_certificate" in json.dumps(results["sentences_and_servers"])
    (deploy,) = [
        tool["function"]
        for tool in results["pruned_requests"][-1]["tools"]
        if tool["function"]["name"] == "deploy"
    ]
    assert list(deploy["parameters"]["properties"]) == ["service", "region", "replicas", "dry_run", "note"]

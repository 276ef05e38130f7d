"""From how many tools on it is worth hiding some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from langchain_tool_selection._exposure.base import Exposure
from langchain_tool_selection._ground.log import logger
from langchain_tool_selection._ground.settings import check_count
from langchain_tool_selection._ranking.index import CatalogView
from langchain_tool_selection.cost import Prices, average_workload, break_even, input_cost, prices_of


@dataclass(frozen=True)
class Tokens:
    """A number of tokens, where a plain number would be one of tools.

    Attributes:
        count: How many; 0 or more.
    """

    count: int

    def __post_init__(self) -> None:
        check_count("Tokens.count", self.count)


Threshold = int | Tokens | Literal["break_even"] | None


def check_threshold(value: Any) -> None:
    """Check `Thread.activate_above`."""
    if value == "break_even" or isinstance(value, Tokens):
        return
    if isinstance(value, str):
        raise ValueError(
            f"Thread.activate_above takes a number of tools, Tokens(...), 'break_even' or None, got {value!r}"
        )
    check_count("Thread.activate_above", value, optional=True)


class Activation:
    """Whether a catalogue is small enough to be sent whole.

    Args:
        above: A number of tools to choose from, of tokens of their definitions, or "break_even".
        top_k: How many are shown by relevance. With no more to choose from, nothing is hidden anyhow.
    """

    def __init__(self, above: Threshold, top_k: int) -> None:
        self._above = top_k if above is None else above
        self._top_k = top_k
        self._said: set[str] = set()

    @property
    def least(self) -> int:
        """Up to how many candidates nothing is hidden, whatever they and the model are."""
        return self._above if isinstance(self._above, int) else self._top_k

    def is_small(self, catalog: Callable[[], CatalogView], exposure: Exposure, model: str) -> bool:
        """Whether all tools of a request are to be sent, though there are more than the `least`.

        Args:
            catalog: Gives their texts. Reading all of them takes a while the first time.
            exposure: How a selection would be shown.
            model: The name of the request's model, with its provider.
        """
        if isinstance(self._above, int):
            return False
        if isinstance(self._above, Tokens):
            return catalog().tokens <= self._above.count
        prices = prices_of(model)
        return prices is not None and catalog().tokens < _break_even(catalog(), self._top_k, exposure, prices)

    def compare(self, catalog: CatalogView, exposure: Exposure, model: str) -> None:
        """Say once if sending everything would be cheaper than this selection."""
        prices = prices_of(model)
        if prices is None or exposure.name in self._said:
            return
        self._said.add(exposure.name)
        least = _break_even(catalog, self._top_k, exposure, prices)
        if catalog.tokens < least:
            workload = average_workload(catalog.tokens, len(catalog.documents), self._top_k)
            whole = input_cost("everything", catalog.tokens, workload, prices)
            share = whole / input_cost(exposure, catalog.tokens, workload, prices)
            logger.info(
                "%d tools of about %d tokens: exposure=%r pays from %d tokens on, and sending all of them "
                "would cost about %.0f%% of it (prices of %s, %s); activate_above='break_even' sends all",
                len(catalog.documents),
                catalog.tokens,
                exposure.name,
                least,
                100 * share,
                model,
                prices.as_of,
            )


def _break_even(catalog: CatalogView, top_k: int, exposure: Exposure, prices: Prices) -> float:
    workload = average_workload(catalog.tokens, max(1, len(catalog.documents)), top_k)
    return break_even(exposure, workload, prices)

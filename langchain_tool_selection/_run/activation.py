"""From how many tools on it is worth hiding some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from langchain_tool_selection._exposure.models import ExposureName
from langchain_tool_selection._ground.log import logger
from langchain_tool_selection._ground.settings import check_count
from langchain_tool_selection._ranking.index import Catalog
from langchain_tool_selection.cost import (
    Prices,
    Workload,
    average_workload,
    break_even,
    input_cost,
    prices_of,
)


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


def check_threshold(value: Any, top_k: int) -> None:
    """Check `activate_above`."""
    if value == "break_even" or isinstance(value, Tokens):
        return
    if isinstance(value, str):
        msg = f"activate_above must be a number of tools, Tokens(...), 'break_even' or None, got {value!r}"
        raise ValueError(msg)
    check_count("activate_above", value, at_least=top_k, optional=True)


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

    def is_small(
        self, candidates: int, catalog: Callable[[], Catalog], exposure: ExposureName, model: str
    ) -> bool:
        """Whether all of a request's tools are to be sent.

        Args:
            candidates: How many tools could be hidden.
            catalog: Gives their texts. Reading all of them takes a while the first time.
            exposure: How a selection would be shown.
            model: The name of the request's model, with its provider.
        """
        if candidates <= self._top_k:
            return True
        if isinstance(self._above, int):
            return candidates <= self._above
        if isinstance(self._above, Tokens):
            return catalog().tokens <= self._above.count
        prices = prices_of(model)
        return prices is not None and catalog().tokens < self._break_even(catalog(), exposure, prices)

    def compare(self, catalog: Catalog, exposure: ExposureName, model: str) -> None:
        """Say once if sending everything would be cheaper than this selection."""
        prices = prices_of(model)
        if prices is None or exposure in self._said:
            return
        self._said.add(exposure)
        least = self._break_even(catalog, exposure, prices)
        if catalog.tokens < least:
            workload = self._workload(catalog)
            whole = input_cost("everything", catalog.tokens, workload, prices)
            share = whole / input_cost(exposure, catalog.tokens, workload, prices)
            logger.info(
                "%d tools of about %d tokens: exposure=%r pays from %d tokens on, and sending all of them "
                "would cost about %.0f%% of it (prices of %s, %s); activate_above='break_even' sends all",
                len(catalog.documents),
                catalog.tokens,
                exposure,
                least,
                100 * share,
                model,
                prices.as_of,
            )

    def _break_even(self, catalog: Catalog, exposure: ExposureName, prices: Prices) -> float:
        return break_even(exposure, self._workload(catalog), prices)

    def _workload(self, catalog: Catalog) -> Workload:
        return average_workload(catalog.tokens, max(1, len(catalog.documents)), self._top_k)

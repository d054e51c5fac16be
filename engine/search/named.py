"""The strategies that ``strategy=`` takes: their names and what makes them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

from tacit.engine.search.data_dependent import DATA_DEPENDENT
from tacit.engine.search.strategies.adaptive import adaptive
from tacit.engine.search.strategies.coa import coa
from tacit.engine.search.strategies.dual import dual
from tacit.engine.search.strategies.esm import esm
from tacit.engine.search.strategies.free import free
from tacit.engine.search.strategies.hierarchical import hierarchical
from tacit.engine.search.strategies.identity import identity
from tacit.engine.search.strategies.low_rank import low_rank
from tacit.engine.search.strategies.lrm import lrm
from tacit.engine.search.strategies.p_identity import p_identity
from tacit.engine.search.strategies.results import results
from tacit.engine.search.strategies.wavelet import wavelet
from tacit.engine.search.strategies.weighted import weighted
from tacit.engine.strategy import Questions

Maker: TypeAlias = Callable[..., Questions]
"""What a file in ``strategies/`` gives: (workload, privacy, watch) in, L out; parameters are keywords."""

NAMED: dict[str, Maker] = {
    "identity": identity,
    "results": results,
    "hierarchical": hierarchical,
    "wavelet": wavelet,
    "esm": esm,
    "adaptive": adaptive,
    "lrm": lrm,
    "coa": coa,
    "weighted": weighted,
    "p-identity": p_identity,
    "low-rank": low_rank,
    "free": free,
    "dual": dual,
}
"""Those that factor the workload."""

MAKERS: dict[str, Callable[..., Any]] = {**NAMED, **DATA_DEPENDENT}
"""All, with what takes their parameters."""


def strategies() -> tuple[str, ...]:
    """The names that ``strategy=`` takes.

    >>> "lrm" in strategies() and "coa" in strategies()
    True
    """
    return tuple(MAKERS)


def strategy_descriptions() -> dict[str, str]:
    """What each of ``strategies()`` is, in a line: the first of its file, or of its settings.

    >>> strategy_descriptions()["identity"]
    'Noise on data: ask every cell, add the answers up (LRM, Eq. 4).'
    """
    texts = {name: sys.modules[maker.__module__].__doc__ for name, maker in NAMED.items()}
    texts |= {name: settings.__doc__ for name, settings in DATA_DEPENDENT.items()}
    return {name: (text or "").partition("\n")[0] for name, text in texts.items()}


def data_dependent_strategies() -> tuple[str, ...]:
    """Those of ``strategies()`` that look at the data with part of the budget: their error is not predicted.

    >>> data_dependent_strategies()
    ('dawa', 'mwem')
    """
    return tuple(DATA_DEPENDENT)

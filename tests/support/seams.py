"""Where tests break or watch a step of the package: each place once, so that moved code is one line here.

A function is replaced wherever the package has bound it, so that a test does not depend on which file calls which.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
import scipy.linalg

SEAMS = {
    "compile": "tacit.sql.compile:compile_batch",
    "schema": "tacit.sql.backends.duckdb.database:DuckDBSource.schema",
    "rehearse": "tacit.sql.backends.duckdb.database:DuckDBSource.rehearse",
    "count": "tacit.sql.backends.duckdb.database:DuckDBSource.count",
    "values": "tacit.sql.backends.duckdb.database:DuckDBSource.values",
    "prepare": "tacit.sql.backends.duckdb.settings:prepare",
    "render": "tacit.sql.backends.duckdb.scan_sql:render",
    "kept keys": "tacit.sql.backends.duckdb.scan_sql:kept_keys",
    "read column": "tacit.sql.backends.duckdb.scan_sql:read_column",
    "escape": "tacit.sql.total:Prover._escape",
    "meaning": "tacit.sql.backends.duckdb.settings:meaning",
    "key frame": "tacit.sql.backends.duckdb.scratch:frame",
    "evaluate": "tacit.sql.backends.duckdb.scratch:evaluate",
    "refine": "tacit.sql.refine:Refinement.refined",
    "search": "tacit.engine.search.optimize:optimize",
    "norm": "tacit.engine.mechanism.exact:largest_column_norm",
    "measure": "tacit.engine.mechanism.measure:measure",
    "measure in stages": "tacit.engine.mechanism.stages:measure_in_stages",
    "laplace": "tacit.engine.mechanism.noise:add_laplace",
    "gaussian": "tacit.engine.mechanism.noise:add_gaussian",
    "pack": "tacit.engine.mechanism.measurement:pack",
    "unpack": "tacit.engine.mechanism.measurement:unpack_with_cells",
    "threshold": "tacit.engine.mechanism.threshold:key_threshold",
    "open ledger file": "tacit.engine.accounting.file:_connect",
    "append": "tacit.engine.accounting.log:Log.append",
    "begin": "tacit.engine.accounting.ledger:Ledger.open_or_create",
    "charge": "tacit.engine.accounting.ledger:Ledger.charge",
    "store": "tacit.engine.accounting.ledger:Ledger.store",
    "releases": "tacit.engine.accounting.ledger:Ledger.releases_about",
    "check terms": "tacit.engine.accounting.ledger:Ledger._check_terms",
    "differences": "tacit.binding:PolicyTerms.differences",
    "sealed": "tacit.sealed:sealed",
    "without rows": "tacit.sealed:_without_rows",
}
DECOMPOSITIONS = frozenset({
    "cho_factor", "cholesky", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "lu", "lu_factor", "matrix_rank",
    "pinv", "pinvh", "polar", "qr", "schur", "solve", "svd", "svdvals",
})  # fmt: skip


def real(seam: str) -> Any:
    """What stands there now."""
    module, _, name = SEAMS[seam].partition(":")
    return attrgetter(name)(import_module(module))


def replace(patch: pytest.MonkeyPatch, seam: str, new: Any) -> None:
    """Put ``new`` there, and wherever the package has bound what stood there."""
    module, _, name = SEAMS[seam].partition(":")
    owner, _, attribute = name.rpartition(".")
    if owner:
        patch.setattr(attrgetter(owner)(import_module(module)), attribute, new)
        return
    old = real(seam)
    for loaded in [m for n, m in sys.modules.items() if n.partition(".")[0] == "tacit"]:
        for bound in [key for key, value in vars(loaded).items() if value is old]:
            patch.setattr(loaded, bound, new)


def watch(patch: pytest.MonkeyPatch, seam: str, seen: Callable[..., object]) -> None:
    """Call ``seen`` with the arguments before each call of what stands there."""
    old = real(seam)

    def watched(*args: Any, **options: Any) -> Any:
        seen(*args, **options)
        return old(*args, **options)

    replace(patch, seam, watched)


def refuse_decompositions(patch: pytest.MonkeyPatch) -> None:
    """Whatever takes n³ operations fails from now on, whichever of the two libraries it is asked of."""

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a decomposition that nobody needs")

    for library in (scipy.linalg, np.linalg):
        for name in DECOMPOSITIONS & set(dir(library)):
            patch.setattr(library, name, refused)

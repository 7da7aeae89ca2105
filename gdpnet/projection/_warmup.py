"""gdpnet.warmup: kernels compiled before they are needed."""

from __future__ import annotations

import logging

import torch

from gdpnet import kernels
from gdpnet.errors import SolverError
from gdpnet.ir.data import Boolean, Clause, Column, Row, Rule, RuleData
from gdpnet.ir.linear import Coefficient
from gdpnet.ir.rules import Rules
from gdpnet.projection.projector import Projector

logger = logging.getLogger("gdpnet")


def warmup(relaxations: bool = False) -> None:
    """Compile the exact engine now, so that the first request of a server does not wait for it.

    The compiled kernels are cached on disk: later processes load them in a fraction of a second.

    Args:
        relaxations: also compile the kernel of CNF and partial DNF.

    Example:
        >>> import gdpnet
        >>> gdpnet.warmup()
    """
    if not kernels.AVAILABLE:
        raise SolverError("The exact engine needs numba, which is not installed.")
    logger.info("Compiling the exact engine; the first time on a machine takes about a minute.")
    terms = ((0, Coefficient(1.0)),)
    rows = (Row("low", terms, Coefficient(3.0)), Row("high", terms, Coefficient(-7.0)))
    data = RuleData(
        inputs=(),
        input_bounds=(),
        outputs=1,
        columns=(Column("y", 0.0, 10.0),),
        rows=rows,
        global_rows=(),
        booleans=(Boolean("low", (0,)), Boolean("high", (1,))),
        clauses=(Clause("rule", (1, 2)),),
        rules=(Rule("rule", 0, (0, 1)),),
        conditions=(),
    )
    rules, yhat = Rules(data), torch.full((1, 1), 4.5, dtype=torch.float64)
    for relaxation in ("dnf", "cnf") if relaxations else ("dnf",):
        Projector(rules, relaxation=relaxation)(yhat)

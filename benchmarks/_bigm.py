"""The peer of coupled.py: Pyomo's own big-M of the same rules, in HiGHS.

`gdp.bigm` with its default constants, after `core.logical_to_linear`; the distance as an
objective; one thread, a gap of 1e-6, and HiGHS as it is otherwise. Only its run is timed: what
Pyomo takes to write the program is not.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import highspy
import numpy as np
import pyomo.environ as pyo
from _coupled_case import Case
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

GAP = 1e-6


class Peer(NamedTuple):
    """What the peer found.

    Attributes:
        seconds: of processor time.
        value: the distance of its point; infinite where it has none.
        bound: what it proved.
        finished: within the limit of time.
    """

    seconds: float
    value: float
    bound: float
    finished: bool


def outputs_of(outputs: list[Any]) -> list[Any]:
    """The variables, one by one."""
    return [var for each in outputs for var in (each.values() if each.is_indexed() else [each])]


def program(case: Case, x: np.ndarray, yhat: np.ndarray) -> tuple[Any, float]:
    """The big-M program as HiGHS takes it, and the constant of its objective."""
    m, outputs, inputs = case.build()
    flat = [param for each in inputs for param in (each.values() if each.is_indexed() else [each])]
    for param, value in zip(flat, x.tolist(), strict=True):
        param.set_value(value)
    y = outputs_of(outputs)
    m.peer_away = pyo.Var(range(len(y)), domain=pyo.NonNegativeReals)
    m.peer_above = pyo.Constraint(
        range(len(y)), rule=lambda m, j: m.peer_away[j] >= y[j] - float(yhat[j])
    )
    m.peer_below = pyo.Constraint(
        range(len(y)), rule=lambda m, j: m.peer_away[j] >= float(yhat[j]) - y[j]
    )
    m.peer_distance = pyo.Objective(expr=sum(m.peer_away.values()))
    pyo.TransformationFactory("core.logical_to_linear").apply_to(m)
    pyo.TransformationFactory("gdp.bigm").apply_to(m)
    form = LinearStandardFormCompiler().write(m, mixed_form=True, set_sense=None)
    infinite = highspy.kHighsInf
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(form.columns), len(form.rhs)
    lp.col_cost_ = np.asarray(form.c.todense()).ravel()
    ends = [var.bounds for var in form.columns]
    lp.col_lower_ = np.array([-infinite if low is None else low for low, _ in ends])
    lp.col_upper_ = np.array([infinite if up is None else up for _, up in ends])
    sense = np.array([row.bound_type for row in form.rows])
    lp.row_lower_ = np.where(sense == 1, -infinite, form.rhs)
    lp.row_upper_ = np.where(sense == -1, infinite, form.rhs)
    matrix = form.A.tocsc()
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr, matrix.indices
    lp.a_matrix_.value_ = matrix.data
    kinds = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
    lp.integrality_ = [kinds[int(not var.is_continuous())] for var in form.columns]
    return lp, float(form.c_offset[0])


def solve(case: Case, x: np.ndarray, yhat: np.ndarray, limit: float) -> Peer:
    """Solve one sample, `limit` seconds at most."""
    lp, offset = program(case, x, yhat)
    solver = highspy.Highs()
    for option, value in (
        ("output_flag", False), ("threads", 1), ("mip_rel_gap", GAP), ("time_limit", limit)
    ):  # fmt: skip
        solver.setOptionValue(option, value)
    solver.passModel(lp)
    began = time.process_time()
    solver.run()
    taken = time.process_time() - began
    info = solver.getInfo()
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    value = info.objective_function_value + offset if found else np.inf
    done = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return Peer(taken, value, info.mip_dual_bound + offset, done)

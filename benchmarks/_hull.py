"""The DNF's linear program, written directly in numpy and kept in HiGHS: what the engine replaces.

One model for each set of active rules. A new sample changes coefficients in place and starts from
the last basis, which is the fastest HiGHS can be had.
"""

from itertools import product

import highspy
import numpy as np

from gdpnet.ir.instance import Instance
from gdpnet.model import RuleModel
from gdpnet.solve.exact.engine import ExactEngine


class HullModel:
    """min sum eta over the hull of the lifted products of the active rules.

    Columns: y (d), then for every product its copy y_k (d), eta_k (d), lambda_k.
    Only coefficients of lambda_k depend on the sample.
    """

    def __init__(self, rules: RuleModel, active: np.ndarray) -> None:
        data = rules.data
        d = data.outputs
        matrix = rules.table.shared.numpy()
        equality = np.array([row.equality for row in data.rows])
        chosen = [
            data.clauses[rule.clause].literals
            for rule, on in zip(data.rules, active, strict=True)
            if on
        ]
        self.products = [
            [*data.global_rows, *(i for k in literals for i in data.booleans[k - 1].true_rows)]
            for literals in product(*chosen)
        ]
        self.d = d
        width = 2 * d + 1
        columns = d + width * len(self.products)
        entries: list[tuple[int, int, float]] = []
        lower: list[float] = []
        upper: list[float] = []
        self.moving: list[tuple[int, int, str, int, float]] = []  # row, column, what, index, sign

        def row(terms: list[tuple[int, float]], low: float, high: float) -> int:
            entries.extend((len(lower), column, value) for column, value in terms)
            lower.append(low)
            upper.append(high)
            return len(lower) - 1

        low, high = rules.lower.numpy(), rules.upper.numpy()
        for k, rows in enumerate(self.products):
            first = d + width * k
            weight = first + 2 * d
            for i in rows:
                terms = [(first + j, matrix[i, j]) for j in np.flatnonzero(matrix[i])]
                at = row([*terms, (weight, -1.0)], 0.0 if equality[i] else -np.inf, 0.0)
                self.moving.append((at, weight, "b", i, -1.0))
            for j in range(d):
                y, eta = first + j, first + d + j
                row([(y, 1.0), (weight, -high[j])], -np.inf, 0.0)
                row([(y, 1.0), (weight, -low[j])], 0.0, np.inf)
                at = row([(eta, 1.0), (y, -1.0), (weight, 1.0)], 0.0, np.inf)
                self.moving.append((at, weight, "yhat", j, 1.0))
                at = row([(eta, 1.0), (y, 1.0), (weight, -1.0)], 0.0, np.inf)
                self.moving.append((at, weight, "yhat", j, -1.0))
        weights = [(d + width * k + 2 * d, 1.0) for k in range(len(self.products))]
        row(weights, 1.0, 1.0)
        for j in range(d):
            copies = [(d + width * k + j, -1.0) for k in range(len(self.products))]
            row([(j, 1.0), *copies], 0.0, 0.0)

        cost, free, top = np.zeros(columns), np.zeros(columns), np.full(columns, np.inf)
        free[:d] = -np.inf
        for k in range(len(self.products)):
            first = d + width * k
            cost[first + d : first + 2 * d] = 1.0
            free[first : first + d] = -np.inf
        self.lp = self._model(columns, entries, lower, upper, cost, free, top)
        self.solver = self.new_solver()
        self.solver.passModel(self.lp)

    @staticmethod
    def new_solver() -> highspy.Highs:
        """A silent simplex with one thread."""
        solver = highspy.Highs()
        for option, value in {"output_flag": False, "threads": 1, "solver": "simplex"}.items():
            solver.setOptionValue(option, value)
        return solver

    @staticmethod
    def _model(
        columns: int,
        entries: list[tuple[int, int, float]],
        lower: list[float],
        upper: list[float],
        cost: np.ndarray,
        free: np.ndarray,
        top: np.ndarray,
    ) -> highspy.HighsLp:
        entries.sort()
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = columns, len(lower)
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, free, top
        lp.row_lower_, lp.row_upper_ = np.array(lower), np.array(upper)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        counts = np.bincount([i for i, _, _ in entries], minlength=len(lower))
        lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        lp.a_matrix_.index_ = np.array([j for _, j, _ in entries], dtype=np.int32)
        lp.a_matrix_.value_ = np.array([v for _, _, v in entries])
        return lp

    def solve(
        self, bound: np.ndarray, yhat: np.ndarray, cold: bool = False
    ) -> tuple[float, np.ndarray]:
        """Distance and point of one sample; `yhat` within the bounds."""
        solver = self.solver
        if cold:
            solver = self.new_solver()
            solver.passModel(self.lp)
        for row, column, what, index, sign in self.moving:
            value = bound[index] if what == "b" else yhat[index]
            solver.changeCoeff(row, column, sign * value)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(solver.modelStatusToString(solver.getModelStatus()))
        return solver.getObjectiveValue(), np.array(solver.getSolution().col_value[: self.d])


class HullSolver:
    """HiGHS on the DNF's LP for a batch, one kept model a pattern of active rules."""

    def __init__(self, rules: RuleModel) -> None:
        self.rules = rules
        self.engine = ExactEngine(rules)
        self.models: dict[bytes, HullModel] = {}

    def prepare(self, instance: Instance) -> list[HullModel]:
        """The model of each sample, made where it is new."""
        active = instance.active[:, self.engine.rule_clauses]
        found = []
        for row in active:
            key = row.tobytes()
            if key not in self.models:
                self.models[key] = HullModel(self.rules, row)
            found.append(self.models[key])
        return found

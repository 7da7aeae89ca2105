"""How far outputs are from satisfying the rules, for a batch at once.

The residuals here are those of rows without auxiliaries, and of disjuncts taken one rule at a
time. What needs a search (auxiliaries, logic over indicators) is in `solve/existence.py`.
"""

from __future__ import annotations

import torch

from gdpnet.ir.data import RuleData


class Satisfaction:
    """Index tensors that turn residuals of rows into residuals of rules.

    Args:
        data: the rules.
    """

    def __init__(self, data: RuleData) -> None:
        self.data = data
        pairs = [(k, row) for k, b in enumerate(data.booleans) for row in b.true_rows]
        self._of_boolean = torch.tensor([k for k, _ in pairs], dtype=torch.int64)
        self._row = torch.tensor([row for _, row in pairs], dtype=torch.int64)
        # Children come after their parents, so that going backwards children are done first.
        self._nested = [
            (index, clause.guard, torch.tensor([k - 1 for k in clause.literals]))
            for index, clause in enumerate(data.clauses)
            if clause.guard >= 0 and not clause.logic
        ][::-1]
        # A rule that may be broken at a price is as far from holding as its disjuncts are.
        disjuncts = [[k - 1 for k in data.clauses[rule.clause].disjuncts] for rule in data.rules]
        by_size: dict[int, list[int]] = {}
        for column, literals in enumerate(disjuncts):
            by_size.setdefault(len(literals), []).append(column)
        self._rules = [
            (torch.tensor(columns), torch.tensor([disjuncts[r] for r in columns]))
            for columns in by_size.values()
        ]
        self.hard = torch.tensor(data.hard, dtype=torch.bool)
        self.all_hard = all(data.hard)
        self._global = torch.tensor(data.global_rows, dtype=torch.int64)
        outputs = data.columns[: data.outputs]
        self.lower = torch.tensor([c.lower for c in outputs], dtype=torch.float64)
        self.upper = torch.tensor([c.upper for c in outputs], dtype=torch.float64)
        self._integer = torch.tensor([c.integer for c in outputs])

    def of_booleans(self, residual: torch.Tensor, active: torch.Tensor) -> torch.Tensor:
        """Residual of each disjunct: its worst row, nested disjunctions included.

        Args:
            residual: of rows, `batch x rows`.
            active: which clauses apply, `batch x clauses`.

        Returns:
            `batch x booleans`; 0 for booleans without rows.
        """
        batch, device = len(residual), residual.device
        value = residual.new_zeros(batch, len(self.data.booleans))
        if len(self._row):
            index = self._of_boolean.to(device).expand(batch, -1)
            value = value.scatter_reduce(1, index, residual[:, self._row.to(device)], "amax")
        for clause, guard, literals in self._nested:
            inner = value[:, literals.to(device)].amin(1) * active[:, clause]
            value[:, guard] = torch.maximum(value[:, guard], inner)
        return value

    def of_rules(self, booleans: torch.Tensor, active: torch.Tensor) -> torch.Tensor:
        """Violation of each rule: its nearest disjunct, 0 where the rule is inactive.

        Args:
            booleans: residuals of the disjuncts, `batch x booleans`.
            active: which rules apply, `batch x rules`.

        Returns:
            `batch x rules`.
        """
        value = booleans.new_zeros(len(booleans), len(self.data.rules))
        for columns, literals in self._rules:
            nearest = booleans[:, literals.to(booleans.device)].amin(2)
            value[:, columns.to(booleans.device)] = nearest
        return value * active

    def worst(self, violation: torch.Tensor, globally: torch.Tensor) -> torch.Tensor:
        """How far everything that has to hold is from holding, `batch`.

        Args:
            violation: of each rule, `batch x rules`.
            globally: of the rest, `batch`.
        """
        hard = violation if self.all_hard else violation[:, self.hard.to(violation.device)]
        return torch.maximum(globally, hard.amax(1)) if hard.shape[1] else globally

    def of_globals(self, residual: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Largest violation of global rows, bounds and integrality, `batch`."""
        device = y.device
        lower, upper = self.lower.to(device), self.upper.to(device)
        below = (lower - y) / lower.abs().clamp(min=1.0)
        above = (y - upper) / upper.abs().clamp(min=1.0)
        # An infinite bound gives -inf / inf.
        worst = torch.maximum(below.nan_to_num(0.0), above.nan_to_num(0.0)).amax(1).clamp(min=0.0)
        if len(self._global):
            worst = torch.maximum(worst, residual[:, self._global.to(device)].amax(1))
        if bool(self._integer.any()):
            whole = y[:, self._integer.to(device)]
            worst = torch.maximum(worst, (whole - whole.round()).abs().amax(1))
        return worst

"""Satisfaction where rows alone do not decide it: auxiliaries, and logic over indicators.

With auxiliaries most samples are decided by what the exact engine finds (`witness`); for the
others a small program is solved. With logic alone the truth values are found by propagation, once
for each pattern of disjuncts that hold; how far outputs are from having any is then one of finitely
many residuals, found by bisection.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from gdpnet.errors import SolverError
from gdpnet.ir.batch import Batch
from gdpnet.ir.data import Clause
from gdpnet.ir.logic import find_assignment
from gdpnet.ir.rules import Evaluated, Rules
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.lp.program import Outcome
from gdpnet.solve.milp import cuts, disjunctive
from gdpnet.solve.milp.sample import RulesAtSample
from gdpnet.solve.witness import auxiliary_rows, columns_at, least_residual, over_all_columns
from gdpnet.threads import in_threads

_ALL = slice(None)
# Samples are measured in pieces of this size, so that memory stays flat for any batch.
_PIECE = 16384
# A violation that is lost in rounding.
_NOTHING = 1e-12


def satisfied(rules: Rules, batch: Batch, tol: float, by_own_size: bool = False) -> torch.Tensor:
    """Whether everything holds together, for some value of the auxiliaries, bool `batch`.

    Args:
        rules: the rules.
        batch: inputs and outputs, flat.
        tol: relative to `max(1, |b|, max|a|)` of a row.
        by_own_size: relative to `max(|b|, max|a|)` instead, as the exact engine has it.
    """
    found = [_satisfied(State(rules, piece, by_own_size), tol) for piece in _pieces(batch)]
    return torch.cat(found)


def _satisfied(state: State, tol: float) -> torch.Tensor:
    if state.rules.auxiliary_names:
        return _holds_with_auxiliaries(state, tol)
    return _holds_at(state, tol)


def _holds_at(state: State, tol: float) -> torch.Tensor:
    """Whether everything holds together where rows tell, bool `batch`."""
    holds = state.worst() <= tol
    if state.rules.is_plain or not bool(holds.any()):
        return holds
    levels = holds.new_full((len(holds),), tol, dtype=torch.float64)
    return holds & state.consistent(levels)


def measure(rules: Rules, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Violation of each rule, `batch x rules`, and global violation, `batch`, flat."""
    found = zip(*(_measure(State(rules, piece)) for piece in _pieces(batch)), strict=True)
    violation, globally = map(torch.cat, found)
    return violation, globally


def _measure(state: State) -> tuple[torch.Tensor, torch.Tensor]:
    if state.rules.auxiliary_names:
        return _with_auxiliaries(state)
    if state.rules.is_plain:
        return state.violation, state.globally
    apart = (~state.consistent(state.worst())).nonzero().flatten()
    if len(apart):
        # No truth values at the level of the worst, so the joint level is above it.
        state.globally[apart] = state.joint(apart)
    return state.violation, state.globally


def _pieces(batch: Batch) -> list[Batch]:
    return [
        Batch(batch.x[k : k + _PIECE], batch.y[k : k + _PIECE], batch.origin)
        for k in range(0, max(1, len(batch.y)), _PIECE)
    ]


def holding(rules: Rules, batch: Batch, tol: float) -> np.ndarray:
    """Booleans that are true together at outputs that satisfy the rules, bool `batch x booleans`.

    Of an untied boolean it tells whether its disjunct holds, chosen or not.
    """
    if rules.auxiliary_names:
        return _holding_with_auxiliaries(rules, batch)
    state = State(rules, batch)
    holds = (state.booleans <= tol).cpu().numpy()
    if not rules.is_plain:
        levels = torch.full((len(batch.y),), tol, dtype=torch.float64)
        for i, values in enumerate(state.assignments(levels)):
            for boolean, value in (values or {}).items():
                holds[i, boolean] = value
    return holds


def each(rules: Rules, batch: Batch, tol: float) -> np.ndarray:
    """Booleans whose disjunct holds by itself, bool `batch x booleans`.

    For outputs that break a rule, so that no truth values fit together; auxiliaries are taken at 0.
    """
    return (State(rules, batch).booleans <= tol).cpu().numpy()


def _holding_with_auxiliaries(rules: Rules, batch: Batch) -> np.ndarray:
    evaluated = rules.evaluate(batch.x)
    holds = np.zeros((len(batch.y), len(rules.data.booleans)), dtype=bool)
    for i, y in enumerate(batch.y.detach().cpu().numpy()):
        sample = RulesAtSample.of(rules, evaluated, i)
        program = sample.least_violation(y, sample.clauses, rules.data.global_rows, (), 0.0)
        for literal in cuts.solve(program, sample, disjunctive.solve).literals:
            holds[i, abs(literal) - 1] = literal > 0
    return holds


class State:
    """Residuals of a batch, with auxiliaries at 0."""

    def __init__(self, rules: Rules, batch: Batch, by_own_size: bool = False) -> None:
        self.rules, self.batch, self.by_own_size = rules, batch, by_own_size
        self.evaluated: Evaluated = rules.evaluate(batch.x)
        rules.refuse_unusable(self.evaluated)
        if by_own_size:
            self.evaluated = replace(self.evaluated, rows=self.evaluated.rows.by_own_size())
        auxiliaries = batch.y.new_zeros(len(batch.y), len(rules.auxiliary_names))
        self.y = batch.y.detach().cpu().numpy()
        self.outputs = batch.y
        self.residual = self.evaluated.rows.residual(torch.cat([batch.y, auxiliaries], 1))
        satisfaction = rules.satisfaction
        self.booleans = satisfaction.of_booleans(self.residual, self.evaluated.clauses)
        self.violation = satisfaction.of_rules(self.booleans, self.evaluated.rules)
        self.globally = satisfaction.of_globals(self.residual, batch.y)
        self._solved: dict[tuple[bool, ...], dict[int, bool] | None] = {}

    def possible(self, tol: float) -> torch.Tensor:
        """Samples that some auxiliaries within their bounds may make hold, bool `batch`."""
        satisfaction, evaluated = self.rules.satisfaction, self.evaluated
        least = least_residual(self.rules, evaluated.rows, self.residual, self.outputs, tol)
        booleans = satisfaction.of_booleans(least, evaluated.clauses)
        violation = satisfaction.of_rules(booleans, evaluated.rules)
        worst = satisfaction.worst(violation, satisfaction.of_globals(least, self.outputs))
        return (worst <= tol) & self.outputs.isfinite().all(1)

    def with_auxiliaries(self, samples: torch.Tensor) -> State | None:
        """The same for some samples, with auxiliaries that the exact engine finds.

        Args:
            samples: bool `batch`.

        Returns:
            None where there are none, or no engine.
        """
        if not bool(samples.any()):
            return None
        batch = Batch(self.batch.x[samples], self.batch.y[samples], self.batch.origin)
        found = columns_at(self.rules, batch)
        if found is None:
            return None
        return State(over_all_columns(self.rules), found, self.by_own_size)

    def worst(self) -> torch.Tensor:
        """How far the worst of what has to hold is from holding, `batch`."""
        return self.rules.satisfaction.worst(self.violation, self.globally)

    def consistent(
        self, levels: torch.Tensor, samples: torch.Tensor | slice = _ALL
    ) -> torch.Tensor:
        """Whether truth values exist when disjuncts may be broken by `levels`, bool `samples`."""
        found = [assignment is not None for assignment in self.assignments(levels, samples)]
        return torch.tensor(found, dtype=torch.bool, device=self.globally.device)

    def joint(self, samples: torch.Tensor) -> torch.Tensor:
        """Least level at which truth values exist, `samples`; inf where they never do.

        What may be true or false changes only where the level passes a residual, so the least
        level is one of them (or 0).
        """
        false_rows = [row for boolean in self.rules.data.booleans for row in boolean.false_rows]
        residuals = torch.cat([self.booleans[samples], self.residual[samples][:, false_rows]], 1)
        ladder = residuals.sort(1).values
        never = ladder.new_full((len(ladder), 1), torch.inf)
        ladder = torch.cat([torch.zeros_like(never), ladder, never], 1)
        low = torch.zeros(len(samples), dtype=torch.int64, device=ladder.device)
        high = torch.full_like(low, ladder.shape[1] - 1)  # infinite: not to be asked
        while bool((low < high).any()):
            left = (low < high).nonzero().flatten()
            middle = (low[left] + high[left]) // 2
            holds = self.consistent(ladder[left, middle], samples[left])
            high[left] = torch.where(holds, middle, high[left])
            low[left] = torch.where(holds, low[left], middle + 1)
        return ladder[torch.arange(len(ladder), device=ladder.device), low]

    def assignments(
        self, levels: torch.Tensor, samples: torch.Tensor | slice = _ALL
    ) -> list[dict[int, bool] | None]:
        """Truth values for each sample, None where there are none."""
        data = self.rules.data
        residual = self.residual[samples]
        may = self.booleans[samples] <= levels[:, None]
        may_not = torch.ones_like(may)
        for k, boolean in enumerate(data.booleans):
            for row in boolean.false_rows:
                may_not[:, k] &= residual[:, row] <= levels
        pattern = torch.cat([may, may_not, self.evaluated.clauses[samples]], 1)
        different, which = torch.unique(pattern, dim=0, return_inverse=True)
        solved = [self._solve(tuple(row)) for row in different.tolist()]
        return [solved[k] for k in which.tolist()]

    def clauses_at(self, level: float) -> list[tuple[int, ...]]:
        """What the truth values of a single sample have to satisfy at a level."""
        may = self.booleans[0] <= level
        may_not = [
            all(float(self.residual[0, row]) <= level for row in boolean.false_rows)
            for boolean in self.rules.data.booleans
        ]
        active = self.evaluated.clauses[0].tolist()
        return self._clauses(tuple(may.tolist()), tuple(may_not), tuple(active))

    def _solve(self, pattern: tuple[bool, ...]) -> dict[int, bool] | None:
        """Truth values for what may be true, what may be false and which clauses apply."""
        if pattern not in self._solved:
            count = len(self.rules.data.booleans)
            parts = pattern[:count], pattern[count : 2 * count], pattern[2 * count :]
            self._solved[pattern] = find_assignment(self._clauses(*parts), {})
        return self._solved[pattern]

    def _clauses(
        self, may: tuple[bool, ...], may_not: tuple[bool, ...], active: tuple[bool, ...]
    ) -> list[tuple[int, ...]]:
        data = self.rules.data
        clauses: list[tuple[int, ...]] = []
        for clause, on in zip(data.clauses, active, strict=True):
            if not on or not _is_tied(self.rules, clause):
                continue
            literals = [-(clause.guard + 1)] if clause.guard >= 0 else []
            holds = False
            for literal in clause.literals:
                if data.booleans[abs(literal) - 1].tied:
                    literals.append(literal)
                else:
                    holds |= may[literal - 1]
            if not holds:
                clauses.append(tuple(literals))
        for k, boolean in enumerate(data.booleans):
            if boolean.tied:
                clauses += [] if may[k] else [(-(k + 1),)]
                clauses += [] if may_not[k] else [(k + 1,)]
        return clauses


def _is_tied(rules: Rules, clause: Clause) -> bool:
    booleans = rules.data.booleans
    guard_tied = clause.guard >= 0 and booleans[clause.guard].tied
    # A proposition that can never hold is a clause of logic without literals.
    tied = any(booleans[abs(literal) - 1].tied for literal in clause.literals)
    return clause.logic or guard_tied or tied


def _apart(state: State) -> tuple[torch.Tensor, list[int], frozenset[int]]:
    """Global violation of what has no auxiliaries; global rows that have some; all rows that do."""
    data = state.rules.data
    auxiliary = auxiliary_rows(state.rules)
    fixed = torch.tensor([i not in auxiliary for i in range(len(data.rows))], dtype=torch.bool)
    plain = torch.where(fixed.to(state.residual.device), state.residual, 0.0)
    globally = state.rules.satisfaction.of_globals(plain, state.outputs)
    return globally, [i for i in data.global_rows if i in auxiliary], auxiliary


def _holds_with_auxiliaries(state: State, tol: float) -> torch.Tensor:
    """Whether everything holds together within a tolerance; programs stop where it cannot."""
    _, floating, _ = _apart(state)
    holds = state.possible(tol)
    found = state.with_auxiliaries(holds)
    known = torch.zeros_like(holds)
    if found is not None:
        known[holds] = _holds_at(found, tol).to(known.device)

    def one(i: int) -> bool:
        sample = RulesAtSample.of(state.rules, state.evaluated, i)
        y = state.y[i]
        level = _least(sample, y, (), floating, (), 0.0, tol) if floating else 0.0
        return level <= tol and _least(sample, y, sample.clauses, (), floating, level, tol) <= tol

    candidates = (holds & ~known).nonzero().flatten().tolist()

    def work(span: tuple[int, int]) -> None:
        for k in range(*span):
            holds[candidates[k]] = one(candidates[k])

    in_threads(work, len(candidates), None)
    return holds


def _with_auxiliaries(state: State) -> tuple[torch.Tensor, torch.Tensor]:
    data = state.rules.data
    globally, floating, auxiliary = _apart(state)
    violation = state.violation.clone()
    searched = [r for r, rule in enumerate(data.rules) if data.rows_below(rule.clause) & auxiliary]
    subtrees = {r: {data.clauses[k] for k in data.subtree(data.rules[r].clause)} for r in searched}
    active = state.evaluated.rules.tolist()
    holds = _holds_by_auxiliaries(state)
    violation[holds.nonzero(), searched] = 0.0
    candidates = (~holds).nonzero().flatten().tolist()

    def one(i: int) -> None:
        sample = RulesAtSample.of(state.rules, state.evaluated, i)
        y = state.y[i]
        level = _least(sample, y, (), floating, (), 0.0) if floating else 0.0
        joint = _least(sample, y, sample.clauses, (), floating, level)
        for r in searched:
            # A hard rule by itself is never further from holding than all of them together.
            top = data.clauses[data.rules[r].clause]
            alone = active[i][r] and (joint > 0.0 or top.breaking >= 0)
            clauses = [c for c in sample.clauses if c in subtrees[r]] if alone else []
            clauses = [top.unbroken if c == top else c for c in clauses]
            violation[i, r] = _least(sample, y, clauses, (), floating, level) if alone else 0.0
        hard = violation[i][state.rules.satisfaction.hard].tolist()
        explained = max(level, float(globally[i]), *hard, 0.0)
        globally[i] = max(float(globally[i]), level, joint if joint > explained + 1e-12 else 0.0)

    def work(span: tuple[int, int]) -> None:
        for k in range(*span):
            one(candidates[k])

    in_threads(work, len(candidates), None)
    return violation, globally


def _holds_by_auxiliaries(state: State) -> torch.Tensor:
    """Samples in which no rule is broken at auxiliaries that the engine finds, bool `batch`."""
    holds = state.possible(_NOTHING)
    found = state.with_auxiliaries(holds)
    if found is None:
        return torch.zeros_like(holds)
    every = _holds_at(found, _NOTHING) & (found.violation <= _NOTHING).all(1)
    holds[holds.clone()] = every.to(holds.device)
    return holds


def _least(
    sample: RulesAtSample,
    y: np.ndarray,
    clauses: tuple[Clause, ...] | list[Clause],
    soft: tuple[int, ...] | list[int],
    hard: tuple[int, ...] | list[int],
    level: float,
    enough: float = float("inf"),
) -> float:
    """The least violation, or one beyond `enough` that is never overstated."""
    # The level was itself computed with rounding errors; a hair more keeps the rows feasible.
    # That of convex rows comes from tangents, which leave out what is within their tolerance.
    curved = any(sample.rules.data.rows[i].curves for i in hard)
    hair = 10 * TOLERANCES.holds if curved else _NOTHING
    program = sample.least_violation(y, clauses, soft, hard, level * (1 + 1e-9) + hair)
    answer = cuts.solve(program, sample, enough=enough)
    if answer.outcome is Outcome.INFEASIBLE:
        return float("inf")
    if answer.point is None:
        raise SolverError(f"HiGHS could not measure the violation: {answer.outcome.message}.")
    return max(0.0, float(answer.point[-1]))

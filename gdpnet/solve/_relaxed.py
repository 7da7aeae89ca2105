"""Projection onto CNF, partial DNF and written-out DNF: one linear program a sample.

Samples with the same active rules share a layout, which is made once and kept. All samples of a
batch go to the solver together. The point is checked against the rules: a relaxation's optimum may
break them, and the status says so.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gdpnet.convexify.plan import Plan
from gdpnet.convexify.program._layouts import Layouts, distinct, layouts_of
from gdpnet.ir.batch import Batch
from gdpnet.ir.instance import Instance
from gdpnet.rules.model import RuleModel
from gdpnet.solve import _exact, _existence, _milp
from gdpnet.solve._adaptive import take_basic_steps
from gdpnet.solve._exact import instantiate
from gdpnet.solve._milp import acceptance, whole_outputs
from gdpnet.solve._relaxed_jacobian import RelaxedJacobian
from gdpnet.solve._results import SOLVER_NAMES, Array, Options, Results
from gdpnet.solve._written_out import FAILED, INFEASIBLE, SOLVED, WrittenOut, check_available
from gdpnet.solve.status import Status
from gdpnet.threads import workers_of

if TYPE_CHECKING:
    from gdpnet.solve.lifted import LiftedEngine

logger = logging.getLogger("gdpnet")

# A point satisfies the rules if it does within this.
_SATISFIED = 1e-6

_STATUS = np.empty(3, dtype=np.int8)
_STATUS[[SOLVED, INFEASIBLE, FAILED]] = Status.PROJECTED, Status.CONFLICT, Status.ERROR

# Samples that pay for a solver's model of their own.
_PIECE = 64

# An integer output this near to a whole number is that number.
_NEARLY = 1e-9

# Below this a weight is fractional.
_WHOLE = 1.0 - 1e-7


def solve(
    rules: RuleModel,
    x: Array,
    yhat: Array,
    invalid: Array,
    options: Options,
    mark: bool,
    plan: Plan | None,
    solver: str,
    adaptive: bool = False,
) -> Results:
    """Project a flat batch; arguments as in `_exact.solve`, and the plan of basic steps.

    Without a plan all rules that hang together are merged: the DNF. With `adaptive` the plan is
    where it starts from.
    """
    if plan is not None:
        plan.indices(rules)
    check_available(solver)
    layouts = layouts_of(rules)
    instance = instantiate(layouts.ready.rules, x, invalid, mark)
    batch = RelaxedBatch(rules, layouts, x, yhat, instance, options, solver, adaptive)
    usable = np.flatnonzero(~invalid)
    accepted = batch.judge(usable, acceptance(rules, options))
    batch.plan(usable[~accepted], plan)
    batch.solve(usable[~accepted])
    if adaptive:
        take_basic_steps(batch)
    if options.nearest:
        conflict = np.flatnonzero((batch.results.status == Status.CONFLICT) & ~invalid)
        _milp.finish(rules, x, yhat, conflict, batch.results, options, incumbents={})
    return batch.results


class RelaxedBatch:
    """A batch, and the layout that each of its samples has now."""

    def __init__(
        self,
        rules: RuleModel,
        layouts: Layouts,
        x: Array,
        yhat: Array,
        instance: Instance,
        options: Options,
        solver: str,
        adaptive: bool,
    ) -> None:
        self.rules, self.layouts, self.x, self.options = rules, layouts, x, options
        self.instance, self.solver, self.adaptive = instance, solver, adaptive
        data = rules.data
        self.active = instance.active[:, [rule.clause for rule in data.rules]]
        self.results = Results.start(rules, yhat, self.active)
        self.results.instance = instance
        self.results.solver[:] = SOLVER_NAMES.index(solver)
        self.violation = np.zeros(self.active.shape)
        self.fractional = np.zeros((len(yhat), len(layouts.ready.rules.names)), dtype=bool)
        self.number = np.full(len(yhat), -1, dtype=np.int64)
        lower, upper = layouts.box(instance.bound)
        self.start = np.clip(yhat, lower, upper)
        self.outside = np.abs(self.start - yhat) @ options.weights
        if options.detailed:
            self.results.derivative = RelaxedJacobian(
                rules, layouts, self.number, instance, yhat, self.start
            )
        self.pruned = layouts.within_input_bounds(x)
        self.results.layout = self.number
        if not self.pruned.all():
            self.results.unpruned = ~self.pruned
            rules.kept("told of inputs outside", _tell_outside)

    def plan(self, samples: Array, plan: Plan | None) -> None:
        """Give samples the layout that a plan, or the DNF, has for their active rules."""
        first, which = self.layouts.patterns(self.instance.active[samples], self.pruned[samples])
        numbers = [
            self.layouts.planned(plan, self.instance.active[s], bool(self.pruned[s]))
            for s in samples[first].tolist()
        ]
        self.number[samples] = np.array(numbers, dtype=np.int64)[which]

    def solve(self, samples: Array) -> None:
        """Solve samples, and say what became of them."""
        if not len(samples):
            return
        results, outcome = self.results, np.full(len(samples), INFEASIBLE, dtype=np.int8)
        value = np.full(len(samples), np.inf)
        numbers = self.number[samples]
        y = self.start[samples]
        rest = ~np.array(self.layouts.contradictory)[numbers]
        for solver, chosen in self._solvers(numbers, rest):
            run = self._dense if solver == "extended" else partial(self._written_out, solver)
            results.solver[samples[chosen]] = SOLVER_NAMES.index(solver)
            y[chosen], value[chosen], outcome[chosen] = run(samples[chosen])
        solved = outcome == SOLVED
        results.y[samples[solved]] = whole_outputs(self.rules, y[solved], _NEARLY)
        results.value[samples] = np.where(solved, value + self.outside[samples], np.inf)
        results.status[samples] = _STATUS[outcome]
        self.judge(samples[solved], _SATISFIED)

    def _solvers(self, numbers: Array, rest: Array) -> list[tuple[str, Array]]:
        """Which samples each solver gets; what is too large for the dense one goes to HiGHS."""
        if self.solver != "extended":
            return [(self.solver, rest)] if rest.any() else []
        wanted = numbers[rest]
        small = self._small(wanted[distinct(wanted)[0]])
        split = (("extended", rest & small[numbers]), ("highs", rest & ~small[numbers]))
        return [(solver, chosen) for solver, chosen in split if chosen.any()]

    @property
    def _engine(self) -> LiftedEngine:
        from gdpnet.solve.lifted import LiftedEngine

        engine: LiftedEngine = self.layouts.ready.rules.kept("lifted engine", LiftedEngine)
        return engine

    def _small(self, used: Array) -> Array:
        """Which layouts the dense engine accepts, bool by number."""
        known = self.layouts.small
        for number in used.tolist():
            if number not in known:
                known[number] = self._engine.accepts(self.layouts.listed[number])
        small = np.zeros(len(self.layouts.listed), dtype=bool)
        small[used] = [known[number] for number in used.tolist()]
        return small

    def _dense(self, samples: Array) -> tuple[Array, Array, Array]:
        numbers = self.number[samples]
        first, which = distinct(numbers)
        used = numbers[first]
        found = self._engine.solve(
            *(self.instance.take(samples), self.start[samples], self.options.weights),
            *(which, [self.layouts.listed[k] for k in used.tolist()]),
            *(self.options.threads, self.options.detailed),
        )
        if self.options.detailed:
            self.results.derivative.groups.append((samples, found))
        for k, number in enumerate(used.tolist()) if self.adaptive else ():
            own = np.flatnonzero(which == k)
            self._note_weights(samples[own], number, found.weight[own])
        # Derivatives go by the outcomes that were found: those of a second solver are its own.
        y, value, outcome = found.y, found.value, found.outcome.copy()
        failed = np.flatnonzero(outcome == FAILED)
        if len(failed):  # a simplex that lost its way: rare
            self.results.solver[samples[failed]] = SOLVER_NAMES.index("highs")
            again = self._written_out("highs", samples[failed])
            y[failed], value[failed], outcome[failed] = again
        return y, value, outcome

    def _note_weights(self, samples: Array, number: int, weight: Array) -> None:
        """Remember which rules stand in a block none of whose products has all the weight."""
        if not self.adaptive:
            return
        self.fractional[samples] = False
        at = 0
        for part in self.layouts.listed[number]:
            for block in part.blocks:
                most = weight[:, at : at + len(block.products)].max(1)
                for rule in block.rules:
                    self.fractional[samples, rule] = most < _WHOLE
                at += len(block.products)

    def _written_out(self, solver: str, samples: Array) -> tuple[Array, Array, Array]:
        y, value = self.start[samples], np.zeros(len(samples))
        outcome = np.zeros(len(samples), dtype=np.int8)
        kept: dict[tuple[int, str, bool], WrittenOut] = self.rules.kept("written out", lambda _: {})
        # Who names a solver gets the program that the Pyomo chain writes.
        compact = self.solver == "extended"

        def work(job: tuple[int, Array]) -> None:
            number, own = job
            model = kept[number, solver, compact]
            some = self.instance.take(samples[own])
            parameters = model.program.parameters(some.bound, some.varying, y[own])
            found = model.solve(parameters, self.options.weights, self.options.detailed)
            value[own], outcome[own] = found.value, found.outcome
            self._note_weights(samples[own], number, found.weight)
            if found.jacobian is not None:
                self.results.derivative.groups.append((samples[own], found.jacobian))
            y[np.ix_(own, model.program.which)] = found.y

        jobs = []
        for number in np.unique(self.number[samples]).tolist():
            if (number, solver, compact) not in kept:
                write = self.layouts.compact if compact else self.layouts.program
                kept[number, solver, compact] = WrittenOut(write(number), solver)
            own = np.flatnonzero(self.number[samples] == number)
            pieces = np.array_split(own, -(-len(own) // _PIECE))
            jobs += [(number, piece) for piece in pieces]
        threads = min(workers_of(self.options.threads), len(jobs))
        if threads == 1 or len(samples) < _PIECE:
            list(map(work, jobs))
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(work, jobs))
        return y, value, outcome

    def judge(self, samples: Array, tol: float) -> Array:
        """Which samples satisfy the rules; notes which disjuncts hold, and RELAXED where not."""
        return judge(
            *(self.rules, self.x, self.instance, self.results, samples, tol, self.violation)
        )

    def broken(self, samples: Array) -> Array:
        """Which rules samples break, bool `samples x rules`."""
        if self.rules.is_plain:
            return self.violation[samples] > _SATISFIED
        batch = Batch.of_arrays(self.x[samples], self.results.y[samples])
        return (self.rules.violation(batch.y, batch.x) > _SATISFIED).numpy()


def judge(
    rules: RuleModel,
    x: Array,
    instance: Instance | None,
    results: Results,
    samples: Array,
    tol: float,
    violation: Array | None = None,
) -> Array:
    """Which samples satisfy the rules; notes which disjuncts hold, and RELAXED where not.

    Args:
        rules: the rules.
        x: inputs, (B, p).
        instance: the rules of the batch; None where nobody has them.
        results: the points, changed.
        samples: those to look at.
        tol: a rule, a row or a bound holds within this.
        violation: gets the violation of each rule where the rules are plain, (B, rules).
    """
    if not len(samples):
        return np.zeros(0, dtype=bool)
    if rules.is_plain and instance is not None and _exact.AVAILABLE:
        from gdpnet.solve.lifted import Judge

        kept: Judge = rules.kept("judge", Judge)
        measured = np.empty(results.active.shape) if violation is None else violation
        held = kept(
            *(samples, instance, results.active, results.y, tol, results.assignment, measured)
        )
        results.status[samples[~held]] = Status.RELAXED
        return held
    batch = Batch.of_arrays(x[samples], results.y[samples])
    holds = rules.satisfied(batch.y, batch.x, tol).numpy()
    results.status[samples[~holds]] = Status.RELAXED
    if violation is not None and rules.is_plain:
        violation[samples] = rules.violation(batch.y, batch.x).numpy()
    for group, look in ((samples[holds], _existence.holding), (samples[~holds], _existence.each)):
        if len(group):
            part = Batch.of_arrays(x[group], results.y[group])
            results.assignment[group] = look(rules, part, tol).astype(np.int8)
    return holds


def _tell_outside(rules: RuleModel) -> None:
    logger.warning(
        "Some inputs lie outside input_bounds: their relaxations are solved with all products, "
        "none left out as empty (info.unpruned tells which)."
    )

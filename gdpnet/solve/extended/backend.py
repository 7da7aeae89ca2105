"""Projection onto CNF, partial DNF and written-out DNF: one linear program a sample.

Samples with the same active rules share a layout, which is made once and cached. All samples of a
batch go to the solver together. The point is checked against the rules: a relaxation's optimum may
break them, and the status says so.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gdpnet import core
from gdpnet.checks import check_choice
from gdpnet.ir.batch import Batch
from gdpnet.ir.instance import Instance
from gdpnet.ir.rules import Rules
from gdpnet.ir.steps import smallest_row
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.lp.program import Outcome
from gdpnet.lp.solvers import SOLVERS
from gdpnet.relaxation.layouts import Layouts, distinct, layouts_of
from gdpnet.relaxation.plan import Plan
from gdpnet.solve import existence
from gdpnet.solve.base import Answer, Array, Backend, Capabilities, Request
from gdpnet.solve.extended.adaptive import take_basic_steps
from gdpnet.solve.extended.jacobian import RelaxedJacobian
from gdpnet.solve.extended.judge import judge
from gdpnet.solve.extended.pays import Pays
from gdpnet.solve.extended.written_out import WrittenOut
from gdpnet.solve.milp.backend import MILP, finish, integer_outputs, whole_outputs
from gdpnet.solve.status import Status
from gdpnet.threads import map_in_threads

if TYPE_CHECKING:
    from gdpnet.solve.extended.engine import ExtendedEngine

logger = logging.getLogger("gdpnet")

_STATUS = np.full(len(Outcome), Status.ERROR, dtype=np.int8)
_STATUS[[Outcome.OPTIMAL, Outcome.INFEASIBLE]] = Status.PROJECTED, Status.CONFLICT

# Samples that pay for a solver's model of their own.
_PIECE = 64

# Below this a weight is fractional.
_WHOLE = 1.0 - 1e-7

_OWN = "simplex"


class Extended(Backend):
    """Linear programs in copies of y: the extended formulation of CNF, partial DNF or DNF.

    Args:
        solver: `"simplex"` (default): gdpnet's own, or where a program is large HiGHS on a compact
            form of it. `"highs"`: HiGHS on the program that the Pyomo chain writes, kept, with
            coefficients changed in place; `"gurobi"` likewise. Those two start from the last basis,
            so where several points are equally near, which one they give may depend on the samples
            before.

    Example:
        >>> import gdpnet
        >>> [gdpnet.solve.Extended(solver).name for solver in ("simplex", "highs")]
        ['extended', 'highs']
    """

    capabilities = Capabilities(relaxations=True, linearisation=True, nearest=True, prices=True)

    def __init__(self, solver: str = _OWN) -> None:
        check_choice("Extended: solver", solver, (_OWN, *SOLVERS))
        self.solver = solver

    @property
    def name(self) -> str:
        """What `info.solver` calls it."""
        return "extended" if self.solver == _OWN else self.solver

    @property
    def description(self) -> str:
        """How it solves."""
        solver = "gdpnet's dense simplex" if self.solver == _OWN else SOLVERS[self.solver].title
        return f"written out, solved by {solver}"

    def available(self) -> str | None:
        """Why it cannot be used here; None where it can."""
        if self.solver == _OWN:
            return core.unavailable("solver='extended'", "solver='highs'")
        return SOLVERS[self.solver].unavailable()

    def solve(self, request: Request) -> Answer:
        """Project a flat batch."""
        rules, settings = request.rules, request.settings
        layouts = layouts_of(rules)
        instance = request.evaluate(layouts.ready.rules)
        batch = RelaxedBatch(request, layouts, instance, self.name, self.solver)
        usable = np.flatnonzero(~request.invalid)
        accepted = batch.accept(usable, settings.tolerance * rules.cache[smallest_row])
        batch.plan(usable[~accepted], settings.plan)
        batch.solve(usable[~accepted])
        if settings.adaptive:
            take_basic_steps(batch)
        if settings.nearest:
            conflict = (batch.answer.status == Status.CONFLICT) & ~request.invalid
            finish(request, np.flatnonzero(conflict), batch.answer, MILP())
        return batch.answer


class RelaxedBatch:
    """A batch, and the layout that each of its samples has now.

    Args:
        request: the batch.
        layouts: of its rules.
        instance: the layouts' rules for the batch.
        name: of the backend.
        solver: of linear programs.
    """

    def __init__(
        self,
        request: Request,
        layouts: Layouts,
        instance: Instance,
        name: str,
        solver: str = _OWN,
    ) -> None:
        rules, yhat, settings = request.rules, request.yhat, request.settings
        self.rules, self.layouts, self.x, self.settings = rules, layouts, request.x, settings
        instance = instance._replace(price=instance.price / settings.price_unit)
        self.instance, self.adaptive = instance, settings.adaptive
        self.name, self.solver = name, solver
        active = instance.active[:, rules.cache[_rule_clauses]]
        self.violation = np.zeros(active.shape)
        self.fractional = np.zeros((len(yhat), len(layouts.ready.rules.names)), dtype=bool)
        self.number = np.full(len(yhat), -1, dtype=np.int64)
        self.pays = Pays(request, instance) if rules.cache[_has_prices] else None
        lower, upper = layouts.box(instance.bound)
        self.start = np.clip(yhat, lower, upper)
        self.outside = np.abs(self.start - yhat) @ settings.weights
        self.jacobian = None
        if settings.linearise:
            self.jacobian = RelaxedJacobian(rules, layouts, self.number, instance, yhat, self.start)
        solvers = dict.fromkeys((name, "highs", "milp"))
        self.answer = Answer.passed(request, active, *solvers)
        self.answer = self.answer.replace(linearisation=self.jacobian)
        self.answer = self.answer.noting(layout=self.number)
        self.pruned = layouts.within_input_bounds(request.x)
        if not self.pruned.all():
            self.answer = self.answer.noting(unpruned=~self.pruned)
            rules.cache[_tell_outside]

    def plan(self, samples: Array, plan: Plan | None) -> None:
        """Give samples the layout that a plan, or the DNF, has for their active rules."""
        if len(samples) < 2:  # nothing to compare
            for s in samples.tolist():
                active, pruned = self.instance.active[s], bool(self.pruned[s])
                self.number[s] = self.layouts.planned(plan, active, pruned)
            return
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
        answer, outcome = self.answer, np.full(len(samples), Outcome.INFEASIBLE, dtype=np.int8)
        value = np.full(len(samples), np.inf)
        numbers = self.number[samples]
        first, which = distinct(numbers)
        solver_of = [self._solver_of(number) for number in numbers[first].tolist()]
        y = self.start[samples]
        for solver in dict.fromkeys(solver_of):
            if solver is None:
                continue
            chosen = np.array([other == solver for other in solver_of])[which]
            run = self._simplex if solver == _OWN else partial(self._written_out, solver)
            self._finished_by(solver, samples[chosen])
            y[chosen], value[chosen], outcome[chosen] = run(samples[chosen])
        solved = outcome == Outcome.OPTIMAL
        if self.rules.cache[integer_outputs] is not None:
            y = whole_outputs(self.rules, y, TOLERANCES.integer)
        answer.y[samples[solved]] = y[solved]
        answer.value[samples] = np.where(solved, value + self.outside[samples], np.inf)
        answer.status[samples] = _STATUS[outcome]
        self.judge(samples[solved], TOLERANCES.satisfied)
        if self.pays is not None:
            self.pays.judge(answer, samples[solved])

    def _finished_by(self, solver: str, samples: Array) -> None:
        name = self.name if solver == _OWN else solver
        self.answer.solver[samples] = self.answer.solvers.index(name)

    def _solver_of(self, number: int) -> str | None:
        """Who gets the samples of a layout; None where it contradicts itself.

        What is too large for the simplex goes to HiGHS.
        """
        if self.layouts.contradictory[number]:
            return None
        if self.solver != _OWN:
            return self.solver
        known = self.layouts.small
        if number not in known:
            known[number] = self._engine.accepts(self.layouts.listed[number])
        return _OWN if known[number] else "highs"

    @property
    def _engine(self) -> ExtendedEngine:
        from gdpnet.solve.extended.engine import ExtendedEngine

        return self.layouts.ready.rules.cache[ExtendedEngine]

    def _simplex(self, samples: Array) -> tuple[Array, Array, Array]:
        numbers = self.number[samples]
        first, which = distinct(numbers)
        used = numbers[first]
        found = self._engine.solve(
            *(self.instance.take(samples), self.start[samples], self.settings.weights),
            *(which, [self.layouts.listed[k] for k in used.tolist()]),
            threads=self.settings.threads,
            detailed=self.settings.linearise,
            price=self._prices(samples),
        )
        if self.jacobian is not None:
            self.jacobian.groups.append((samples, found))
        if self.adaptive or self.pays is not None:
            for k, number in enumerate(used.tolist()):
                own = np.flatnonzero(which == k)
                self._note_weights(samples[own], number, found.weight[own])
        # Derivatives go by the outcomes that were found: those of a second solver are its own.
        y, value, outcome = found.y, found.value, found.outcome.copy()
        failed = np.flatnonzero(outcome == Outcome.FAILED)
        if len(failed):  # a simplex that lost its way: rare
            self._finished_by("highs", samples[failed])
            proved = value[failed]  # by its last basis
            again = self._written_out("highs", samples[failed])
            y[failed], value[failed], outcome[failed] = again
            value[failed] = np.maximum(value[failed], proved)
        return y, value, outcome

    def _prices(self, samples: Array) -> Array | None:
        """What the products of each sample's layout cost, `samples x products`."""
        if not self.rules.data.priced:
            return None
        numbers, price = self.number[samples], self.instance.price[samples]
        found = {k: self.layouts.prices(k, price[numbers == k])[0] for k in np.unique(numbers)}
        every = np.zeros((len(samples), max(part.shape[1] for part in found.values())))
        for k, part in found.items():
            every[numbers == k, : part.shape[1]] = part
        return every

    def _note_weights(self, samples: Array, number: int, weight: Array) -> None:
        """Remember which rules stand in a block none of whose products has all the weight."""
        if self.pays is not None:
            self.pays.note(samples, self.layouts.listed[number], weight)
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
        cache = self.rules.cache[_written_out]
        # Who names a solver gets the program that the Pyomo chain writes.
        compact = self.solver == _OWN

        def work(job: tuple[int, Array]) -> None:
            number, own = job
            model = cache[number, solver, compact]
            some = self.instance.take(samples[own])
            parameters = model.program.parameters(some.bound, some.varying, y[own])
            price = self.layouts.prices(number, some.price)[0] if some.price.shape[1] else None
            found = model.solve(parameters, self.settings.weights, price, self.settings.linearise)
            value[own], outcome[own] = found.value, found.outcome
            self._note_weights(samples[own], number, found.weight)
            if self.jacobian is not None and found.jacobian is not None:
                self.jacobian.groups.append((samples[own], found.jacobian))
            y[np.ix_(own, model.program.which)] = found.y

        jobs = []
        for number in np.unique(self.number[samples]).tolist():
            if (number, solver, compact) not in cache:
                write = self.layouts.compact if compact else self.layouts.program
                cache[number, solver, compact] = WrittenOut(write(number), solver)
            own = np.flatnonzero(self.number[samples] == number)
            pieces = np.array_split(own, -(-len(own) // _PIECE))
            jobs += [(number, piece) for piece in pieces]
        map_in_threads(work, jobs, 1 if len(samples) < _PIECE else self.settings.threads)
        return y, value, outcome

    def judge(self, samples: Array, tol: float) -> Array:
        """Which samples satisfy the rules; notes which disjuncts hold, and RELAXED where not."""
        return judge(
            self.rules, self.x, self.instance, self.answer, samples, tol, violation=self.violation
        )

    def accept(self, samples: Array, tol: float) -> Array:
        """Which predictions satisfy the rules and pay nothing; notes as `judge` does."""
        held = self.judge(samples, tol)
        if self.pays is not None:
            held[held] = self.pays.choose(self.answer, samples[held]) == 0.0
        return held

    def broken(self, samples: Array) -> Array:
        """Which rules that have to hold samples break, bool `samples x rules`."""
        if self.rules.is_plain:
            return self.violation[samples] > TOLERANCES.satisfied
        batch = Batch.of_arrays(self.x[samples], self.answer.y[samples])
        broken = existence.measure(self.rules, batch)[0] > TOLERANCES.satisfied
        return (broken & self.rules.satisfaction.hard).numpy()


def _rule_clauses(rules: Rules) -> Array:
    """The clause of each rule."""
    return np.array([rule.clause for rule in rules.data.rules], dtype=np.int64)


def _has_prices(rules: Rules) -> bool:
    return bool(rules.data.priced) or any(c.breaking >= 0 for c in rules.data.clauses)


def _written_out(_: Rules) -> dict[tuple[int, str, bool], WrittenOut]:
    """Programs in solvers, by layout, solver, and whether they are compact."""
    return {}


def _tell_outside(_: Rules) -> None:
    logger.warning(
        "Some inputs lie outside input_bounds: their relaxations are solved with all products, "
        "none left out as empty (info.unpruned tells which)."
    )

"""Projection onto CNF, partial DNF and written-out DNF by conic programs.

For the Euclidean norm, and in any norm for rules with convex rows. One conic program a sample,
whose value is a lower bound on the distance, or its square. Its point is no vertex: where disjuncts
share the weight it is a mean of theirs. In a part whose rules are all merged every copy with weight
is a nearest point of its disjuncts, and the first of them is taken. A point that satisfies the
rules is the nearest one, since

    |W (y - yhat)|^2 = |W sum_k (y_k - weight_k yhat)|^2 <= sum_k |W (y_k - ...)|^2 / weight_k

and is found again by the exact engine on the disjuncts that hold there. So is the point where one
copy of every block carries all the weight. Any other is RELAXED.
"""

from __future__ import annotations

import numpy as np

from gdpnet import core
from gdpnet.ir.instance import Instance
from gdpnet.ir.semantics import enforced
from gdpnet.ir.steps import smallest_row
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.lp import clarabel
from gdpnet.lp.program import Outcome
from gdpnet.relaxation.blocks import MergedBlock
from gdpnet.relaxation.layouts import Layouts, distinct, layouts_of
from gdpnet.relaxation.program import RelaxationProgram
from gdpnet.solve.base import (
    Answer,
    Array,
    Backend,
    Capabilities,
    Gradients,
    Linearisation,
    Request,
    Settings,
)
from gdpnet.solve.conic.linearisation import ConicLinearisation
from gdpnet.solve.conic.written import ConicSolved, Programs
from gdpnet.solve.exact.backend import Exact
from gdpnet.solve.extended.adaptive import take_basic_steps
from gdpnet.solve.extended.backend import RelaxedBatch
from gdpnet.solve.extended.rows_alone import chosen_rows, project_onto_rows
from gdpnet.solve.milp.backend import integer_outputs, whole_outputs
from gdpnet.solve.status import Status

# A copy with less weight is what the interior-point method left over.
_WEIGHT = 1e-3

# A copy with more has all of it: weights are right to the root of the tolerance.
_WHOLE = 1.0 - 1e-4

# What a conic program's value may miss of the squared distance it stands for.
_VALUE = 1e-6


class Conic(Backend):
    """Conic programs in copies of y: CNF, partial DNF or DNF, by Clarabel.

    For norm="l2", and for rules with convex rows in either norm.

    Example:
        >>> import gdpnet
        >>> gdpnet.solve.Conic().name
        'clarabel'
    """

    capabilities = Capabilities(
        norms=frozenset({"l1", "l2"}),
        relaxations=True,
        linearisation=True,
        convex=True,
        prices=True,
    )
    name = "clarabel"
    description = "written out as a conic program, solved by Clarabel"

    def available(self) -> str | None:
        """Why it cannot be used here; None where it can."""
        return clarabel.unavailable() or core.unavailable("solver='clarabel'", "solver='highs'")

    def solve(self, request: Request) -> Answer:
        """Project a flat batch."""
        layouts = layouts_of(request.rules)
        instance = request.evaluate(layouts.ready.rules)
        batch = ConicBatch(request, layouts, instance, self.name)
        usable = np.flatnonzero(~request.invalid)
        least = request.settings.tolerance * request.rules.cache[smallest_row]
        open_ = usable[~batch.accept(usable, least)]
        batch.plan(open_, request.settings.plan)
        batch.solve(open_)
        if request.settings.adaptive:
            take_basic_steps(batch)
        return batch.answer


class ConicBatch(RelaxedBatch):
    """A batch, and the layout that each of its samples has now."""

    def __init__(self, request: Request, layouts: Layouts, instance: Instance, name: str) -> None:
        super().__init__(request, layouts, instance, name)
        self.request = request
        self.jacobian = None
        self.derivative = ConicLinearisation(
            request, layouts, self.number, self.instance, self.start
        )
        self.answer = self.answer.replace(
            linearisation=self.derivative, solvers=("none", name, "exact")
        )

    def solve(self, samples: Array) -> None:
        """Solve samples, and say what became of them."""
        if not len(samples):
            return
        answer = self.answer
        value = np.full(len(samples), np.inf)
        outcome = np.full(len(samples), Outcome.INFEASIBLE, dtype=np.int8)
        y = self.start[samples]
        numbers = self.number[samples]
        first, which = distinct(numbers)
        carried: dict[int, frozenset[int]] = {}
        for k, number in enumerate(numbers[first].tolist()):
            if self.layouts.contradictory[number]:
                continue
            own = np.flatnonzero(which == k)
            written = self.rules.cache[Programs].of(number, self.settings.norm)
            program = written.program
            data = self.derivative.data(program, number, samples[own])
            found = written.solve(data)
            outcome[own], value[own] = found.outcome, found.value + data.elsewhere(program)
            y[np.ix_(own, program.which)] = found.points[:, program.outputs]
            self._take_copies(number, program, found, own, y)
            self._note_weights(samples[own], number, found.weight)
            carried |= self._carried(number, found, samples[own])
            if self.settings.linearise and written.differentiable:
                good = np.flatnonzero(found.outcome == Outcome.OPTIMAL)
                jacobian = written.jacobian(data, found, good)
                self.derivative.add(samples[own[good]], jacobian)
        solved = outcome == Outcome.OPTIMAL
        if self.rules.cache[integer_outputs] is not None:
            y = whole_outputs(self.rules, y, _VALUE)
        answer.y[samples[solved]] = y[solved]
        answer.value[samples] = np.where(solved, np.maximum(value, 0.0), np.inf)
        answer.status[samples] = Status.RELAXED
        whole = np.array([s for s in samples[solved].tolist() if s in carried], dtype=np.int64)
        self._polish_carried(whole, [carried[s] for s in whole.tolist()])
        rest = samples[solved & (answer.status[samples] == Status.RELAXED)]
        answer.status[rest] = Status.PROJECTED
        held = rest[self.judge(rest, TOLERANCES.satisfied)]
        paid = np.zeros(len(held)) if self.pays is None else self.pays.choose(answer, held)
        self._polish(held, self._held_rows(held), paid)
        answer.status[samples[~solved]], answer.value[samples[~solved]] = Status.UNSOLVED, 0.0
        merged = [self._merged(number) for number in numbers.tolist()]
        relaxed = answer.status[samples] == Status.RELAXED
        self._left_to_exact(samples[~solved | (relaxed & merged)])
        if self.pays is not None:
            self.pays.choose(answer, samples[answer.status[samples] == Status.RELAXED])
            self.pays.note_satisfied(answer, samples)

    def _take_copies(
        self, number: int, program: RelaxationProgram, found: ConicSolved, own: Array, y: Array
    ) -> None:
        """Where all rules of a part are merged, its outputs are those of the first copy."""
        at = 0
        for part in self.layouts.listed[number]:
            products = sum(len(block.products) for block in part.blocks)
            if len(part.blocks) == 1 and not part.convex:
                taken = at + _first_with_weight(found.weight[:, at : at + products])
                for k in np.unique(taken).tolist():
                    rows = np.flatnonzero(taken == k)
                    columns = program.copies[k]
                    copy = found.points[np.ix_(rows, list(columns.values()))]
                    y[np.ix_(own[rows], list(columns))] = copy / found.weight[rows, k, None]
            at += products

    def _carried(
        self, number: int, found: ConicSolved, samples: Array
    ) -> dict[int, frozenset[int]]:
        """Literals of products that decide their blocks, by sample, where all are decided.

        A product decides where it has all the weight, or stands in the only block of its part.
        """
        decided = found.outcome == Outcome.OPTIMAL
        taken: list[tuple[MergedBlock, Array]] = []
        at = 0
        for part in self.layouts.listed[number]:
            for block in part.blocks:
                weight = found.weight[:, at : at + len(block.products)]
                taken.append((block, _first_with_weight(weight)))
                if len(part.blocks) > 1:
                    decided = decided & (weight.max(1) > _WHOLE)
                at += len(block.products)
        count = len(self.rules.data.booleans)  # behind these stand values of whole numbers
        return {
            int(samples[s]): frozenset(
                n for b, k in taken for n in b.products[int(k[s])].literals if abs(n) <= count
            )
            for s in np.flatnonzero(decided).tolist()
        }

    def _polish_carried(self, samples: Array, literals: list[frozenset[int]]) -> None:
        """Find points again from what decides their blocks."""
        data, paid = self.rules.data, np.zeros(len(samples))
        rows = [tuple(sorted(set(enforced(data.booleans, chosen)))) for chosen in literals]
        if self.pays is not None:
            chosen = [[k + 1 in own for k in data.priced] for own in literals]
            price = self.instance.price[samples]
            paid = (price * np.array(chosen, dtype=bool).reshape(price.shape)).sum(1)
        self._polish(samples, rows, paid)
        for s, own in zip(samples.tolist(), literals, strict=True) if self.pays is not None else ():
            if self.answer.status[s] == Status.PROJECTED:
                self.answer.assignment[s] = 0
                for n in own:
                    self.answer.assignment[s, abs(n) - 1] = 1 if n > 0 else -1

    def _polish(self, samples: Array, rows: list[tuple[int, ...]], paid: Array) -> None:
        """Find points again, from rows that hold there: to the last digits, with a derivative.

        What comes out is PROJECTED if it satisfies the rules and is as near as the program says;
        else the point stays as it is, RELAXED.

        Args:
            samples: of the batch.
            rows: of each.
            paid: the price of what each chooses, (samples,).
        """
        answer = self.answer
        if not len(samples):
            return
        for own, found in project_onto_rows(self.request.take(samples), rows):
            there = samples[own]
            value = found.value + paid[own]
            near = value <= answer.value[there] + _VALUE * np.maximum(1.0, value)
            good = found.answered & near
            answer.status[there] = Status.RELAXED
            before = answer.y[there]
            answer.y[there[good]] = found.y[good]
            answer.status[there[good]] = Status.PROJECTED
            good[good] = self.judge(there[good], TOLERANCES.satisfied)
            answer.y[there[~good]] = before[~good]
            if self.pays is not None:
                self.pays.choose(answer, there[good])
            self._accept(there[good], found, good, value[good])

    def _held_rows(self, samples: Array) -> list[tuple[int, ...]]:
        """Rows of the disjuncts that hold at points that satisfy the rules."""
        active, holds = self.instance.active, self.answer.assignment
        return [chosen_rows(self.rules, active[s], holds[s]) for s in samples.tolist()]

    def _accept(self, samples: Array, found: Answer, good: Array, value: Array) -> None:
        answer = self.answer
        answer.auxiliaries[samples] = found.auxiliaries[good]
        answer.value[samples] = np.minimum(answer.value[samples], value)
        if found.linearisation is not None:
            self.derivative.add(samples, _Some(found.linearisation, good))

    def _left_to_exact(self, samples: Array) -> None:
        """What Clarabel found no point for, or none that is near enough where it has to be.

        Where all rules that hang together are merged the exact engine's projections are those of
        the program; it has the last word on contradictions, too.
        """
        answer = self.answer
        if not len(samples):
            return
        found = Exact().solve(self.request.take(samples)._replace(settings=self._exactly))
        merged = [self._merged(number) for number in self.number[samples].tolist()]
        known = (found.status == Status.CONFLICT) | (found.answered & merged)
        there = samples[known]
        for name in ("y", "status", "value", "assignment", "auxiliaries"):
            getattr(answer, name)[there] = getattr(found, name)[known]
        answer.solver[there] = answer.solvers.index("exact")
        if found.linearisation is not None:
            self.derivative.add(there, _Some(found.linearisation, known))

    @property
    def _exactly(self) -> Settings:
        return self.settings._replace(plan=None, adaptive=False)

    def _merged(self, number: int) -> bool:
        """Whether every part of a layout has one block."""
        return all(len(part.blocks) == 1 for part in self.layouts.listed[number])


def _first_with_weight(weight: Array) -> Array:
    """The first product of a block with weight, by sample; the heaviest if none has much."""
    heavy = weight > _WEIGHT
    return np.where(heavy.any(1), heavy.argmax(1), weight.argmax(1))


class _Some(Linearisation):
    """The derivative of some samples of a batch."""

    def __init__(self, whole: Linearisation, good: Array) -> None:
        self._whole, self._good = whole, good

    def vjp(self, gradient: Array) -> Gradients:
        full = np.zeros((len(self._good), gradient.shape[1]))
        full[self._good] = gradient
        parts = self._whole.vjp(full)
        # The point of chosen rows does not follow prices.
        return Gradients(*(part[self._good] for part in parts[:3]))

"""Where hard rules contradict: the cheapest set of them left out, then the nearest point.

Every hard rule gets one more disjunct, which asks for a column of its own to be 1. First what is
left out counts alone: each of these disjuncts costs the importance of its rule, and distances and
prices cost nothing. That is a matter of the inputs: it is done once for all samples whose rules are
the same. Other sets that are as cheap are found by forbidding one rule after the other of those
that are known. Then the samples are projected as usual, without each of these sets, and the best is
taken.

Where there are very many such sets, one search takes all: nothing more may be left out than the
least, a row over the columns, and what is minimised is as usual.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gdpnet import core
from gdpnet.ir.data import Boolean, Column, Row, RuleData
from gdpnet.ir.instance import Instance
from gdpnet.ir.linear import Coefficient
from gdpnet.ir.rules import Rules
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.solve.base import Array
from gdpnet.solve.exact.backend import engine_of
from gdpnet.solve.exact.engine import ExactEngine
from gdpnet.solve.exact.options import SearchOptions

_MOST_SETS = 32  # that are tried one by one


class Dropped(NamedTuple):
    """What became of samples whose rules contradict each other.

    Attributes:
        z: columns, (B, n); NaN where nothing was found.
        value: of what is minimised, infinite where nothing was found, (B,).
        assignment: of the booleans, (B, booleans) int8.
        rules: which are left out, (B, rules) bool.
        hopeless: where leaving out rules does not help, (B,) bool.
    """

    z: Array
    value: Array
    assignment: Array
    rules: Array
    hopeless: Array


@dataclass(frozen=True)
class _Task:
    """A search for a cheapest set.

    Attributes:
        pattern: of the rules that apply.
        out: rules that are left out already.
        kept: rules that must not be.
    """

    pattern: int
    out: frozenset[int] = frozenset()
    kept: frozenset[int] = frozenset()


class Droppable:
    """Rules of which the hard ones may be left out.

    Args:
        rules: the rules.
    """

    def __init__(self, rules: Rules) -> None:
        data = rules.data
        self.hard = np.flatnonzero(np.array(data.hard, dtype=bool))
        self.importance = np.array([rule.importance for rule in data.rules])
        self.own = rules
        self.rules = Rules(_droppable(data, self.hard.tolist()))
        self.engine = ExactEngine(self.rules)
        self._original = np.isin(self.rules.data.priced, data.priced)
        self._clause = np.array([rule.clause for rule in data.rules], dtype=np.int64)

    def drop(self, x: Array, yhat: Array, options: SearchOptions) -> Dropped:
        """Leave out what contradicts.

        Args:
            x: inputs, (B, p).
            yhat: predictions, (B, d).
            options: how they are searched.
        """
        options = options._replace(tie="first")
        instance = Instance.of(self.rules, np.ascontiguousarray(x))
        size, data = len(x), self.own.data
        first, pattern = _patterns(instance)
        least, sets, hopeless = self._cheapest(instance.take(first), options)
        found = Dropped(
            z=np.full((size, len(data.columns)), np.nan),
            value=np.full(size, np.inf),
            assignment=np.zeros((size, len(data.booleans)), dtype=np.int8),
            rules=np.zeros((size, len(data.rules)), dtype=bool),
            hopeless=hopeless[pattern],
        )
        many = np.array([len(known) > _MOST_SETS for known in sets], dtype=bool)[pattern]
        self._by_set(instance, pattern, sets, np.flatnonzero(~many), yhat, options, found)
        if many.any():
            self._at_once(instance, least[pattern], np.flatnonzero(many), yhat, options, found)
        return found

    def _cheapest(
        self, instance: Instance, options: SearchOptions
    ) -> tuple[Array, list[list[frozenset[int]]], Array]:
        """What is left out at least in each pattern, (patterns,), and all sets that are as cheap.

        More than `_MOST_SETS` sets: not all. And where leaving out rules does not help,
        (patterns,) bool.
        """
        count, d = len(instance.active), self.own.data.outputs
        alone = options._replace(weights=np.zeros(d), norm="l1", price_unit=1.0)
        importance = np.zeros(len(self._original))
        importance[~self._original] = self.importance[self.hard]
        forbidden = 4.0 * self.importance.sum() + 1.0
        place = dict(zip(self.hard.tolist(), np.flatnonzero(~self._original), strict=True))
        least = np.full(count, np.inf)
        sets: list[list[frozenset[int]]] = [[] for _ in range(count)]
        tasks = [_Task(pattern) for pattern in range(count)]
        hopeless = None
        while tasks:
            part = instance.take(np.array([task.pattern for task in tasks]))
            price = np.tile(importance, (len(tasks), 1))
            active = part.active.copy()
            for k, task in enumerate(tasks):
                price[k, [place[r] for r in task.kept]] = forbidden
                active[k, self._clause[list(task.out)]] = False
            part = part._replace(price=price, active=active)
            solved = self.engine.project(part, np.zeros((len(tasks), d)), alone)
            if hopeless is None:  # of the first tasks, one a pattern
                hopeless = solved.status == core.NO_SOLUTION
            chosen = solved.assignment[:, -len(self.hard) :] == 1 if len(self.hard) else None
            further = []
            for k, task in enumerate(tasks):
                new = [] if chosen is None else self.hard[chosen[k]].tolist()
                total = float(solved.distance[k]) + self.importance[list(task.out)].sum()
                known = sets[task.pattern]
                if not total <= TOLERANCES.above(float(least[task.pattern])):
                    continue
                if len(known) > _MOST_SETS or not np.isfinite(total):
                    continue
                least[task.pattern] = min(least[task.pattern], total)
                known.append(task.out | frozenset(new))
                further += [
                    _Task(task.pattern, task.out | frozenset(new[:i]), task.kept | {rule})
                    for i, rule in enumerate(new)
                ]
            tasks = further
        nothing = np.zeros(0, dtype=bool) if hopeless is None else hopeless
        return least, [sorted(known, key=sorted) for known in sets], nothing

    def _by_set(
        self,
        instance: Instance,
        pattern: Array,
        sets: list[list[frozenset[int]]],
        samples: Array,
        yhat: Array,
        options: SearchOptions,
        found: Dropped,
    ) -> None:
        """Project samples without each of the sets of their pattern, and keep the best."""
        data, engine = self.own.data, engine_of(self.own)
        m, n, k = len(data.rows), len(data.columns), len(data.booleans)
        counts = np.array([len(known) for known in sets], dtype=np.int64)
        for turn in range(counts.max(initial=0)):
            some = samples[(counts > turn)[pattern[samples]]]
            if not len(some):
                continue
            out = np.zeros((len(sets), len(data.rules)), dtype=bool)
            for p, known in enumerate(sets):
                if len(known) > turn:
                    out[p, list(known[turn])] = True
            left = out[pattern[some]]
            active = instance.active[some]
            active[:, self._clause] &= ~left
            own = Instance(
                active=active,
                bound=np.ascontiguousarray(instance.bound[some, :m]),
                varying=np.ascontiguousarray(instance.varying[some][:, :, :n]),
                price=np.ascontiguousarray(instance.price[some][:, self._original]),
            )
            solved = engine.project(own, yhat[some], options)
            better = solved.distance < found.value[some] - TOLERANCES.equal
            at = some[better]
            found.z[at], found.value[at] = solved.z[better], solved.distance[better]
            found.assignment[at] = solved.assignment[better][:, :k]
            found.rules[at] = left[better]

    def _at_once(
        self,
        instance: Instance,
        least: Array,
        samples: Array,
        yhat: Array,
        options: SearchOptions,
        found: Dropped,
    ) -> None:
        """Project samples so that nothing more is left out than the least."""
        part = instance.take(samples)
        bound = part.bound.copy()
        bound[:, -1] = [TOLERANCES.above(float(level)) for level in least[samples]]
        price = np.ascontiguousarray(np.where(self._original, part.price, 0.0))
        solved = self.engine.project(
            part._replace(bound=bound, price=price), yhat[samples], options
        )
        data = self.own.data
        found.z[samples] = solved.z[:, : len(data.columns)]
        found.value[samples] = solved.distance
        found.assignment[samples] = solved.assignment[:, : len(data.booleans)]
        out = solved.assignment[:, -len(self.hard) :] == 1
        found.rules[np.ix_(samples, self.hard)] = out


def _patterns(instance: Instance) -> tuple[Array, Array]:
    """Samples with different rules, and of all samples which of these have the same."""
    size = len(instance.active)
    numbers = np.hstack([instance.bound, instance.varying.reshape(size, -1)])
    numbers = numbers[:, (numbers != numbers[:1]).any(0)]
    lines = np.hstack([np.packbits(instance.active, axis=1), numbers.view(np.uint8)])
    lines = np.ascontiguousarray(lines)
    if not lines.shape[1]:  # no rules, and nothing that depends on x
        return np.arange(min(size, 1)), np.zeros(size, dtype=np.int64)
    _, first, pattern = np.unique(
        lines.view(np.dtype((np.void, lines.shape[1]))).reshape(-1),
        return_index=True,
        return_inverse=True,
    )
    return first, pattern.reshape(-1)


def _droppable(data: RuleData, hard: list[int]) -> RuleData:
    """The rules with a disjunct more for each hard one, a column each, and a row over them."""
    n, m, k = len(data.columns), len(data.rows), len(data.booleans)
    columns = [Column(f"{data.rules[r].name} is left out", 0.0, 1.0) for r in hard]
    asked = [
        Row(column.name, ((n + p, Coefficient(-1.0)),), Coefficient(-1.0))
        for p, column in enumerate(columns)
    ]
    importance = [data.rules[r].importance for r in hard]
    limit = Row(
        "what is left out",
        tuple((n + p, Coefficient(value)) for p, value in enumerate(importance)),
        Coefficient(sum(importance)),
    )
    clauses, rules = list(data.clauses), list(data.rules)
    for p, r in enumerate(hard):
        c = rules[r].clause
        clauses[c] = replace(clauses[c], literals=(*clauses[c].literals, k + p + 1), xor=False)
        rules[r] = replace(rules[r], positions=(*rules[r].positions, -1))
    return replace(
        data,
        columns=(*data.columns, *columns),
        rows=(*data.rows, *asked, limit),
        global_rows=(*data.global_rows, m + len(hard)),
        booleans=(
            *data.booleans,
            *(
                Boolean(column.name, (m + p,), price=Coefficient(importance[p]))
                for p, column in enumerate(columns)
            ),
        ),
        clauses=tuple(clauses),
        rules=tuple(rules),
    )

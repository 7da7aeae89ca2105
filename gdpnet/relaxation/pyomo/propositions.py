"""Logic over indicators: which products it allows, and what is left of it as rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr.visitor import identify_variables
from pyomo.gdp import Disjunction
from pyomo.gdp.disjunct import DisjunctionData

from gdpnet.ir.logic import ClauseWriter, find_assignment
from gdpnet.ir.semantics import DisjointSets
from gdpnet.relaxation.pyomo import walk
from gdpnet.relaxation.pyomo.symbolic import SymbolicReader

Literals = tuple[int, ...]


class Propositions:
    """The LogicalConstraints of a model, and the structure of the rules they speak about.

    Args:
        model: the whole model; logic may stand anywhere in it.

    Attributes:
        named: ids of the indicators and BooleanVars that logic, or a constraint on their binary,
            speaks about.
        binaries: ids of the binaries of indicators and BooleanVars that stand in a constraint.
    """

    def __init__(self, model: Any) -> None:
        self._reader = SymbolicReader()
        writer = ClauseWriter(self._reader.new_helper)
        self._clauses: list[tuple[Any, Literals]] = []
        self._constraints: list[Any] = []
        for constraint in walk.everywhere(model, pyo.LogicalConstraint):
            self._constraints.append(constraint)
            owner = f"LogicalConstraint '{constraint.name}'"
            proposition = self._reader.proposition(constraint.expr, owner)
            fixed = [("literal", literal) for literal in self._reader.fixed]
            self._reader.fixed.clear()
            guard = walk.enclosing_disjunct(constraint)
            if guard is not None:
                condition = self._reader.proposition(guard.indicator_var, owner)
                proposition = ("implies", condition, proposition)
            proposition = ("and", proposition, *fixed)
            for literals in writer.clauses(proposition, constraint.name):
                self._clauses.append((constraint, literals))
        self.named = {id(b) for b in self._reader.booleans if b is not None}
        disjunctions = list(walk.everywhere(model, Disjunction))
        self.binaries = self._binaries_in_rows(model)
        for disjunction in disjunctions:
            for disjunct in disjunction.disjuncts:
                if id(disjunct.binary_indicator_var) in self.binaries:
                    self.named.add(id(disjunct.indicator_var))
        self._structure = [clause for d in disjunctions for clause in self._structure_of(d)]

    def _binaries_in_rows(self, model: Any) -> set[int]:
        return {
            id(variable)
            for constraint in walk.everywhere(model, pyo.Constraint)
            if constraint.parent_component().local_name != walk.LINKS
            for variable in identify_variables(constraint.expr, include_fixed=False)
            if variable.is_binary()
        }

    def _structure_of(self, disjunction: DisjunctionData) -> list[Literals]:
        """What a Disjunction says about its indicators, where logic names one of them."""
        possible = walk.possible(disjunction)
        if not any(id(d.indicator_var) in self.named for d in possible):
            return []
        literals = [self._reader.boolean(d.indicator_var) + 1 for d in possible]
        parent = walk.enclosing_disjunct(disjunction)
        # What is nested binds only where its parent is chosen.
        guard = () if parent is None else (-self._reader.boolean(parent.indicator_var) - 1,)
        found: list[Literals] = [(*guard, *literals)]
        if disjunction.xor:
            found += [(*guard, -a, -b) for a, b in combinations(literals, 2)]
        found += [
            (literal,)
            for literal, disjunct in zip(literals, possible, strict=True)
            if disjunct.indicator_var.fixed
        ]
        return found

    def consistent(self, truth: dict[int, bool]) -> bool:
        """Whether truth values of indicators, by id, can be completed to satisfy all logic."""
        if not self._clauses:
            return True
        clauses = [literals for _, literals in self._clauses] + self._structure
        fixed = {
            k: truth[id(b)]
            for k, b in enumerate(self._reader.booleans)
            if b is not None and id(b) in truth
        }
        return find_assignment(clauses, fixed) is not None

    def ties(self, disjunctions: Sequence[DisjunctionData]) -> list[list[DisjunctionData]]:
        """Rules whose indicators logic ties together, directly or through BooleanVars."""
        groups = self._groups()
        tied: dict[Any, dict[int, DisjunctionData]] = {}
        for disjunction in disjunctions:
            for inner in walk.tree([disjunction]):
                for disjunct in inner.disjuncts:
                    if id(disjunct.indicator_var) in self.named:
                        index = self._reader.boolean(disjunct.indicator_var)
                        tied.setdefault(groups.find(index + 1), {})[id(disjunction)] = disjunction
        return [list(group.values()) for group in tied.values()]

    def _groups(self) -> DisjointSets:
        groups = DisjointSets()
        for literals in [*(c for _, c in self._clauses), *self._structure]:
            groups.join([abs(literal) for literal in literals])
        return groups

    def settle(self, clusters: Sequence[Sequence[DisjunctionData]]) -> list[list[Any]]:
        """Divide logic by whether deleting products says all of it.

        Args:
            clusters: the rules that are merged.

        Returns:
            LogicalConstraints that deleting products of one cluster enforces, and those that tie
            several clusters or other rules, or BooleanVars whose binary stands in a constraint.
            Logic that does not concern the clusters is in neither.
        """
        cluster_of = {
            id(disjunct.indicator_var): k
            for k, cluster in enumerate(clusters)
            for disjunction in walk.tree(cluster)
            for disjunct in disjunction.disjuncts
        }
        groups = self._groups()
        touched: dict[Any, set[Any]] = {}
        for k, boolean in enumerate(self._reader.booleans):
            if boolean is None:
                continue
            group = touched.setdefault(groups.find(k + 1), set())
            if id(boolean) in cluster_of:
                group.add(cluster_of[id(boolean)])
            elif self._is_indicator(boolean):
                group.add("another rule")
            elif id(boolean.get_associated_binary()) in self.binaries:
                group.add("a binary")
        # What is always true left no clause.
        said = {id(constraint) for constraint, _ in self._clauses}
        exact = {id(c): c for c in self._constraints if id(c) not in said}
        across: dict[int, Any] = {}
        for constraint, literals in self._clauses:
            where = touched.get(groups.find(abs(literals[0])), set()) if literals else set()
            if not any(isinstance(k, int) for k in where):
                continue
            (exact if len(where) == 1 else across)[id(constraint)] = constraint
        return [list(exact.values()), list(across.values())]

    @staticmethod
    def _is_indicator(boolean: Any) -> bool:
        disjunct = walk.enclosing_disjunct(boolean)
        return disjunct is not None and disjunct.indicator_var is boolean and disjunct.active

    def free(self) -> list[Any]:
        """LogicalConstraints that name no binary of a constraint: they only have to be possible."""
        bound = {
            k
            for k, boolean in enumerate(self._reader.booleans)
            if boolean is not None and id(boolean.get_associated_binary()) in self.binaries
        }
        held = {
            id(constraint)
            for constraint, literals in self._clauses
            if any(abs(literal) - 1 in bound for literal in literals)
        }
        return [constraint for constraint in self._constraints if id(constraint) not in held]

    def write_rows(self, block: Any, constraints: Sequence[Any]) -> set[int]:
        """Write propositions as rows on binaries.

        Args:
            block: where to put them.
            constraints: the LogicalConstraints.

        Returns:
            ids of the binaries that the rows name.
        """
        wanted = {id(constraint) for constraint in constraints}
        block.truth = pyo.Var(pyo.NonNegativeIntegers, domain=pyo.Binary, dense=False)
        block.rows = pyo.Constraint(pyo.Any)
        count: dict[str, int] = {}
        used = set()
        for constraint, literals in self._clauses:
            if id(constraint) not in wanted:
                continue
            total: Any = 0
            for literal in literals:
                binary = self._binary(block, abs(literal) - 1)
                used.add(id(binary))
                total += binary if literal > 0 else 1 - binary
            number = count[constraint.name] = count.get(constraint.name, 0) + 1
            block.rows[constraint.name, number] = total >= 1
        return used

    def _binary(self, block: Any, index: int) -> Any:
        boolean = self._reader.booleans[index]
        binary = None if boolean is None else boolean.get_associated_binary()
        return block.truth[index] if binary is None else binary

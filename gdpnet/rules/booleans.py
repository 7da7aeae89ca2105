"""Indicators and BooleanVars, and the clauses that say what is true of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from pyomo.core.base.boolean_var import BooleanVarData
from pyomo.gdp.disjunct import DisjunctData

from gdpnet.errors import RuleError
from gdpnet.ir.data import Boolean, Clause, Kind, Role
from gdpnet.ir.linear import Coefficient, LinearForm
from gdpnet.ir.logic import ClauseWriter
from gdpnet.rules.associations import binary_of, identity, representative
from gdpnet.rules.columns import ReadColumns
from gdpnet.rules.expressions import ExpressionReader
from gdpnet.rules.obstacles import Obstacles
from gdpnet.rules.rows import ReadRows


class BooleanDraft:
    """A boolean while the model is being read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.true_rows: list[int] = []
        self.false_rows: list[int] = []
        self.tied = self.helper = False
        self.price = Coefficient()
        self.clause = -1  # the Disjunction it is an indicator of
        self.source: Any = None  # the Pyomo BooleanVar, where it has one

    def finished(self) -> Boolean:
        """As the rules keep it."""
        rows = tuple(self.true_rows), tuple(self.false_rows)
        return Boolean(self.name, *rows, self.tied, self.helper, self.price)


class ReadLogic:
    """Booleans and clauses in the order in which they were read.

    Propositions are kept and written last: they may name indicators of disjuncts that come later.

    Attributes:
        booleans: all of them.
        clauses: of rules and of propositions.
    """

    def __init__(self, model: Any, expressions: ExpressionReader, obstacles: Obstacles) -> None:
        self.booleans: list[BooleanDraft] = []
        self.clauses: list[Clause] = []
        self._model = model
        self._expressions = expressions
        self._obstacles = obstacles
        self._index: dict[int, int] = {}  # by the id of `identity`
        # BooleanVars that fix their binary, their value, and the source of the clauses that say so
        self._fixed: dict[int, tuple[BooleanVarData, bool, int]] = {}
        self._twins: dict[int, int] = {}
        self._propositions: list[tuple[Any, int, tuple[int, ...]]] = []

    # ---- booleans ------------------------------------------------------------------------

    def add(self, name: str) -> int:
        """A new boolean."""
        self.booleans.append(BooleanDraft(name))
        return len(self.booleans) - 1

    def add_indicator(self, disjunct: DisjunctData) -> int:
        """A new boolean for the indicator of a disjunct."""
        index = self.add(disjunct.name)
        indicator = disjunct.indicator_var
        self._index[id(identity(indicator))] = index
        self.booleans[index].source = indicator
        return index

    def of(self, variable: BooleanVarData, owner: str) -> int:
        """Boolean of an indicator or BooleanVar that stands in a proposition."""
        one = identity(variable)
        index = self._index.get(id(one))
        if index is None:
            named = representative(variable)
            disjunct = named.parent_block()
            if isinstance(disjunct, DisjunctData) and disjunct.indicator_var is named:
                raise RuleError(
                    f"{owner}: it names the indicator of Disjunct '{disjunct.name}', which "
                    "stands in no active Disjunction. Fix the indicator, or activate the "
                    "Disjunction."
                )
            for component, kind in ((variable, "BooleanVar"), (one, "the binary")):
                if component.model() is not self._model.model():
                    raise RuleError(
                        f"{owner}: {kind} '{component.name}' does not belong to the model "
                        f"'{self._model.name}'."
                    )
            index = self.add(variable.name)
            self._index[id(one)] = index
            self.booleans[index].source = variable
        index = self._truth(index)
        self.booleans[index].tied = True
        return index

    def fix(self, variable: BooleanVarData, value: bool) -> None:
        """A fixed BooleanVar fixes its binary, and so the BooleanVars that share it."""
        binary = binary_of(variable)
        if binary is None or binary.fixed:
            return  # nothing shares it, or it is a constant everywhere
        first, other, source = self._fixed.setdefault(
            id(binary), (variable, value, len(self.clauses))
        )
        if other != value:
            raise RuleError(
                f"BooleanVar '{first.name}' is fixed to {other} and '{variable.name}' to {value}, "
                f"but both are the binary '{binary.name}' (associate_binary_var)."
            )
        if first is variable:
            index = self.of(variable, f"BooleanVar '{variable.name}'")
            literal = index + 1 if value else -index - 1
            conditions = tuple(dict.fromkeys(self._rule_conditions(index)))
            self._add_proposition(source, variable.name, [(literal,)], -1, conditions)

    def _truth(self, index: int) -> int:
        """The boolean that stands for an indicator in logic.

        That of the disjunct itself, except where it is nested: as in Pyomo, the indicator of a
        disjunct whose parent is not chosen is free and enforces nothing. A twin stands for it, of
        the same value where the parent is chosen.
        """
        clause = self.booleans[index].clause
        if clause < 0 or self.clauses[clause].guard < 0:
            return index
        if index not in self._twins:
            twin = self.add(self.booleans[index].name)
            self._twins[index] = twin
            self.booleans[twin].clause = clause
            self.booleans[twin].tied = self.booleans[index].tied = True
            conditions = tuple(dict.fromkeys(self._rule_conditions(index)))
            for literals in ((-twin - 1, index + 1), (twin + 1, -index - 1)):
                self._add_about(clause, Kind.TWIN, literals, conditions)
        return self._twins[index]

    def _new_helper(self, name: str) -> int:
        index = self.add(name)
        helper = self.booleans[index]
        helper.tied = helper.helper = True
        return index

    # ---- clauses -------------------------------------------------------------------------

    def add_rule(self, clause: Clause) -> int:
        """The clause of a rule, which its literals belong to."""
        index = len(self.clauses)
        self.clauses.append(replace(clause, source=index))
        for literal in clause.literals:
            self.booleans[literal - 1].clause = index
        return index

    def force(self, rule: int, literal: int) -> None:
        """An indicator of a rule that is fixed to True."""
        self._add_about(rule, Kind.FIXED, (literal,), self.clauses[rule].conditions)
        self.booleans[literal - 1].tied = True

    def _add_about(
        self, rule: int, kind: Kind, literals: tuple[int, ...], conditions: tuple[int, ...]
    ) -> None:
        """A clause about the indicators of one Disjunction."""
        about = self.clauses[rule]
        self.clauses.append(
            replace(about, literals=literals, conditions=conditions, kind=kind, xor=False)
        )

    def _rule_conditions(self, boolean: int) -> tuple[int, ...]:
        """Conditions of the rule an indicator belongs to, its parents' included."""
        clause = self.booleans[boolean].clause
        if clause < 0:
            return ()
        found = self.clauses[clause].conditions
        guard = self.clauses[clause].guard
        return found if guard < 0 else found + self._rule_conditions(guard)

    # ---- propositions --------------------------------------------------------------------

    def keep(self, data: Any, guard: int, conditions: tuple[int, ...]) -> None:
        """A LogicalConstraint, to be written when all disjuncts are known."""
        self._propositions.append((data, guard, conditions))

    def write(self) -> None:
        """The clauses of all LogicalConstraints."""
        writer = ClauseWriter(self._new_helper)
        for data, guard, conditions in self._propositions:
            with self._obstacles.at(data):
                self._write(writer, data, guard, conditions)

    def _write(
        self, writer: ClauseWriter, data: Any, guard: int, conditions: tuple[int, ...]
    ) -> None:
        proposition = self._expressions.proposition(data.expr, f"LogicalConstraint '{data.name}'")
        # A proposition that names an indicator of an inactive rule is dropped.
        for literal in _literals(proposition):
            conditions += self._rule_conditions(abs(literal) - 1)
        if guard >= 0:
            self.booleans[guard].tied = True
        said = list(writer.clauses(proposition, data.name))
        conditions = tuple(dict.fromkeys(conditions))
        self._add_proposition(len(self.clauses), data.name, said, guard, conditions)

    def _add_proposition(
        self,
        source: int,
        name: str,
        said: Sequence[tuple[int, ...]],
        guard: int,
        conditions: tuple[int, ...],
    ) -> None:
        for literals in said:
            clause = Clause(name, literals, guard, conditions, Kind.PROPOSITION, source=source)
            self.clauses.append(clause)

    # ---- what is tied --------------------------------------------------------------------

    def link_binaries(self, columns: ReadColumns, rows: ReadRows) -> None:
        """Tie an indicator to its binary Var where that Var stands in a constraint."""
        for index, draft in enumerate(list(self.booleans)):
            binary = None
            if draft.source is not None:
                with self._obstacles.at(draft.source):
                    binary = binary_of(draft.source)
            column = None if binary is None else columns.known(binary)
            if column is None:
                continue
            boolean = self.booleans[self._truth(index)]
            form = LinearForm(columns=self._expressions.linear(binary, boolean.name).columns)
            one = self._expressions.linear(1.0, boolean.name)
            boolean.true_rows += rows.add([(form - one, True)], boolean.name, Role.LINK)
            boolean.false_rows += rows.add([(form, True)], boolean.name, Role.LINK)
            boolean.tied = True

    def tie(self) -> None:
        """Spread `tied`, and write XOR out where truth values matter."""
        exclusive = [index for index, clause in enumerate(self.clauses) if clause.xor]
        changed = True
        while changed:
            changed = False
            for clause in self.clauses:
                if self._any_tied(clause.literals):
                    changed |= clause.xor and self._mark(clause.literals)
                    changed |= clause.guard >= 0 and self._mark((clause.guard + 1,))
        for index in exclusive:
            clause = self.clauses[index]
            if not self._any_tied(clause.literals):
                continue
            conditions = tuple(dict.fromkeys(self._rule_conditions(clause.literals[0] - 1)))
            for one, other in combinations(clause.literals, 2):
                # As in Pyomo, XOR binds the children of a chosen parent only.
                self._add_about(index, Kind.XOR, (-one, -other), conditions)

    def _any_tied(self, literals: Sequence[int]) -> bool:
        return any(self.booleans[abs(literal) - 1].tied for literal in literals)

    def _mark(self, literals: Sequence[int]) -> bool:
        untied = [k for k in literals if not self.booleans[abs(k) - 1].tied]
        for literal in untied:
            self.booleans[abs(literal) - 1].tied = True
        return bool(untied)


def _literals(proposition: tuple[Any, ...]) -> Iterator[int]:
    if proposition[0] == "literal":
        yield proposition[1]
        return
    for part in proposition[1:]:
        if isinstance(part, tuple):
            yield from _literals(part)

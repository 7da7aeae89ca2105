"""The compiled core of gdpnet: arrays in, arrays out."""

import numpy.typing


VERSION: str = ...

COMPILER: str = ...

def cpu_variants() -> list[str]:
    """Variants that this build has and the CPU can run, narrow to wide."""

def cpu_variant() -> str:
    """The variant in use."""

def use_cpu_variant(name: str) -> None:
    """Takes one of the variants; ValueError where it cannot be had."""

def all_finite(array: numpy.typing.NDArray) -> bool:
    """Whether all entries are finite numbers."""

class Rows:
    """Rows of a component, scaled by powers of two; see component.hpp."""

    def __init__(self, outputs: int, lower: numpy.typing.NDArray, upper: numpy.typing.NDArray, integer: numpy.typing.NDArray, start: numpy.typing.NDArray, column: numpy.typing.NDArray, coefficient: numpy.typing.NDArray, largest: numpy.typing.NDArray, scale: numpy.typing.NDArray, equality: numpy.typing.NDArray, varying: numpy.typing.NDArray, global_rows: numpy.typing.NDArray, plain: bool, curves: object | None) -> None: ...

    def __copy__(self) -> object: ...

    def __deepcopy__(self, memo: object) -> object: ...

class Logic:
    """Booleans and clauses of a component; see component.hpp."""

    def __init__(self, clause_start: numpy.typing.NDArray, clause_literal: numpy.typing.NDArray, clause_guard: numpy.typing.NDArray, true_start: numpy.typing.NDArray, true_row: numpy.typing.NDArray, false_start: numpy.typing.NDArray, false_row: numpy.typing.NDArray, guarded_start: numpy.typing.NDArray, guarded_clause: numpy.typing.NDArray, tied: numpy.typing.NDArray, priced: numpy.typing.NDArray, priced_entry: numpy.typing.NDArray) -> None: ...

    def __copy__(self) -> object: ...

    def __deepcopy__(self, memo: object) -> object: ...

class Component:
    """Rows and clauses that can be projected by themselves."""

    def __init__(self, rows: Rows, logic: Logic) -> None: ...

    def __copy__(self) -> object: ...

    def __deepcopy__(self, memo: object) -> object: ...

OPERATIONS: tuple = ...

class Tape:
    """Rules at an input, as elementary operations; see tape.hpp."""

    def __init__(self, inputs: int, lines: object, bound: numpy.typing.NDArray, bound_terms: object, varying: numpy.typing.NDArray, varying_terms: object, clause_start: numpy.typing.NDArray, clause_register: numpy.typing.NDArray, price: numpy.typing.NDArray, price_terms: object) -> None: ...

    def __copy__(self) -> object: ...

    def __deepcopy__(self, memo: object) -> object: ...

    def instantiate(self, x: numpy.typing.NDArray, active: numpy.typing.NDArray, bound: numpy.typing.NDArray, varying: numpy.typing.NDArray, price: numpy.typing.NDArray) -> bool:
        """Writes the rules of a batch; whether all numbers are finite."""

class Judge:
    """Which rules hold at points, where rows alone decide; see judge.hpp."""

    def __init__(self, shared: numpy.typing.NDArray, largest: numpy.typing.NDArray, place: numpy.typing.NDArray, equality: numpy.typing.NDArray, boolean_rows: object, nested_clause: numpy.typing.NDArray, nested_guard: numpy.typing.NDArray, nested_booleans: object, rule_booleans: object, global_rows: numpy.typing.NDArray, lower: numpy.typing.NDArray, upper: numpy.typing.NDArray, integer: numpy.typing.NDArray) -> None: ...

    def __copy__(self) -> object: ...

    def __deepcopy__(self, memo: object) -> object: ...

    def judge(self, samples: numpy.typing.NDArray, bound: numpy.typing.NDArray, varying: numpy.typing.NDArray, active: numpy.typing.NDArray, rule_active: numpy.typing.NDArray, y: numpy.typing.NDArray, tolerance: float, assignment: numpy.typing.NDArray, violation: numpy.typing.NDArray, holds: numpy.typing.NDArray) -> None:
        """Writes what holds and by how much rules are violated."""

SOLVED: int = ...

NO_SOLUTION: int = ...

NODE_LIMIT: int = ...

NUMERICAL: int = ...

ACCEPTED_AS_IS: int = ...

DETERMINED: int = ...

ACCEPTED: float = ...

class Sets:
    """Rules that may be left out, for a batch; see leaving.hpp."""

    def __copy__(self) -> object: ...

    def __deepcopy__(self, memo: object) -> object: ...

    def hopeless(self, to: numpy.typing.NDArray) -> None:
        """Writes where leaving out rules does not help, (batch,)."""

class Search:
    """Searches of one component; see exact.hpp."""

    def __init__(self, component: Component) -> None: ...

    def __copy__(self) -> object: ...

    def __deepcopy__(self, memo: object) -> object: ...

    def project(self, active: numpy.typing.NDArray, varying: numpy.typing.NDArray, bound: numpy.typing.NDArray, yhat: numpy.typing.NDArray, weights: numpy.typing.NDArray, price: numpy.typing.NDArray, price_unit: float, node_limit: int, tolerance: float, lost: float, time_limit: float, threads: int, chosen: bool, out: object, detail: object | None, patience: float = ..., leaving: Sets | None = ..., fine: bool = ...) -> bool:
        """
        Projects a batch: writes the arrays of an `Output` and, unless None, of a `Detail`. Whether all is proved.
        """

    def cheapest(self, active: numpy.typing.NDArray, varying: numpy.typing.NDArray, bound: numpy.typing.NDArray, booleans: numpy.typing.NDArray, clauses: numpy.typing.NDArray, importance: numpy.typing.NDArray, node_limit: int, time_limit: float, threads: int, chosen: bool) -> Sets:
        """The cheapest sets of rules to leave out; see leaving.hpp."""

    def products(self, active: numpy.typing.NDArray, varying: numpy.typing.NDArray, bound: numpy.typing.NDArray, yhat: numpy.typing.NDArray, weights: numpy.typing.NDArray, reach: numpy.typing.NDArray, count: numpy.typing.NDArray, distance: numpy.typing.NDArray, z: numpy.typing.NDArray, assignment: numpy.typing.NDArray) -> None:
        """Lists the products of disjuncts within a reach."""

def same_rules(active: numpy.typing.NDArray, varying: numpy.typing.NDArray, bound: numpy.typing.NDArray, first: numpy.typing.NDArray, pattern: numpy.typing.NDArray) -> int:
    """Which samples have the same rules; see leaving.hpp."""

def vjp_vertex(component: Component, varying: numpy.typing.NDArray, detail: object, z: numpy.typing.NDArray, gradient: numpy.typing.NDArray, to_yhat: numpy.typing.NDArray, to_bound: numpy.typing.NDArray, to_varying: numpy.typing.NDArray) -> None:
    """
    Gradients of projections, from their final dictionaries; see vertex.hpp.
    """

class Found:
    """A batch and what was found; see found.hpp."""

    @property
    def proved(self) -> bool:
        """Whether all samples have a point that is proved nearest."""

    @property
    def detailed(self) -> bool:
        """Whether the final dictionaries were kept."""

    def instance(self) -> tuple[numpy.typing.NDArray, ...]:
        """The arrays of an `Instance`."""

    def answers(self) -> tuple[numpy.typing.NDArray, ...]:
        """The arrays of an `Output` but for its points."""

    def dictionaries(self) -> tuple[numpy.typing.NDArray, ...]:
        """The arrays of a `Detail`."""

    def vjp(self, component: Component, z: numpy.typing.NDArray, gradient: numpy.typing.NDArray, to_yhat: numpy.typing.NDArray, to_bound: numpy.typing.NDArray, to_varying: numpy.typing.NDArray) -> None:
        """As `vjp_vertex`, from its own dictionaries."""

    def vjp_yhat(self, component: Component, z: numpy.typing.NDArray, gradient: numpy.typing.NDArray, to_yhat: numpy.typing.NDArray) -> None:
        """
        The gradient with respect to the predictions alone, written over `to_yhat`; `gradient` is that of the outputs.
        """

def find_nearest(tape: Tape, search: Search, x: numpy.typing.NDArray, yhat: numpy.typing.NDArray, weights: numpy.typing.NDArray, price_unit: float, node_limit: int, tolerance: float, time_limit: float, threads: int, chosen: bool, detailed: bool, z: numpy.typing.NDArray, patience: float = ...) -> Found | None:
    """
    Evaluates rules that are one component and projects a batch, writing the points; None where a number of the rules is not finite.
    """

def find_euclidean(tape: Tape, search: EuclideanSearch, x: numpy.typing.NDArray, yhat: numpy.typing.NDArray, weights: numpy.typing.NDArray, price_unit: float, node_limit: int, tolerance: float, time_limit: float, threads: int, chosen: bool, detailed: bool, z: numpy.typing.NDArray, patience: float = ...) -> Found | None:
    """
    Evaluates rules that are one component and projects a batch, writing the points; None where a number of the rules is not finite.
    """

class LeastNorm:
    """
    Of all l1-nearest points of a component the one nearest in l2; see least_norm.hpp.
    """

    def __init__(self, component: Component) -> None: ...

    def __copy__(self) -> object: ...

    def __deepcopy__(self, memo: object) -> object: ...

    def settle(self, active: numpy.typing.NDArray, varying: numpy.typing.NDArray, bound: numpy.typing.NDArray, yhat: numpy.typing.NDArray, weights: numpy.typing.NDArray, samples: numpy.typing.NDArray, z: numpy.typing.NDArray, assignment: numpy.typing.NDArray, distance: numpy.typing.NDArray, node_limit: int, time_limit: float, threads: int, chosen: bool, nodes: numpy.typing.NDArray, ties: numpy.typing.NDArray) -> None:
        """
        Moves the nearest points of some samples; writes quadratic programs and what became of each.
        """

class EuclideanSearch:
    """Euclidean projections of one component; see euclidean.hpp."""

    def __init__(self, component: Component) -> None: ...

    def __copy__(self) -> object: ...

    def __deepcopy__(self, memo: object) -> object: ...

    def project(self, active: numpy.typing.NDArray, varying: numpy.typing.NDArray, bound: numpy.typing.NDArray, yhat: numpy.typing.NDArray, weights: numpy.typing.NDArray, price: numpy.typing.NDArray, price_unit: float, node_limit: int, tolerance: float, lost: float, time_limit: float, threads: int, chosen: bool, out: object, leaving: Sets | None = ...) -> bool:
        """
        Projects a batch: writes the arrays of an `Output`, distances and bounds squared.
        """

def vjp_face(component: Component, kinks: bool, varying: numpy.typing.NDArray, bound: numpy.typing.NDArray, yhat: numpy.typing.NDArray, weights: numpy.typing.NDArray, assignment: numpy.typing.NDArray, z: numpy.typing.NDArray, gradient: numpy.typing.NDArray, to_yhat: numpy.typing.NDArray, to_bound: numpy.typing.NDArray, to_varying: numpy.typing.NDArray) -> None:
    """
    Adds the gradients of points that are nearest in l2 within a face; see face.hpp.
    """

TIGHT: float = ...

NO_BLOCK: int = ...

class ExtendedSources:
    """Rows of the rules; see extended/tables.hpp."""

    def __init__(self, outputs: int, lower: numpy.typing.NDArray, upper: numpy.typing.NDArray, start: numpy.typing.NDArray, column: numpy.typing.NDArray, coefficient: numpy.typing.NDArray, scale: numpy.typing.NDArray, equality: numpy.typing.NDArray, varying: numpy.typing.NDArray) -> None: ...

    def __copy__(self) -> object: ...

    def __deepcopy__(self, memo: object) -> object: ...

class ExtendedTables:
    """Layouts as flat arrays; see extended/tables.hpp."""

    def __init__(self, layout_part: numpy.typing.NDArray, part_column: numpy.typing.NDArray, part_row: numpy.typing.NDArray, part_global: numpy.typing.NDArray, part_block: numpy.typing.NDArray, block_product: numpy.typing.NDArray, product_row: numpy.typing.NDArray, column: numpy.typing.NDArray, row: numpy.typing.NDArray, member: numpy.typing.NDArray) -> None: ...

    def __copy__(self) -> object: ...

    def __deepcopy__(self, memo: object) -> object: ...

class Extended:
    """CNF and partial DNF of one rule model; see extended/engine.hpp."""

    def __init__(self, sources: ExtendedSources, tables: ExtendedTables, columns: int, rows: int, entries: int, blocks: int, products: int) -> None: ...

    def __copy__(self) -> object: ...

    def __deepcopy__(self, memo: object) -> object: ...

    def solve(self, layout: numpy.typing.NDArray, bound: numpy.typing.NDArray, varying: numpy.typing.NDArray, start: numpy.typing.NDArray, weights: numpy.typing.NDArray, price: numpy.typing.NDArray, tolerance: float, threads: int, chosen: bool, y: numpy.typing.NDArray, value: numpy.typing.NDArray, outcome: numpy.typing.NDArray, weight: numpy.typing.NDArray, product: numpy.typing.NDArray, state: numpy.typing.NDArray, rank: numpy.typing.NDArray, size: numpy.typing.NDArray, column: numpy.typing.NDArray, row: numpy.typing.NDArray, basis_value: numpy.typing.NDArray) -> None:
        """
        Solves a batch: `layout` to `price` are what is solved, then come the tolerance for `product`, threads and whether they were chosen; the rest is written to.
        """

    def vjp(self, layout: numpy.typing.NDArray, bound: numpy.typing.NDArray, varying: numpy.typing.NDArray, start: numpy.typing.NDArray, weights: numpy.typing.NDArray, price: numpy.typing.NDArray, threads: int, chosen: bool, outcome: numpy.typing.NDArray, state: numpy.typing.NDArray, rank: numpy.typing.NDArray, size: numpy.typing.NDArray, column: numpy.typing.NDArray, row: numpy.typing.NDArray, basis_value: numpy.typing.NDArray, gradient: numpy.typing.NDArray, to_start: numpy.typing.NDArray, to_bound: numpy.typing.NDArray, to_varying: numpy.typing.NDArray) -> None:
        """
        Adds to the last three arrays the gradients of a loss from `gradient`, that with respect to y.
        """

class Band:
    """Products with weight of a batch; see band/products.hpp."""

    def __copy__(self) -> object: ...

    def __deepcopy__(self, memo: object) -> object: ...

class BandSolver:
    """The regularised program of a component; see band/solver.hpp."""

    def __init__(self, component: Component, clause_start: numpy.typing.NDArray, option_start: numpy.typing.NDArray, literal: numpy.typing.NDArray, proposition: numpy.typing.NDArray) -> None: ...

    def __copy__(self) -> object: ...

    def __deepcopy__(self, memo: object) -> object: ...

    def solve(self, active: numpy.typing.NDArray, varying: numpy.typing.NDArray, bound: numpy.typing.NDArray, yhat: numpy.typing.NDArray, weights: numpy.typing.NDArray, nearest: numpy.typing.NDArray, assignment: numpy.typing.NDArray, eps: float, cap: int, threads: int, chosen: bool, time_limit: float, patience: float, status: numpy.typing.NDArray, y: numpy.typing.NDArray, value: numpy.typing.NDArray, products: numpy.typing.NDArray, capped: numpy.typing.NDArray, price: numpy.typing.NDArray, price_unit: float) -> Band:
        """
        Solves a batch: writes status and y, adds to value and products, sets capped. Returns the band.
        """

    def vjp(self, band: Band, varying: numpy.typing.NDArray, bound: numpy.typing.NDArray, yhat: numpy.typing.NDArray, weights: numpy.typing.NDArray, eps: float, threads: int, chosen: bool, gradient: numpy.typing.NDArray, to_yhat: numpy.typing.NDArray, to_bound: numpy.typing.NDArray, to_varying: numpy.typing.NDArray, to_price: numpy.typing.NDArray) -> None:
        """Gradients of a batch; to_yhat begins as the gradient, the others as 0."""

class BlockPart:
    """
    The regularised program of a part with several blocks; see blocks/path.hpp.
    """

    def __init__(self, outputs: int, auxiliaries: int, columns: numpy.typing.NDArray, lower: numpy.typing.NDArray, upper: numpy.typing.NDArray, source: numpy.typing.NDArray, varying: numpy.typing.NDArray, shared: numpy.typing.NDArray, first_copy: numpy.typing.NDArray, first_place: numpy.typing.NDArray, row: numpy.typing.NDArray, equality: numpy.typing.NDArray, start: numpy.typing.NDArray, entry: numpy.typing.NDArray) -> None: ...

    def __copy__(self) -> object: ...

    def __deepcopy__(self, memo: object) -> object: ...

    @property
    def path_width(self) -> int:
        """Numbers that stay of a sample for its derivative."""

    def solve(self, samples: numpy.typing.NDArray, bound: numpy.typing.NDArray, varying: numpy.typing.NDArray, yhat: numpy.typing.NDArray, weights: numpy.typing.NDArray, eps: float, price: numpy.typing.NDArray, path: numpy.typing.NDArray, y: numpy.typing.NDArray, solved: numpy.typing.NDArray, threads: int, chosen: bool) -> None: ...

    def vjp(self, samples: numpy.typing.NDArray, bound: numpy.typing.NDArray, varying: numpy.typing.NDArray, yhat: numpy.typing.NDArray, weights: numpy.typing.NDArray, eps: float, price: numpy.typing.NDArray, path: numpy.typing.NDArray, gradient: numpy.typing.NDArray, to_yhat: numpy.typing.NDArray, to_bound: numpy.typing.NDArray, to_varying: numpy.typing.NDArray, to_price: numpy.typing.NDArray, threads: int, chosen: bool) -> None: ...

"""The compiled core of gdpnet: arrays in, arrays out."""

import numpy.typing


VERSION: str = ...

COMPILER: str = ...

class Rows:
    """Rows of a component, scaled by powers of two; see component.hpp."""

    def __init__(self, outputs: int, lower: numpy.typing.NDArray, upper: numpy.typing.NDArray, integer: numpy.typing.NDArray, start: numpy.typing.NDArray, column: numpy.typing.NDArray, coefficient: numpy.typing.NDArray, largest: numpy.typing.NDArray, scale: numpy.typing.NDArray, equality: numpy.typing.NDArray, varying: numpy.typing.NDArray, global_rows: numpy.typing.NDArray, plain: bool) -> None: ...

class Logic:
    """Booleans and clauses of a component; see component.hpp."""

    def __init__(self, clause_start: numpy.typing.NDArray, clause_literal: numpy.typing.NDArray, clause_guard: numpy.typing.NDArray, true_start: numpy.typing.NDArray, true_row: numpy.typing.NDArray, false_start: numpy.typing.NDArray, false_row: numpy.typing.NDArray, guarded_start: numpy.typing.NDArray, guarded_clause: numpy.typing.NDArray, tied: numpy.typing.NDArray) -> None: ...

class Component:
    """Rows and clauses that can be projected by themselves."""

    def __init__(self, rows: Rows, logic: Logic) -> None: ...

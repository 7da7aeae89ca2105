"""Odd rules for as long as you like, judged by an oracle of their own in exact arithmetic.

    python -m tests.fuzz --minutes 10 --seed 0
    python -m tests.fuzz --class slivers --seed 17 --count 1

`classes` draws the rules, `oracle` says what is right (`rational` where floating-point numbers do
not decide), `judge` compares every mode of `gdpnet.project` with it.
"""

from tests.fuzz._against_milp import disagreement

__all__ = ["disagreement"]

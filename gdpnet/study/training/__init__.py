"""Training networks with and without rules, and comparing them.

A task is a model file (see `gdpnet.study.load_model`). It defines

    build() -> gdpnet.RuleModel              the rules
    sample(n, split, seed) -> x, target      n rows; split "train" and the names of TEST_SEEDS
    network() -> torch.nn.Module             a new network, from x to outputs in the rules' units

and may define

    loss(y, target) -> scalar                what is minimised; the mean squared error if absent
    metrics(y, target) -> {name: number}     what is reported; {"mse": ...} if absent
    rule_inputs                              where the rules' inputs are in x, as in
                                             `gdpnet.nn.with_rules`; all columns if absent
    TEST_SEEDS = {split: seed}               test splits and their seeds; {"iid": 2} if absent
    TEST_SIZE = n                            rows asked for in a test split; 2000 if absent
    PROTOCOLS = {name: Protocol}             further ways to train
    METHODS = {name: Method}                 further methods

y is what the method gives out: projected where the method projects. `sample` is called with
n = size, split="train", seed=seed for a training set; where it has fewer rows than asked for, a
training size is refused and a test split is taken as it is. Networks are trained in float64.
"""

from gdpnet.study.training._folder import StudyFolder
from gdpnet.study.training._grid import Grid, train
from gdpnet.study.training._keep import keep_whole
from gdpnet.study.training._methods import METHODS, Method, method_named
from gdpnet.study.training._protocols import PROTOCOLS, Protocol, Stage
from gdpnet.study.training._task import Data, Task

__all__ = [
    "METHODS",
    "PROTOCOLS",
    "Data",
    "Grid",
    "Method",
    "Protocol",
    "Stage",
    "StudyFolder",
    "Task",
    "keep_whole",
    "method_named",
    "train",
]

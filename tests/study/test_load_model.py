"""Model files are loaded by path or name, and refused with a sentence that says what to do."""

import dataclasses
from pathlib import Path

import pytest

import gdpnet
from gdpnet.errors import GdpnetError, ModelFileError
from gdpnet.study import LoadedModel, load_model, shipped_models

MODELS = Path(__file__).parents[2] / "models"

GOOD = """
import gdpnet
import pyomo.environ as pyo
from pyomo.gdp import Disjunction


def build(low=0.25):
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 1))
    m.gap = Disjunction(expr=[[m.y <= low], [m.y >= 0.75]])
    return gdpnet.RuleModel(m, outputs=[m.y])
"""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(ModelFileError) as caught:
        load_model(path)
    return str(caught.value)


def refusal_of_build(path: Path) -> str:
    model = load_model(path)
    with pytest.raises(ModelFileError) as caught:
        model.build()
    return str(caught.value)


def test_a_model_that_comes_with_gdpnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_model("cooling").path == MODELS / "cooling" / "model.py"
    assert set(shipped_models()) == {file.parent.name for file in MODELS.glob("*/model.py")}
    # What is there comes first.
    write(tmp_path / "toy" / "model.py", GOOD)
    assert load_model("toy").path == tmp_path / "toy" / "model.py"
    with pytest.raises(ModelFileError, match=r"comes with gdpnet: cooling, pbmc, stress, toy\."):
        load_model("colling")


def test_a_file(tmp_path: Path) -> None:
    model = load_model(write(tmp_path / "gap.py", GOOD))
    assert isinstance(model, LoadedModel)
    assert model.name == "gap"
    assert model.path == (tmp_path / "gap.py").resolve()
    assert model.sample is None
    assert model.network is None
    rules = model.build()
    assert isinstance(rules, gdpnet.RuleModel)
    assert list(rules.names) == ["gap"]
    assert "build" in repr(model)
    assert "sample" not in repr(model)
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.sample = print  # type: ignore[misc]


def test_a_folder_whose_model_imports_its_neighbour(tmp_path: Path) -> None:
    write(tmp_path / "gap" / "_constants.py", "LOW = 0.25\n")
    write(
        tmp_path / "gap" / "model.py",
        "from ._constants import LOW\n" + GOOD + "\ndef sample(n, split, seed): return n, split\n",
    )
    model = load_model(str(tmp_path / "gap"))
    assert model.name == "gap"
    assert model.module.LOW == 0.25
    assert model.sample is not None
    assert model.sample(3, split="iid", seed=0) == (3, "iid")


def test_keywords_reach_build(tmp_path: Path) -> None:
    import torch

    model = load_model(write(tmp_path / "gap.py", GOOD))
    x, y = torch.zeros(1, 0, dtype=torch.float64), torch.tensor([[0.4]], dtype=torch.float64)
    assert not model.build().satisfied(y, x).item()
    assert model.build(low=0.5).satisfied(y, x).item()


def test_two_files_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    one = load_model(write(tmp_path / "one" / "model.py", GOOD + "\nMARK = 1\n"))
    two = load_model(write(tmp_path / "two" / "model.py", GOOD + "\nMARK = 2\n"))
    assert (one.module.MARK, two.module.MARK) == (1, 2)


def test_an_edited_file_and_its_edited_neighbour_are_read_again(tmp_path: Path) -> None:
    folder = tmp_path / "gap"
    write(folder / "_mark.py", "MARK = 1\n")
    write(folder / "model.py", "from ._mark import MARK\n" + GOOD)
    assert load_model(folder).module.MARK == 1
    # Another length: Python tells a changed source by its size and a time in whole seconds.
    write(folder / "_mark.py", "MARK = 1 + 1\n")
    assert load_model(folder).module.MARK == 2


def test_dataclasses_in_a_model_file(tmp_path: Path) -> None:
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Size:\n    rules: int = 3\n"
    )
    assert load_model(write(tmp_path / "m.py", text + GOOD)).module.Size().rules == 3


def test_no_such_path(tmp_path: Path) -> None:
    message = refusal(tmp_path / "nowhere")
    assert str(tmp_path / "nowhere") in message
    assert "no such file" in message
    assert "build()" in message


def test_a_folder_without_model_py_names_what_it_holds(tmp_path: Path) -> None:
    write(tmp_path / "gap" / "other.py", GOOD)
    message = refusal(tmp_path / "gap")
    assert "no model.py" in message
    assert "other.py" in message


def test_not_python(tmp_path: Path) -> None:
    assert "not a Python file" in refusal(write(tmp_path / "notes.txt", "hello"))


def test_no_build_names_what_is_there(tmp_path: Path) -> None:
    message = refusal(write(tmp_path / "m.py", "def make():\n    pass\n"))
    assert str(tmp_path / "m.py") in message
    assert "no build()" in message
    assert "make" in message


def test_build_is_not_a_function(tmp_path: Path) -> None:
    assert "of type int" in refusal(write(tmp_path / "m.py", "build = 3\n"))


def test_sample_is_not_a_function(tmp_path: Path) -> None:
    assert "sample should be a function" in refusal(write(tmp_path / "m.py", GOOD + "\nsample=3\n"))


def test_build_that_needs_arguments(tmp_path: Path) -> None:
    message = refusal(write(tmp_path / "m.py", "def build(k, *, d, seed=0, **more): ...\n"))
    assert "requires k, d." in message


def test_syntax_error(tmp_path: Path) -> None:
    message = refusal(write(tmp_path / "m.py", "x = 1\ndef build(:\n"))
    assert "line 2" in message
    assert "not valid Python" in message


def test_error_while_loading(tmp_path: Path) -> None:
    message = refusal(write(tmp_path / "m.py", "x = 1\nimport no_such_package_here\n"))
    assert "ModuleNotFoundError at line 2" in message
    assert "no_such_package_here" in message


def test_build_raises(tmp_path: Path) -> None:
    file = write(tmp_path / "m.py", "def build():\n    raise ValueError('k is negative')\n")
    model = load_model(file)
    with pytest.raises(ModelFileError, match=r"m\.py: build\(\) raised ValueError at line 2: k is"):
        model.build()
    with pytest.raises(GdpnetError) as caught:
        model.build()
    assert isinstance(caught.value.__cause__, ValueError)


def test_build_raises_in_a_neighbour(tmp_path: Path) -> None:
    write(tmp_path / "gap" / "_part.py", "def part():\n    return 1 / 0\n")
    write(tmp_path / "gap" / "model.py", "from ._part import part\n\ndef build():\n    part()\n")
    assert "ZeroDivisionError at _part.py line 2" in refusal_of_build(tmp_path / "gap")


def test_sample_raises(tmp_path: Path) -> None:
    text = GOOD + "\ndef sample(n, split, seed):\n    raise KeyError(split)\n"
    model = load_model(write(tmp_path / "m.py", text))
    assert model.sample is not None
    with pytest.raises(ModelFileError, match=r"sample\(\) raised KeyError at line .*'mars'"):
        model.sample(1, split="mars", seed=0)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("None", "returned nothing"),
        ("42", "returned int"),
        ("pyo.ConcreteModel()", "returned ConcreteModel. End it with"),
    ],
)
def test_build_returns_something_else(tmp_path: Path, result: str, said: str) -> None:
    text = f"import pyomo.environ as pyo\n\ndef build():\n    return {result}\n"
    message = refusal_of_build(write(tmp_path / "m.py", text))
    assert str(tmp_path / "m.py") in message
    assert "should return a gdpnet.RuleModel" in message
    assert said in message


@pytest.mark.parametrize("name", ["toy", "cooling", "stress"])
def test_the_models_of_the_repository(name: str) -> None:
    path = MODELS / name
    model = load_model(path if path.is_dir() else path.with_suffix(".py"))
    assert model.name == name
    assert model.build().names
    assert model.sample is not None

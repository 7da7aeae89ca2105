"""What `import gdpnet` imports, and what happens when Pyomo comes before it, after it, or anew."""

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import gdpnet

ROOT = Path(__file__).parents[1]

TOGETHER = """
import pyomo.environ as pyo
from pyomo.gdp import GDP_Error
assert issubclass(gdpnet.GdpnetError, GDP_Error)
assert gdpnet.errors.InputError.__mro__[1:4] == (gdpnet.GdpnetError, GDP_Error, GDP_Error.__base__)
try:
    raise gdpnet.errors.InputError("caught as Pyomo's")
except GDP_Error as error:
    assert isinstance(error, ValueError)
for name in ("gdpnet.basic_steps", "gdpnet.lift_projection", "gdpnet.hull"):
    assert pyo.TransformationFactory.doc(name)
    made = pyo.TransformationFactory(name)
    assert type(made).__module__.startswith("gdpnet."), made
    assert pyo.TransformationFactory.get_class(name).CONFIG is type(made).CONFIG
"""


def run(code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_import_needs_torch_and_numpy_only() -> None:
    run("""
import sys, gdpnet
late = {"pyomo", "scipy", "networkx", "highspy", "gurobipy", "matplotlib", "pandas",
        "typer", "rich", "torchmetrics"} & set(sys.modules)
assert not late, late
assert {"plan", "plot", "proof", "study", "convexify", "testing"} <= set(dir(gdpnet))
assert "RuleSatisfaction" in dir(gdpnet.nn)
for name in ("errors", "nn", "rules", "solve", "plan", "plot", "proof", "study"):
    assert getattr(gdpnet, name) is sys.modules[f"gdpnet.{name}"]
assert "matplotlib" not in sys.modules
assert callable(gdpnet.convexify)
""")


@pytest.mark.parametrize(
    "order",
    [
        "import gdpnet, pyomo.environ",
        "import pyomo.environ, gdpnet",
        "import pyomo.gdp, gdpnet",
        "import gdpnet, pyomo.gdp",
        "import gdpnet; from pyomo.gdp.disjunct import Disjunct",
        "import pyomo.core, gdpnet",
    ],
)
def test_pyomo_in_either_order(order: str) -> None:
    run(order + TOGETHER)


def test_harmless_under_reload_and_when_imported_anew() -> None:
    again = """
import importlib, sys, gdpnet, pyomo.gdp
for module in (gdpnet.late, gdpnet.errors, gdpnet, pyomo.gdp, gdpnet):
    importlib.reload(module)
assert len([f for f in sys.meta_path if getattr(f, "waits_for", "")]) == 1
# All of both once more, as tests of import orders do.
for name in [n for n in sys.modules if n.partition(".")[0] in ("gdpnet", "pyomo")]:
    del sys.modules[name]
import gdpnet
assert len([f for f in sys.meta_path if getattr(f, "waits_for", "")]) == 1
"""
    run("import gdpnet" + TOGETHER + again + TOGETHER)


def test_the_module_keeps_its_own_loader() -> None:
    run("""
import copy, importlib.util, inspect, pickle, sys, gdpnet
found = importlib.util.find_spec("pyomo.gdp")
assert "Disjunction" in found.loader.get_source("pyomo.gdp")
copy.copy(found.loader)
assert "pyomo.gdp" not in sys.modules
import pyomo.gdp, pyomo.core
assert type(pyomo.gdp.__loader__) is type(pyomo.core.__loader__)
assert pyomo.gdp.__spec__.loader is pyomo.gdp.__loader__
assert "Disjunction" in inspect.getsource(pyomo.gdp)
assert pickle.loads(pickle.dumps(gdpnet.errors.InputError("kept"))).args == ("kept",)
""")


def test_other_imports_are_left_alone() -> None:
    run(
        """
import sys, gdpnet
(finder,) = [f for f in sys.meta_path if getattr(f, "waits_for", "")]
for name in ("json", "pyomo", "pyomo.core", "pyomo.gdp.disjunct", "pyomo.gdpopt", "nowhere"):
    assert finder.find_spec(name, None) is None
class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == "pyomo.gdp.disjunct":
            raise ModuleNotFoundError("broken on purpose", name=name)
broken = Broken()
sys.meta_path.insert(0, broken)
try:
    import pyomo.gdp
except ModuleNotFoundError as error:
    assert str(error) == "broken on purpose"
else:
    raise AssertionError("imported")
sys.meta_path.remove(broken)
"""
        + TOGETHER
    )


def test_threads_that_import_at_once() -> None:
    run(
        """
import importlib, threading
def load(name):
    barrier.wait()
    importlib.import_module(name)
barrier = threading.Barrier(3)
threads = [threading.Thread(target=load, args=[n]) for n in ("pyomo.gdp", "gdpnet", "pyomo.gdp")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
import gdpnet
"""
        + TOGETHER
    )


def test_spawned_processes(tmp_path: Path) -> None:
    script = tmp_path / "spawned.py"
    together = "\n    ".join(TOGETHER.splitlines())
    script.write_text(f"""
import multiprocessing, sys
import gdpnet

def work(error):
    assert "pyomo" not in sys.modules
    sent = error
    {together}
    assert type(sent) is gdpnet.errors.InputError
    return sent

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        error = gdpnet.errors.InputError("there and back")
        assert pool.apply(work, [error]).args == ("there and back",)
""")
    done = subprocess.run(
        [sys.executable, "-W", "error", script],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_star_import() -> None:
    run("""
from gdpnet import *
import gdpnet
for name in gdpnet.__all__:
    assert globals()[name] is getattr(gdpnet, name), name
assert callable(convexify) and callable(project)
""")


def test_unknown_names() -> None:
    with pytest.raises(AttributeError, match="module 'gdpnet' has no attribute 'projekt'"):
        _ = gdpnet.projekt
    with pytest.raises(ImportError, match="cannot import name 'projekt'"):
        from gdpnet import projekt  # noqa: F401


@pytest.mark.parametrize("package", ["gdpnet", "gdpnet.nn", "gdpnet.relaxation"])
def test_type_checkers_and_the_interpreter_see_the_same_late_names(package: str) -> None:
    path = ROOT.joinpath(*package.split("."), "__init__.py")
    tree = ast.parse(path.read_text())
    seen = {
        alias.asname or alias.name
        for block in tree.body
        if isinstance(block, ast.If)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    (table,) = [n for n in ast.walk(tree) if isinstance(n, ast.Dict)]
    late = {key.value for key in table.keys if isinstance(key, ast.Constant)}
    assert late == seen
    module = __import__(package, fromlist=["__all__"])
    modules = {name for name in late if isinstance(getattr(module, name), ModuleType)}
    assert late - modules <= set(module.__all__)

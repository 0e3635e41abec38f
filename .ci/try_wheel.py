"""Install wheels into an empty environment and use them as a stranger would: plain, with commands, with the bench."""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

FIT = """
from decidewise import WiseRegressor, decide, normalized_regret
from decidewise.data import make_shortest_path
train, test = make_shortest_path(300, degree=4, seed=0).split(200)
model = WiseRegressor().fit(train.X, train.costs)
assert normalized_regret(test.problem, model.predict(test.X), test.costs) < 20
assert decide(model, test.problem, test.X).shape == test.costs.shape
"""


def main(wheel: Path, bench: Path) -> None:
    """Try the wheels of the library and of its bench; an exception says what failed."""
    constraints = Path(__file__).parents[1] / "constraints.txt"
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        scripts = Path(folder, "Scripts" if sys.platform == "win32" else "bin")

        def run(program: str, *arguments: str, expected: int = 0) -> str:
            command = [scripts / program, *arguments]
            result = subprocess.run(command, cwd=folder, stderr=subprocess.PIPE, text=True, check=False)
            if result.returncode != expected:
                raise SystemExit(f"{program} {' '.join(arguments)} ended with {result.returncode}: {result.stderr}")
            return result.stderr

        def install(requirement: str) -> None:
            options = ("--quiet", "--disable-pip-version-check", "--constraint", str(constraints))
            run("python", "-m", "pip", "install", *options, requirement)

        install(str(wheel.resolve()))
        run("python", "-c", FIT)
        if "decidewise[cli]" not in (said := run("decidewise", "demo", expected=2)):
            raise SystemExit(f"Without its extra the command should name it, but it said: {said}")
        install(f"{wheel.resolve()}[cli]")
        run("decidewise", "--version")
        run("python", "-m", "decidewise", "demo")
        if "decidewise-bench" not in (said := run("decidewise", "paper", "run", "quick", expected=2)):
            raise SystemExit(f"Without its bench the command should name it, but it said: {said}")
        install(str(bench.resolve()))
        run("decidewise", "paper", "run", "quick", "--trials", "1", "--jobs", "1")
        run("decidewise", "paper", "report", "quick")
    print(f"{wheel.name} and {bench.name} work in an environment of their own.")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

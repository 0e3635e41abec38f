import importlib
import pkgutil

import decidewise
from decidewise.app.warmup import warm_up
from decidewise.kit.kernels import Kernel


def test_after_warming_up_every_kernel_that_python_calls_is_compiled(capsys):
    warm_up()
    assert "All kernels are ready" in capsys.readouterr().err
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(decidewise.__path__, "decidewise.")
        if not module.name.startswith(("decidewise.frontends.", "decidewise.__main__"))
    ]
    kernels = {value for module in modules for value in vars(module).values() if isinstance(value, Kernel)}
    called_by_kernels = {called for kernel in kernels for called in _calls(kernel)}
    entries = kernels - called_by_kernels
    assert len(entries) > 8
    assert {entry.__name__ for entry in entries if "compiled" not in vars(entry)} == set()


def _calls(kernel):
    named = (kernel.py_func.__globals__.get(name) for name in kernel.py_func.__code__.co_names)
    return [value for value in named if isinstance(value, Kernel)]

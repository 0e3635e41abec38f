"""Model files: one file per fitted model, by convention `*.dw`, from which nothing is executed.

`save_model` writes, `load_model` reads, `read_model_summary` shows what is in a file without building the model;
`export_onnx` writes linear and log-linear models for other runtimes.
"""

from decidewise.model_file.files import load_model, save_model
from decidewise.model_file.onnx_export import export_onnx
from decidewise.model_file.summary import ModelSummary, read_model_summary

__all__ = ["ModelSummary", "export_onnx", "load_model", "read_model_summary", "save_model"]

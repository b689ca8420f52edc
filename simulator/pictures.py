"""matplotlib, which is optional: a figure to draw on, written as PNG and as SVG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leveller.errors import UserError


def new_figure(width: float, height: float) -> Any:  # noqa: ANN401 (matplotlib is optional)
    """Return an empty matplotlib figure of that size in inches. Raises UserError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError("--plot needs matplotlib", "pip install 'leveller[plots]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def write(figure: Any, prefix: Path) -> tuple[Path, Path]:  # noqa: ANN401
    """Write ``figure`` as PREFIX.png and PREFIX.svg. Raises UserError where they cannot be written."""
    written = prefix.with_name(prefix.name + ".png"), prefix.with_name(prefix.name + ".svg")
    for path in written:
        try:
            figure.savefig(path)
        except OSError as error:
            what = f"{path} cannot be written ({error.strerror})"
            raise UserError(what, "give --plot another name") from None
    return written

"""Pictures of a comparison: one figure, as PNG and as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from simulator import pictures
from simulator.compare import Summary


def draw(comparison: Sequence[Summary], prefix: Path) -> tuple[Path, Path]:
    """Write PREFIX.png and PREFIX.svg: minimum and average R, the CDF of R, R over time, the links' load.

    The bars are means over seeds with 95 % intervals, the CDF and the load pool all seeds, and R over time is
    that of the first seed: the minimum (thin) and the mean over the jobs that run.
    Raises UserError where matplotlib is not installed, or the files cannot be written.
    """
    figure = pictures.new_figure(11, 8)
    bars, cdf, time, load = figure.subplots(2, 2).flat
    _bars(bars, comparison)
    for number, summary in enumerate(comparison):
        style: dict[str, Any] = {"color": f"C{number}", "label": summary.policy}
        _cumulative(cdf, [job.rate for run in summary.runs for job in run.jobs], style)
        _cumulative(load, [share for run in summary.runs for share in run.load if share > 0], style)
        history = summary.runs[0].history
        moments = [moment for moment, _ in history]
        time.plot(moments, [fmean(rates.values()) for _, rates in history], linewidth=1.6, **style)
        time.plot(moments, [min(rates.values()) for _, rates in history], linewidth=0.6, color=style["color"])
    cdf.set(title="Jobs by R", xlabel="R", ylabel="share of jobs below", xlim=(0, 1))
    load.set(title="Links by load, of those used", xlabel="share of time busy", ylabel="share of links below")
    time.set(title="R over time: mean (thick), minimum", xlabel="seconds", ylabel="R", ylim=(0, 1))
    for axes in (cdf, load, time):
        axes.legend(fontsize="small")
    return pictures.write(figure, prefix)


def _bars(axes: Any, comparison: Sequence[Summary]) -> None:  # noqa: ANN401 (matplotlib is optional)
    places = range(len(comparison))
    for shift, figure, label in ((-0.2, "min_R", "minimum"), (0.2, "avg_R", "average")):
        estimates = [summary.estimate(figure) for summary in comparison]
        axes.bar(
            [place + shift for place in places],
            [one.mean for one in estimates],
            width=0.4,
            yerr=[one.half_width for one in estimates],
            label=label,
        )
    axes.set_xticks(list(places), [summary.policy for summary in comparison])
    axes.set(title="R by policy", ylabel="R", ylim=(0, 1))
    axes.legend(fontsize="small")


def _cumulative(axes: Any, values: Sequence[float], style: dict[str, Any]) -> None:  # noqa: ANN401
    ordered = sorted(values)
    shares = [(place + 1) / len(ordered) for place in range(len(ordered))]
    axes.step(ordered, shares, where="post", **style)

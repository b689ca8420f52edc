"""The dashboard asks for metrics that the controller has, by labels that they have."""

import json
import re
from itertools import combinations
from pathlib import Path

import pytest

import controlplane
from controlplane.metrics import Metrics

PANELS = json.loads(Path(controlplane.__file__).with_name("grafana.json").read_text())["panels"]
SUFFIXES = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket"]}


@pytest.fixture(scope="module")
def labels():
    """The labels of each series that /metrics may show."""
    return {
        metric.name + suffix: set(collector._labelnames)
        for collector in Metrics().registry._collector_to_names
        for metric in collector.describe()
        for suffix in SUFFIXES[metric.type]
    }


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_each_panel_asks_for_what_there_is(panel, labels):
    for target in panel["targets"]:
        asked = re.findall(r"leveller_\w+", target["expr"])
        shown = re.findall(r"{{(\w+)}}", target.get("legendFormat", ""))
        assert asked
        assert all(set(shown) <= labels[series] for series in asked)


def test_no_panel_covers_another():
    for one, other in combinations((panel["gridPos"] for panel in PANELS), 2):
        apart = any(
            one[low] + one[size] <= other[low] or other[low] + other[size] <= one[low]
            for low, size in (("x", "w"), ("y", "h"))
        )
        assert apart, (one, other)

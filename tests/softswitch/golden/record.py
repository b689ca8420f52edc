"""Record golden cases from the real bmv2: ``python -m tests.softswitch.golden.record [NAME ...]``.

Without names, all of ``inputs``. What the softswitch does differently is printed; the case has what bmv2 did.
"""

from __future__ import annotations

import json
import sys

from tests.softswitch.bmv2 import Bmv2
from tests.softswitch.golden.inputs import INPUTS, inputs
from tests.softswitch.golden.replay import CASES, counted, step, write
from tests.softswitch.ours import Ours


def record(name: str) -> None:
    writes, packets = inputs(name)
    writes = json.loads(json.dumps(writes))
    ours, bmv2 = Ours(name), Bmv2(name)
    try:
        write(ours, writes)
        write(bmv2, writes)
        case = {"program": name, "writes": writes, "packets": []}
        for port, packet in packets:
            expected = step(ours, port, packet)
            found = step(bmv2, port, packet, expected)
            case["packets"].append(found)
            if found != expected:
                print(f"{name}:\n  bmv2 {found}\n  ours {expected}")  # noqa: T201
        case |= counted(bmv2)
        for key, value in counted(ours).items():
            if value != case[key]:
                print(f"{name}: {key}\n  bmv2 {case[key]}\n  ours {value}")  # noqa: T201
    finally:
        bmv2.close()
    CASES.mkdir(exist_ok=True)
    (CASES / f"{name}.json").write_text(_lines(case))


def _lines(case: dict[str, object]) -> str:
    """JSON with a line for each write, packet and counter."""
    parts = []
    for key, value in case.items():
        if isinstance(value, list) and value:
            rows = ",\n  ".join(json.dumps(row) for row in value)
            parts.append(f'"{key}": [\n  {rows}\n ]')
        else:
            parts.append(f'"{key}": {json.dumps(value)}')
    return "{\n " + ",\n ".join(parts) + "\n}\n"


if __name__ == "__main__":
    for each in sys.argv[1:] or INPUTS:
        record(each)

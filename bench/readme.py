"""Write the sections of README.md and bench/README.md that hold figures, from the newest records.

    python bench/readme.py           # write
    python bench/readme.py --check   # exit status 1 where a file differs from what would be written

A section lies between the lines `<!-- figures -->` and `<!-- /figures -->`; nothing in it is typed.
Trial runs belong elsewhere (`--records DIR`, `--no-record`): what lies in bench/records counts.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from pathlib import Path
from typing import Any

import _bars
import _machine
from _records import newest
from _summary import KINDS, machine_line

BEGIN, END = "<!-- figures -->", "<!-- /figures -->"
SECTION = re.compile(f"(?<=^{BEGIN}\n).*?(?=^{END}$)", re.DOTALL | re.MULTILINE)
Records = dict[str, tuple[Path, dict[str, Any]]]

NONE = "No record has been made yet, so there are no figures here.\n"
# kind → title, in the order of the section; each module has a `render`
TITLES = {
    "bars": "Against gigatoken: the bars",
    "stages": "Where the time goes",
    "stages_pretok": "The tag engine by stage",
    "sweep": "As work grows",
    "pretokenizers": "Pretokenizers against tokenizers' own",
    "adversarial": "Hard rows",
    "memory": "Memory",
    "paths": "gigatoken's paths",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare only; 1 where one differs")
    parser.add_argument("--records", type=Path, default=_machine.RECORDS)
    args = parser.parse_args()
    records = newest(args.records)
    stale = False
    for path, text in (
        (_machine.ROOT / "README.md", short(records)),
        (_machine.BENCH / "README.md", full(records)),
    ):
        old = path.read_text()
        if not SECTION.search(old):
            print(f"{path.relative_to(_machine.ROOT)} has no section for figures", file=sys.stderr)
            return 2
        new = SECTION.sub(text.replace("\\", r"\\"), old, count=1)
        if new == old:
            continue
        stale = True
        if args.check:
            name = path.relative_to(_machine.ROOT)
            print(f"{name}: its figures are not those of the records", file=sys.stderr)
        else:
            path.write_text(new)
    return 1 if args.check and stale else 0


def short(records: Records) -> str:
    """The README's section: ratios to gigatoken by bar, one line for each peer, one for stages."""
    if "bars" not in records:
        return NONE
    path, record = records["bars"]
    version = record["versions"].get("gigatoken", {}).get("gigatoken", "")
    header = [f"against gigatoken {version}, ours ÷ theirs", "threads", *KINDS.values()]
    rows = []
    for label, threads in dict.fromkeys((v["bar"], v["threads"]) for v in record["bars"]):
        same = [v for v in record["bars"] if (v["bar"], v["threads"]) == (label, threads)]
        row = [label.removeprefix("no bar: "), str(threads)]
        for kind in KINDS:
            ratios = [v["kinds"][kind]["ratio"] for v in same if v["kinds"][kind]["ratio"]]
            row.append(_range([r["median"] for r in ratios], "×", 2))
        rows.append(row)
    lines = [_machine.table(header, rows), ""]
    for peer in dict.fromkeys(r["peer"] for r in record["results"]):
        mine = [r for r in record["results"] if r["peer"] == peer and r["threads"] == 1]
        if mine and peer != "gigatoken":
            parts = [
                f"{label} {_range([r['ratio'][kind]['median'] for r in mine], '×', 1)}"
                for kind, label in KINDS.items()
                if all(kind in r["ratio"] for r in mine)
            ]
            version = record["versions"].get(peer, {}).get(peer.rstrip("1"), "")
            lines.append(f"- {peer.rstrip('1')} {version}, one thread: {'; '.join(parts)}.")
    bars = ", ".join(f"{n} {verdict}" for verdict, n in record["bars_count"].items())
    lines += [
        "",
        f"Medians of {_pairs(record)} interleaved pairs of fresh processes over "
        f"{_corpora(record)}; bars set beforehand: {bars}. {machine_line(record['machine'])}; "
        f"{record['date']}, [record](bench/records/{path.name}).",
        "",
    ]
    return "\n".join(lines)


def full(records: Records) -> str:
    """The section of bench/README.md: the newest record of every kind, with its plots."""
    parts = []
    for kind, title in TITLES.items():
        if kind not in records:
            continue
        path, record = records[kind]
        when = f"{record['date']}, [record](records/{path.name})"
        commit = record.get("revision", {}).get("commit")
        if commit:
            changed = " with changes" if record["revision"]["modified"] else ""
            when += f", commit {commit[:10]}{changed}"
        plots = sorted(path.parent.glob(f"{path.stem}_*.svg"))
        parts += [f"### {title}", f"{machine_line(record['machine'])}; {when}."]
        parts.append(markdown(_render(kind, record)))
        parts += [f"![{p.stem.partition(path.stem + '_')[2]}](records/{p.name})" for p in plots]
    if not parts:
        return NONE
    return "\n\n".join(parts) + "\n"


def _render(kind: str, record: dict[str, Any]) -> str:
    if kind == "bars":
        parts = [_bars.render(record["bars"]), _bars.others(record["results"])]
        parts += [f"No figure: {title}: {why}" for title, why in record["failed"].items()]
        parts += [f"Left out: {who}: {why}" for who, why in record["left_out"].items()]
        return "\n\n".join(parts)
    if kind == "paths":
        return "\n".join(importlib.import_module("_summary").render(record).splitlines()[1:])
    render = importlib.import_module(kind).render
    if kind in ("adversarial", "memory", "pretokenizers"):
        text: str = render(record["results"])
        return text
    return "\n".join(render(record).splitlines()[1:])  # the first line is the machine


def markdown(text: str) -> str:
    """Lines and tables as paragraphs of their own; cells are not padded."""
    out: list[str] = []
    before_table = False
    for line in text.splitlines():
        table = line.startswith("|")
        if line.strip() and out and not (table and before_table):
            out.append("")
        if line.strip():
            out.append(re.sub(r" {2,}", " ", re.sub(r"-{4,}", "---", line)) if table else line)
        before_table = table
    return "\n".join(out)


def _range(values: list[float], unit: str, digits: int) -> str:
    """`low–high` of some figures, one figure where they agree, – where there is none."""
    if not values:
        return "–"
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return f"{low}{unit}" if low == high else f"{low}–{high}{unit}"


def _pairs(record: dict[str, Any]) -> str:
    return _range([float(v["pairs"]) for v in record["bars"] if v["pairs"]], "", 0)


def _corpora(record: dict[str, Any]) -> str:
    found = {r["corpus"]: r["bytes"] for r in record["results"] if r["peer"] == "gigatoken"}
    return ", ".join(f"{name} ({size / 1e6:.0f} MB)" for name, size in found.items())


if __name__ == "__main__":
    sys.exit(main())

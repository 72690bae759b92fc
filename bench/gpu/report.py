"""The page of figures that scripts/gpu-check makes out of the files of its
parts."""

import json
import os

NUMBERS = range(1, 8)

HEADING = """<!-- scripts/gpu-check --report, from the files of one run -->
# On a card
"""

ABOUT = """
Each figure is from one run on one card. *of hardware* is its ratio to what the
card or the link does in the same run: a copy within the card of as many bytes,
the driver's own copy of pinned memory; for the processor a bare free list or
memcpy. *of peer* is its ratio to the peer in the same run, which the name or the
part says. Copies between two cards have run on a stand-in of the driver only,
since this machine has one card; so have devices of HIP.
"""


def load(folder):
    parts = []
    for number in NUMBERS:
        path = os.path.join(folder, f"part{number}.json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                parts.append(json.load(file))
    return parts


def number(value):
    if value is None:
        return "-"
    if isinstance(value, float) and value != int(value):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{int(value):,}"


def goal_of(figure):
    if figure["goal"] is None:
        return ""
    sign = {"at least": ">= ", "at most": "<= "}.get(figure["bound"], "")
    return sign + number(figure["goal"])


def met_of(figure):
    return {True: "yes", False: "**no**", None: ""}[figure["met"]]


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def table(part):
    lines = ["| figure | value | unit | goal | met | of hardware | of peer |",
             "|---|---:|---|---:|---|---:|---:|"]
    for f in part["figures"]:
        cells = [f["name"], number(f["value"]), f["unit"], goal_of(f), met_of(f),
                 number(f["ratio_to_hardware"]), number(f["ratio_to_peer"])]
        lines.append("| " + " | ".join(cell(c) for c in cells) + " |")
    return lines


def where(part):
    if part["card"]:
        text = f"{part['card']}, driver {part['driver']}, {part['processor']}"
    else:
        text = part["processor"]
    if part["rehearsal"]:
        text = f"A REHEARSAL on {part['device']}, not a card: {text}"
    return f"{text}. {part['date']}, {part['seconds']:.0f} s."


def section(part):
    lines = [f"## {part['part']}. {part['title']}", "", where(part), ""]
    lines += [f"**Failed:** {cell(e)}" + "\n" for e in part["errors"]]
    lines += table(part) if part["figures"] else ["No figures."]
    for s in part["skipped"]:
        lines.append(f"\nSkipped: {cell(s['what'])}: {cell(s['why'])}.")
    for n in part["notes"]:
        lines.append(f"\n{cell(n)}.")
    return lines + [""]


def page(parts):
    missing = [n for n in NUMBERS if n not in {p["part"] for p in parts}]
    lines = [HEADING + ABOUT]
    if missing:
        lines.append("Not run: part " + ", ".join(map(str, missing)) + ".\n")
    goals = [f for p in parts for f in p["figures"] if f["met"] is not None]
    reached = sum(f["met"] for f in goals)
    lines.append(f"{reached} of {len(goals)} goals are reached.\n")
    for part in parts:
        lines += section(part)
    return "\n".join(lines)

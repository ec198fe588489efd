"""Figures of a CPU over time: `python -m tests.bench.history FILE ...` says what is worse in the last entries.

`tests/bench/figures` has a file for each CPU that we measured on, by LLVM's name of it: entries with date, commit,
threads, versions of the other runtimes, and models by name, the oldest entry first. `tests.bench.table`,
`tests.bench.memory` and `tests.bench.compile_times` append to it with `--into`. Ends with 1 where anything is worse.
"""

import argparse
import json
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from onnxla.codegen.cpu.target import host_target

WORSE = {"speed": 1.05, "memory": 1.05, "compiling": 1.3}
"""What a file has entries of, and the factor beyond which a figure is worse and not noise. Only times of runs are taken
in turns with something else, whose share of the noise is the same."""


@dataclass
class Entry:
    """The figures of a day. A model that fails has its `error` in place of figures."""

    date: str
    commit: str
    threads: int
    """Of a run; 0 for compiling, which takes all that there are."""
    versions: dict[str, str] = field(default_factory=dict)
    """Of the runtimes that were measured beside ours."""
    models: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass
class History:
    """All entries of one CPU."""

    cpu: str
    speed: list[Entry] = field(default_factory=list)
    """Of each model: arithmetic, seconds by runtime, ratio (its seconds over ours, in turns) by runtime, and which
    runtimes' results differ from ours or refuse the model."""
    memory: list[Entry] = field(default_factory=list)
    """Of each model: arithmetic, and bytes: peaks of onnxla and onnxruntime, arena, intermediates and weights."""
    compiling: list[Entry] = field(default_factory=list)
    """Of each model: arithmetic, and seconds: cold and warm."""

    def last(self, kind: str, threads: int) -> Entry | None:
        """The last entry for so many threads, of a kind in WORSE."""
        return next((e for e in reversed(self.entries(kind)) if e.threads == threads), None)

    def entries(self, kind: str) -> list[Entry]:
        return {"speed": self.speed, "memory": self.memory, "compiling": self.compiling}[kind]

    def add(self, kind: str, entry: Entry) -> None:
        """Append; figures of the same day, commit and threads become one entry."""
        same = self.last(kind, entry.threads)
        if same is not None and (same.date, same.commit) == (entry.date, entry.commit):
            same.versions |= entry.versions
            same.models |= entry.models
        else:
            self.entries(kind).append(entry)


def read(path: Path) -> History:
    """The history in a file."""
    found = json.loads(path.read_text())
    return History(found["cpu"], **{kind: [Entry(**e) for e in found[kind]] for kind in WORSE})


def write(path: Path, history: History) -> None:
    """Write it, a line for each model: what a day changed can be read. A folder that is not there is made."""
    parts = [f'"cpu": {json.dumps(history.cpu)}']
    for kind in WORSE:
        parts.append(f'"{kind}": [' + ",\n".join(map(_entry_text, history.entries(kind))) + "]")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def _entry_text(entry: Entry) -> str:
    head = {key: value for key, value in asdict(entry).items() if key != "models"}
    models = [f"  {json.dumps(name)}: {json.dumps(found)}" for name, found in sorted(entry.models.items())]
    return json.dumps(head)[:-1] + ', "models": {\n' + ",\n".join(models) + "}}"


def this_cpu() -> str:
    """LLVM's name of the CPU: `znver5`."""
    return str(host_target().cpu)


def new_entry(threads: int) -> Entry:
    """An entry of today, of the commit that is checked out."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return Entry(date.today().isoformat(), commit, threads)


def keep(folder: Path, kind: str, entry: Entry) -> list[str]:
    """Add an entry to this CPU's file in `folder`; says what is worse than in the entry before it."""
    path = folder / f"{this_cpu()}.json"
    history = read(path) if path.exists() else History(this_cpu())
    before = history.last(kind, entry.threads)
    found = [] if before is None else worse(kind, before, entry)
    history.add(kind, entry)
    write(path, history)
    return found


def worse(kind: str, before: Entry, after: Entry) -> list[str]:
    """A line for each model whose time or memory is worse by more than WORSE, or that fails now.

    Times are judged by their ratio to onnxruntime's, which means the same on a busier machine; where its version is
    another one, as they are.
    """
    return [line for name in after.models if (line := _worse(kind, name, before, after))]


def _worse(kind: str, name: str, before: Entry, after: Entry) -> str | None:
    old, new = before.models.get(name), after.models[name]
    if old is None or "error" in old:
        return None
    if "error" in new:
        return f"{name}: fails now: {new['error']}"
    if kind == "compiling":
        slower = max(("cold", "warm"), key=lambda how: float(new[how] / old[how]))
        factor, words = new[slower] / old[slower], f"{slower}, {old[slower]:.2f} -> {new[slower]:.2f} s"
    elif kind == "memory":
        factor, words = new["onnxla"] / old["onnxla"], f"{old['onnxla'] / 1e6:.1f} -> {new['onnxla'] / 1e6:.1f} MB"
    elif before.versions.get("onnxruntime") == after.versions.get("onnxruntime"):
        ratios = old["ratio"]["onnxruntime"], new["ratio"]["onnxruntime"]
        factor, words = ratios[0] / ratios[1], f"{ratios[0]:.2f} -> {ratios[1]:.2f} times as fast as onnxruntime"
    else:
        times = old["seconds"]["onnxla"] * 1e3, new["seconds"]["onnxla"] * 1e3
        factor, words = times[1] / times[0], f"{times[0]:.4g} -> {times[1]:.4g} ms"
    return f"{name}: {words}" if factor > WORSE[kind] else None


def last_pairs(history: History) -> Iterator[tuple[str, Entry, Entry]]:
    """Of each kind, for each number of threads: the last entry and the one before it."""
    for kind in WORSE:
        for threads in sorted({e.threads for e in history.entries(kind)}):
            of_threads = [e for e in history.entries(kind) if e.threads == threads]
            if len(of_threads) > 1:
                yield kind, of_threads[-2], of_threads[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    any_worse = False
    for path in parser.parse_args().files:
        history = read(path)
        for kind, before, after in last_pairs(history):
            found = worse(kind, before, after)
            any_worse = any_worse or bool(found)
            print(
                f"{history.cpu}, {kind}, {after.threads} threads, {after.date} ({after.commit}) against {before.date} "
                f"({before.commit}): {len(found)} of {len(after.models)} worse"
            )
            print("".join(f"  {line}\n" for line in found), end="")
    raise SystemExit(int(any_worse))


if __name__ == "__main__":
    main()

"""Part 4 of scripts/gpu-check: programs of PyTorch's that train the same net by
different allocators, making their steps by turns so that what disturbs one
disturbs the others (train.py)."""

import glob
import json
import os
import select
import statistics
import subprocess
import time

import check
from check import Failed

REST = 80  # seconds that the checks after the turns take
WAYS = ("torch", "expandable", "tarn", "mempool")


class Program:
    """One of them, and the lines that it answers."""

    def __init__(self, part, way, device, library):
        env = dict(os.environ)
        if way == "expandable":
            env["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
            env["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
        env.update(plugins_of(part))
        self.way = way
        self.part = part
        self.errors = os.path.join(part.options.build, "gpu", f"train-{way}.log")
        os.makedirs(os.path.dirname(self.errors), exist_ok=True)
        with open(self.errors, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [part.options.python, os.path.join(check.HERE, "train.py"), way,
                 device, library, "tiny" if part.tiny else "small"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                text=True, env=env, start_new_session=True)
        try:
            self.version = self.read()["ready"]
        except Failed:
            self.end()
            raise

    def read(self):
        limit = max(1, min(90, self.part.left()))
        ready, _, _ = select.select([self.process.stdout], [], [], limit)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            with open(self.errors, encoding="utf-8", errors="replace") as log:
                why = check.python_error(log.read()) if ready else "no answer in time"
            raise Failed(f"training with {self.way}: {why}")
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(f"training with {self.way}: {answer['error']}")
        return answer

    def ask(self, *command):
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # the answer says why
        return self.read()

    def end(self):
        status = None
        try:
            self.process.stdin.close()
            status = self.process.wait(timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            pass
        check.end_group(self.process)
        if status != 0:
            self.part.note(f"training with {self.way} ended with status {status}")
        self.process.stdout.close()


def plugins_of(part):
    """Where a library of this build finds the devices, for an environment."""
    folder = os.path.join(part.options.build, "plugins")
    return {"TARN_PLUGIN_DIR": os.environ.get("TARN_PLUGIN_DIR", folder)}


def library_of(part):
    found = glob.glob(os.path.join(part.options.build, "**", "libtarn_torch.so"),
                      recursive=True)
    if not found:
        part.lacks("libtarn_torch.so", "it was not built")
    return found[0] if found else ""


def start_all(part, library):
    on_card = not part.machine["rehearsal"]
    programs = {}
    for way in WAYS:
        if on_card and way in ("tarn", "mempool") and not library:
            continue
        try:
            device = "cuda:0" if on_card else "cpu"
            programs[way] = Program(part, way, device, library)
        except Failed as error:
            part.lacks(f"training with {way}", error)
    return programs


def measure(part):
    library = library_of(part)
    programs = start_all(part, library)
    try:
        if programs:
            part.step(train, part, programs)
    finally:
        for program in programs.values():
            program.end()
    if library:
        part.step(check_rest, part, library)


# --- steps -------------------------------------------------------------------


def take_turns(part, programs):
    """Ten rounds, or as many as there is time for; every other one backwards."""
    rounds, steps = (2, 1) if part.tiny else (10, 10)
    times = {way: [] for way in programs}
    losses = {way: [] for way in programs}
    for turn in range(rounds + 1):
        begin = time.monotonic()
        order = list(programs)[:: 1 if turn % 2 else -1]
        for way in order:
            answer = programs[way].ask("steps", steps)
            losses[way] += answer["losses"]
            if turn > 0:  # the first one warms up
                times[way].append(answer["ms"])
        if part.left() < 3 * (time.monotonic() - begin) + REST:
            break
    return times, losses


def over(times, way, base):
    return statistics.median(a / b for a, b in zip(times[way], times[base]))


def train(part, programs):
    part.note(f"PyTorch {next(iter(programs.values())).version}")
    for way, program in list(programs.items()):
        warm = part.step(program.ask, "steps", 2)
        if warm is None:
            programs.pop(way).end()
    times, losses = take_turns(part, programs)
    for way in programs:
        part.figure(f"{way}: step", statistics.median(times[way]), "ms")
        if way == "torch" or "torch" not in programs:
            continue
        of_torch = over(times, way, "torch")
        goal = 1.01 if way in ("tarn", "mempool") else None
        part.figure(f"{way}: step over torch's", of_torch, "x", goal, False,
                    peer=of_torch)
        worst = max(abs(a - b) for a, b in zip(losses[way], losses["torch"]))
        part.figure(f"{way}: losses differ from torch's by", worst, "", 0, False)
    tell_memory(part, programs)


# --- memory ------------------------------------------------------------------


def tell_memory(part, programs):
    """What a pool of PyTorch's has is Tarn's, too."""
    answers = {way: p.ask("memory") for way, p in programs.items()}
    held = {way: max(a["torch"], a["tarn"]) for way, a in answers.items()}
    best = held.get("expandable") or None
    for way, bytes_held in held.items():
        goal = best if way == "tarn" else None
        part.figure(f"{way}: reserved", bytes_held, "bytes", goal, False,
                    peer=bytes_held / best if best else None)


# --- checks ------------------------------------------------------------------


def check_rest(part, library):
    """What tests/torch/train.py finds: learned steps, sleep by tag, the
    snapshot, empty_cache, graphs, streams."""
    path = os.path.join(part.options.build, "gpu", "torch.json")
    script = os.path.join(check.ROOT, "tests", "torch", "train.py")
    if part.machine["rehearsal"]:
        part.skip("the checks of tests/torch/train.py", "PyTorch has no card")
        return
    if os.path.exists(path):
        os.remove(path)
    status, out, err = part.run([part.options.python, script, library,
                                 part.options.tool, "--rounds", "1", "--out", path],
                                150, plugins_of(part))
    if not os.path.exists(path):
        raise Failed(f"tests/torch/train.py ended with {status}: "
                     f"{check.last_line(err or out)}")
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    for c in report["checks"]:
        part.figure(c["check"], int(c["ok"]), "yes or no", 1)
        part.note(f"{c['check']}: {c['detail']}")

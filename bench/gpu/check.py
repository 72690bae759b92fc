"""What the parts of scripts/gpu-check have in common: the machine, commands
with a limit of their own, the build, and the figures of a part as one file of
JSON. Nothing but Python's standard library is needed.

A part keeps what it has measured when something else of it fails: the error is
in its file, and the part has failed.
"""

import datetime
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.dirname(os.path.abspath(__file__))

LIMIT = 590  # seconds of a command, wherever a part has more


class Failed(Exception):
    """Something that could not be measured, in words."""


# --- commands ----------------------------------------------------------------


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def run(words, seconds, env=None):
    """(exit status, stdout, stderr) of a command, all of whose processes end
    with it or with the limit."""
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, **(env or {})},
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=max(1, min(seconds, LIMIT)))
    except subprocess.TimeoutExpired:
        end_group(process)
        raise Failed(f"{short(words)}: over the limit of {seconds:.0f} seconds")
    return process.returncode, out, err


def short(words):
    """A command without the folders of this machine."""
    return " ".join(os.path.basename(w) if w.startswith("/") else w for w in words)


def last_line(text):
    lines = [line.strip() for line in text.splitlines()
             if line.strip() and not line.startswith("Try '")]
    return without_folders(lines[-1]) if lines else "no output"


def python_error(text):
    """What a script has died of: some errors have many lines."""
    for line in reversed(text.splitlines()):
        if re.match(r"[\w.]*(Error|Exception)\b", line):
            return without_folders(line)
    return last_line(text)


def without_folders(text):
    return re.sub(r"(?<![\w:/])/[\w.+-]+/(?:[\w.+-]+/)*", "", text)[:300]


# --- the machine -------------------------------------------------------------


def ask_nvidia():
    """(name, driver) of the first card, or None."""
    if shutil.which("nvidia-smi") is None:
        return None
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        status, out, _ = run(query, 30)
    except Failed:
        return None
    lines = out.strip().splitlines()
    if status != 0 or not lines or "," not in lines[0]:
        return None
    name, driver = (part.strip() for part in lines[0].split(",", 1))
    return name, driver


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def machine_of(device):
    """What a figure is from. A device of type cuda without a card of NVIDIA's
    is the stand-in of the tests, whose figures say nothing of any card."""
    card = ask_nvidia()
    is_cuda = device.startswith("cuda")
    has_card = card is not None or os.path.exists("/dev/nvidiactl")
    name, driver = card if card and is_cuda else (None, None)
    stands = is_cuda and not has_card
    return {
        "device": "stand-in" if stands else device,
        "rehearsal": not is_cuda or stands,
        "card": name,
        "driver": driver,
        "processor": f"{processor()}, {os.cpu_count()} cores",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
    }


# --- a part ------------------------------------------------------------------


class Part:
    """Figures, and where they go."""

    def __init__(self, number, title, seconds, options, needs_card=True):
        self.number = number
        self.title = title
        self.options = options
        self.device = options.device
        self.tiny = options.tiny
        self.seconds = seconds
        self.until = time.monotonic() + seconds
        self.begin = time.monotonic()
        self.is_of_device = needs_card
        self.free_bytes = None
        self.machine = machine_of(options.device if needs_card else "cpu:0")
        if not needs_card:
            self.machine["rehearsal"] = bool(options.tiny)
        self.figures = []
        self.notes = []
        self.skipped = []
        self.errors = []

    def look_at_device(self):
        """Where a card is there, the driver that is used may be the stand-in all
        the same: its device says so."""
        device = self.device_of_tool() if self.is_of_device else None
        self.free_bytes = device["free_bytes"] if device else None
        if device and "stand-in" in device["description"].lower():
            self.machine.update(device="stand-in", rehearsal=True, card=None,
                                driver=None)

    def device_of_tool(self):
        """What `tarn devices` has to say of the device; None: it has not got it."""
        status, out, _ = self.run([self.options.tool, "devices", "-o", "json"], 60)
        if status not in (0, 1) or not out.strip():
            return None
        for device in json.loads(out)["devices"]:
            if device["device"] == self.device:
                return device
        return None

    # What it may take.

    def build(self):
        """What is built is for all parts, and of no part's time."""
        begin = time.monotonic()
        left_out = build(self.options)
        took = time.monotonic() - begin
        if left_out:
            self.errors.append(left_out)
        if took > 10:
            self.figure("build", took, "s")
        self.until = time.monotonic() + self.seconds

    def left(self):
        return self.until - time.monotonic()

    def run(self, words, seconds=LIMIT, env=None):
        if self.left() < 1:
            raise Failed(f"{short(words)}: the part's time is over")
        return run(words, min(seconds, self.left()), env)

    def tarn(self, *words, seconds=LIMIT, statuses=(0, 1), env=None):
        """The JSON of a command of the tool, in which a missed measurement is a
        row of its own; |self.said| is what it had to say of those."""
        command = [self.options.tool, *words, "-o", "json"]
        status, out, err = self.run(command, seconds, env)
        if status not in statuses or not out.strip():
            raise Failed(f"tarn {words[0]} {words[1]}: {last_line(err or out)}")
        self.said = last_line(err) if status == 1 else None
        try:
            return json.loads(out)
        except ValueError:
            raise Failed(f"tarn {words[0]} {words[1]}: no JSON: {last_line(out)}")

    def python(self, script, *words, seconds=LIMIT, env=None):
        """The JSON of a script beside this one, by the Python that has PyTorch."""
        command = [self.options.python, os.path.join(HERE, script), *words]
        status, out, err = self.run(command, seconds, env)
        if status != 0:
            raise Failed(f"{script}: {python_error(err)}")
        return json.loads(out.strip().splitlines()[-1])

    # What it has to say.

    def figure(self, name, value, unit, goal=None, least=True, hardware=None,
               peer=None):
        """|goal|: the least, or else the most, that the value may be. |hardware|
        and |peer|: the value over what the hardware does, and over the peer."""
        met = None
        if goal is not None and value is not None:
            met = value >= goal if least else value <= goal
        self.figures.append({
            "name": name,
            "value": value,
            "unit": unit,
            "goal": goal,
            "bound": None if goal is None else "at least" if least else "at most",
            "ratio_to_hardware": hardware,
            "ratio_to_peer": peer,
            "met": met,
        })

    def note(self, text):
        self.notes.append(text)

    def skip(self, what, why):
        self.skipped.append({"what": what, "why": without_folders(str(why))})

    def lacks(self, what, why):
        """What a card's machine must have and a rehearsal need not."""
        if self.machine["rehearsal"]:
            self.skip(what, why)
        else:
            self.errors.append(f"{what}: {without_folders(str(why))}")

    def step(self, work, *arguments):
        """One thing of several: if it fails, the others go on. What there is
        then stays, should this program be ended from outside."""
        try:
            return work(*arguments)
        except Failed as error:
            self.errors.append(str(error))
        except Exception as error:  # a fault of this program's: told, not hidden
            name = getattr(work, "__name__", "step")
            self.errors.append(f"{name}: {type(error).__name__}: {error}")
        finally:
            self.write(self.options.out, ["the part was ended before its end"])
        return None

    def write(self, folder, more_errors=()):
        answer = {
            "part": self.number,
            "title": self.title,
            **self.machine,
            "seconds": round(time.monotonic() - self.begin, 1),
            "figures": self.figures,
            "notes": self.notes,
            "skipped": self.skipped,
            "errors": [*self.errors, *more_errors],
        }
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"part{self.number}.json")
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(answer, file, indent=1)
            file.write("\n")
        os.replace(path + ".new", path)
        return not self.errors


# --- the build ---------------------------------------------------------------


BUILD_LIMIT = 300  # seconds


def build(options):
    """Builds the release without tests where there is no tool yet. What cannot
    be built is no failure while the tool can: it is returned as text."""
    tool = options.tool
    if os.path.exists(tool):
        return None
    begin = time.monotonic()
    configure = [
        "cmake", "-S", ROOT, "-B", options.build, "-G", "Ninja",
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DTARN_BUILD_TESTS=OFF",
        "-DTARN_BUILD_EXAMPLES=OFF",
    ]
    status, out, err = run(configure, BUILD_LIMIT)
    if status != 0:
        raise Failed(f"cmake: {last_line(err or out)}")
    rest = BUILD_LIMIT - (time.monotonic() - begin)
    status, out, _ = run(["ninja", "-C", options.build, "-k", "0"], rest)
    if status == 0:
        return None
    failed = re.findall(r"^FAILED: (?:\[[^]]*\] )?(\S+)", out, re.MULTILINE)
    text = "not built: " + ", ".join(failed[:5] or [last_line(out)])
    if not os.path.exists(tool):
        raise Failed(text)
    return text


def compile_shared(part, words, source, name):
    """A shared object or a program out of a file beside this one."""
    folder = os.path.join(part.options.build, "gpu")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    command = [*words[:1], "-O2", "-I", ROOT, "-I", os.path.join(ROOT, "include"),
               os.path.join(HERE, source), "-o", path, *words[1:]]
    status, out, err = part.run(command, 120)
    if status != 0:
        errors = [line for line in err.splitlines() if "error" in line]
        raise Failed(f"{source}: {last_line(chr(10).join(errors[:1]) or err or out)}")
    return path


def compiler(names):
    for name in names:
        if shutil.which(name):
            return name
    raise Failed(f"no compiler here: {', '.join(names)}")


def say(text):
    print(text, file=sys.stderr, flush=True)

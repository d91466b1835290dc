"""The Spark session as a user meets it: quiet, clean, and clear about what is wrong."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scapy_zenoh.pipeline import spark
from scapy_zenoh.pipeline.errors import PipelineError
from scapy_zenoh.pipeline.java import java_home
from scapy_zenoh.pipeline.spark import one_line, session
from tests.pipeline.cluster import KILLED, run


def complaint(ask: Callable[..., object], *arguments: str) -> str:
    """What is said in one line where there can be no session."""
    with pytest.raises(PipelineError) as caught:
        ask(*arguments)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def refusal(master: str) -> str:
    """What is said of a master. Not asked of ``session``, which takes the one that other tests have started."""
    return complaint(spark._check_master, master)


@pytest.mark.spark
@pytest.mark.slow
def test_local_job_survives_a_killed_worker_and_leaves_nothing_behind(spark_ready: None, tmp_path: Path) -> None:
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    here.mkdir()
    temporary.mkdir()
    # The user's shell has another Python for Spark, and a time zone that is not UTC.
    variables = {"TMPDIR": str(temporary), "PYSPARK_PYTHON": "/bin/false", "TZ": "Asia/Tokyo"}
    done = run(sys.executable, "-c", KILLED, cwd=here, **variables)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "ids": list(range(200)),
        "retried": list(range(50)),
        "pythons": [sys.executable],
        "memories": 1,
        "master": "local[*,4]",
        "driver": "127.0.0.1",
        "zone": "1970-01-01 00:00:00",
        "same": True,
        "environment": ["/bin/false", None, None],
    }
    only, *more = done.stderr.splitlines()  # of the worker that was killed; Spark started without a word
    assert "Python worker exited unexpectedly" in only
    assert more == []
    assert list(here.iterdir()) == []
    assert [entry.name for entry in temporary.iterdir() if "warehouse" in entry.name] == []


@pytest.mark.spark
@pytest.mark.slow
def test_spark_submit_decides_about_the_master(spark_ready: None, tmp_path: Path) -> None:
    import pyspark

    program = tmp_path / "run.py"
    program.write_text(
        "from scapy_zenoh.pipeline.spark import session\n"
        "spark = session('spark://127.0.0.1:1', **{'spark.app.name': 'ours', 'spark.sql.session.timeZone': 'UTC'})\n"
        "print(spark.sparkContext.master, spark.sparkContext.appName, spark.conf.get('spark.sql.session.timeZone'))\n"
    )
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    options = ["--master", "local[1]", "--name", "theirs", "--conf", "spark.ui.enabled=false"]
    variables = {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable}
    done = run(submit, *options, str(program), cwd=tmp_path, **variables)
    assert (done.returncode, done.stdout) == (0, "local[1] theirs UTC\n"), done.stderr


@pytest.mark.spark
def test_java_that_cannot_start_spark_is_one_error(spark_ready: None, tmp_path: Path) -> None:
    code = (
        "from scapy_zenoh.pipeline.spark import PipelineError, session\n"
        "try:\n    session(**{'spark.driver.memory': 'much'})\nexcept PipelineError as error:\n    print(error)\n"
    )
    done = run(sys.executable, "-c", code, cwd=tmp_path)
    assert done.stdout.startswith("Java did not start Spark: "), done
    assert len(done.stdout.splitlines()) == 1


# --- complaints that need no Java ---------------------------------------------------------------


def test_missing_spark_is_told_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert complaint(session).endswith("pip install 'scapy-zenoh[spark]'")


def test_old_spark_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytest.importorskip("pyspark"), "__version__", "3.5.9")
    assert complaint(session) == "tables need Spark 4.1 or newer, not 3.5.9"


@pytest.mark.parametrize(
    "master", ["", "nonsense", "local[", "local[0x]", "spark://host", "sc://host", "http://host:1"]
)
def test_nonsense_is_no_master(master: str) -> None:
    assert refusal(master).startswith(f"{master!r} is no Spark master (such as local[*], ")


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[*,4]", "yarn", "k8s://https://host:443"])
def test_masters_of_every_kind_are_accepted(master: str) -> None:
    spark._check_master(master)


def test_one_master_of_several_must_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        spark._check_master(f"spark://127.0.0.1:1,127.0.0.1:{server.getsockname()[1]}")


def test_master_that_does_not_answer_is_told_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    assert refusal(master) == f"the Spark master {master} cannot be reached (127.0.0.1:{port}: Connection refused)"
    assert "(host.invalid:7077: " in refusal("spark://host.invalid:7077")
    assert "(127.0.0.1:99999: " in refusal("spark://127.0.0.1:99999")


@pytest.mark.parametrize(
    "text, line",
    [
        ("", "Exception"),
        ("one\ntwo", "one"),
        (
            "An error occurred while calling None.X.\n: org.apache.spark.SparkException: no such thing\n\tat a.b",
            "SparkException: no such thing",
        ),
        (
            "Aborted\n: org.a.SparkException: Job\n\tat a.b\nCaused by: java.io.IOException: disk full\n\t... 3 more",
            "IOException: disk full",
        ),
        (
            "[PYTHON] thrown:\nTraceback (most recent call last):\n  File a\nValueError: no good\n SQLSTATE: 1",
            "ValueError: no good",
        ),
        (
            "[PYTHON] No plan: Traceback (most recent call last):\n  File a\na.b.PipelineError: c: no such file\n",
            "a.b.PipelineError: c: no such file",
        ),
    ],
)
def test_errors_of_spark_become_the_line_that_matters(text: str, line: str) -> None:
    assert one_line(Exception(text)) == line

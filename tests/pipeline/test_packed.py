"""Packed packages on a cluster, as docs/cluster.md says: workers run what is in the archive, with the same result."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scapy_zenoh.generate import generate
from scapy_zenoh.pipeline.java import java_home
from scapy_zenoh.synthetic.shape import Shape
from tests.pipeline.cluster import HASTE, ROOT, Cluster, run
from tests.pipeline.packed import pack

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BARE_PYTHON = getattr(sys, "_base_executable", sys.executable)  # without the packages of the virtual environment


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of somebody who submits: the archive, and the same unpacked for the driver."""
    subprocess.run([sys.executable, "-m", "scapy_zenoh.compilation"], cwd=ROOT, check=True)
    folder = tmp_path_factory.mktemp("submit")
    pack(folder / "deps.tar")
    (folder / "deps").mkdir()
    subprocess.run(["tar", "-xf", "deps.tar", "-C", "deps"], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captures")
    generate(Shape(messages=20_000, sessions=6), folder / "large.pcap")
    (folder / "large.truth.json").unlink()
    shutil.copy(ROOT / "samples" / "query.pcapng", folder)
    return folder


def submit(cluster: Cluster, place: Path, *arguments: str) -> str:
    """What the command prints that is submitted to the cluster."""
    import pyspark

    home = Path(pyspark.__file__).parent
    options = {
        "spark.executorEnv.PYTHONPATH": "deps",
        "spark.executorEnv.NUMBA_DEBUG_CACHE": "1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.cores.max": "2",
        "spark.scheduler.minRegisteredResourcesRatio": "1",  # of these: wait for both executors
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
        "spark.executor.extraJavaOptions": HASTE,
    }
    command = [str(home / "bin" / "spark-submit"), "--master", cluster.master, "--archives", "deps.tar#deps"]
    for key, value in options.items():
        command += ["--conf", f"{key}={value}"]
    variables = {"SPARK_HOME": str(home), "JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": BARE_PYTHON}
    done = run(*command, "deps/scapy_zenoh/__main__.py", *arguments, cwd=place, PYTHONPATH="deps", **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_tables_are_made_by_what_is_in_the_archive(
    cluster: Cluster, place: Path, captures: Path, tmp_path: Path
) -> None:
    for module in ("scapy_zenoh", "pyarrow", "pyspark"):  # so that nothing else could be what was used
        missing = subprocess.run([BARE_PYTHON, "-c", f"import {module}"], cwd=place, capture_output=True)
        assert b"ModuleNotFoundError" in missing.stderr
    output = tmp_path / "tables"
    shown = submit(cluster, place, "tables", str(captures), "-o", str(output), "--split", "500K")
    assert str(output) in shown
    for name in ("large.pcap", "query.pcapng"):
        assert rows(output, name) == expected(captures / name)

    logs = [path for path in cluster.folder.glob("work*/app-*/*/stderr") if "[cache]" in path.read_text()]
    assert len(logs) == 2
    for log in logs:
        told = log.read_text()
        assert f"data loaded from '{log.parent}/deps/scapy_zenoh/bulk/__pycache__/engine.run-" in told
        assert "saved to" not in told  # all compiled code was in the archive


def expected(capture: Path) -> list[dict[str, Any]]:
    from scapy_zenoh import to_table

    found: list[dict[str, Any]] = to_table(capture).to_pylist()
    return found


def rows(output: Path, capture: str) -> list[dict[str, Any]]:
    """The messages of a capture as they were read."""
    import pyarrow.dataset as ds

    from scapy_zenoh.schema.columns import COLUMNS

    messages = ds.dataset(output / "messages", partitioning="hive").to_table(filter=ds.field("capture") == capture)
    found: list[dict[str, Any]] = messages.sort_by("row").select([column.name for column in COLUMNS]).to_pylist()
    return found

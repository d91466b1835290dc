"""A Spark cluster on loopback: a standalone master and two workers, each a process of its own, as on many machines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from scapy_zenoh.pipeline.java import java_home

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0  # seconds for a process to start; it takes three on an idle machine
#: Java that starts soon rather than runs fast.
HASTE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"

#: A program that does a job on the master it is given, if any, and tells what it saw. Partition 0 dies in the middle of
#: its first attempt, after a batch of rows; each row tells which attempt made it, by which Python.
KILLED = """
import json, os, sys
from scapy_zenoh.pipeline.spark import session

def work(batches):
    import os, signal, sys
    import pyarrow
    import scapy_zenoh
    from pyspark import TaskContext
    assert not any(name.partition(".")[0] == "scapy" for name in sys.modules), "Scapy in a worker"
    task = TaskContext.get()
    told = [task.attemptNumber(), sys.executable]
    for batch in batches:
        columns = [batch.column(0), *(pyarrow.array([value] * batch.num_rows) for value in told)]
        yield pyarrow.RecordBatch.from_arrays(columns, ["id", "attempt", "python"])
        if task.partitionId() == 0 and task.attemptNumber() == 0:
            os.kill(os.getpid(), signal.SIGKILL)

conf = {"spark.sql.execution.arrow.maxRecordsPerBatch": "10"}
if sys.argv[1:]:
    conf["spark.driver.host"] = "127.0.0.1"
    conf["spark.cores.max"] = "2"
    conf["spark.scheduler.minRegisteredResourcesRatio"] = "1"  # of these: wait for both executors
    conf["spark.scheduler.maxRegisteredResourcesWaitingTime"] = "300s"
    conf["spark.executor.extraJavaOptions"] = os.environ["SPARK_SUBMIT_OPTS"]
spark = session(*sys.argv[1:], **conf)
kind = "id long, attempt long, python string"
rows = spark.range(200, numPartitions=4).mapInArrow(work, kind).collect()
print(json.dumps({
    "ids": sorted(row.id for row in rows),
    "retried": sorted(row.id for row in rows if row.attempt > 0),
    "pythons": sorted({row.python for row in rows}),
    "memories": spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size(),  # of the driver and each executor
    "master": spark.sparkContext.master,
    "driver": spark.conf.get("spark.driver.host"),
    "zone": spark.sql("select cast(timestamp_seconds(0) as string) as t").first().t,
    "same": session("local[7]") is spark,
    "environment": [os.environ.get(name) for name in ("PYSPARK_PYTHON", "SPARK_LOCAL_IP", "SPARK_DRIVER_MEMORY")],
}))
"""


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs: the URL of its master, and the folder with the logs of its processes."""

    master: str
    folder: Path


def environment() -> dict[str, str]:
    """The environment of a user with this checkout, and nothing of Spark set but that Java starts soon."""
    ours = {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore::FutureWarning", "SPARK_SUBMIT_OPTS": HASTE}
    spark = ("SPARK_", "PYSPARK_")
    return {**{name: value for name, value in os.environ.items() if not name.startswith(spark)}, **ours}


def run(*command: str, cwd: Path, timeout: float = 300, **variables: str) -> subprocess.CompletedProcess[str]:
    """A program as a user runs it, in a folder of its own."""
    settings = {**environment(), **variables}
    return subprocess.run(command, cwd=cwd, env=settings, capture_output=True, text=True, timeout=timeout, check=False)


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2, memory: str = "1g") -> Iterator[Cluster]:
    """A master and its workers, with one core each; they end with the context."""
    variables = {
        **environment(),
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": HASTE,
    }
    del variables["PYTHONPATH"]  # workers import what their Python has
    with ExitStack() as processes:
        host = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        master = folder / "master.log"
        alive = processes.enter_context(_daemon("master.Master", host, master, variables))
        url = _wait_for(r"Starting Spark master at (spark://\S+)", master, alive)
        _wait_for(r"I have been elected leader", master, alive)
        waiting = []
        for number in range(workers):
            log, work = folder / f"worker{number}.log", folder / f"work{number}"
            mine = {**variables, "SPARK_LOCAL_DIRS": str(work / "local")}
            arguments = [*host, "--cores", "1", "--memory", memory, "--work-dir", str(work), url]
            waiting.append((log, processes.enter_context(_daemon("worker.Worker", arguments, log, mine))))
        for log, alive in waiting:
            _wait_for(r"Successfully registered with master", log, alive)
        yield Cluster(url, folder)


@contextmanager
def _daemon(name: str, arguments: list[str], log: Path, variables: Mapping[str, str]) -> Iterator[Callable[[], bool]]:
    """A process of Spark that writes to ``log``; gives a function that says whether it still runs."""
    import pyspark

    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
    config = log.with_suffix(".conf")  # Spark itself would log warnings only
    config.mkdir()
    (config / "log4j2.properties").write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.stderr.ref = stderr\nappender.stderr.type = Console\n"
        "appender.stderr.name = stderr\nappender.stderr.target = SYSTEM_ERR\n"
        "appender.stderr.layout.type = PatternLayout\nappender.stderr.layout.pattern = %p %c{1}: %m%n%ex\n"
    )
    settings = {**variables, "SPARK_HOME": str(home), "SPARK_CONF_DIR": str(config)}
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=log.parent, env=settings, stdout=output, stderr=output)
    try:
        yield lambda: process.poll() is None
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(pattern: str, log: Path, alive: Callable[[], bool]) -> str:
    """The first group of the first match in a log, or all of the match."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and alive():
        if found := re.search(pattern, log.read_text(errors="replace")):
            return found[found.re.groups and 1]
        time.sleep(0.1)
    raise AssertionError(f"{log.name} does not say {pattern!r}:\n{log.read_text(errors='replace')[-2000:]}")

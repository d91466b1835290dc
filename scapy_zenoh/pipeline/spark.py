"""The Spark session: the one that is there, or one for this machine that starts quietly and leaves nothing behind."""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from scapy_zenoh.pipeline.errors import PipelineError
from scapy_zenoh.pipeline.interrupts import cancelling, deferred
from scapy_zenoh.pipeline.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Every task may be tried four times: one killed worker must not fail the job. ``local[*]`` would try once.
DEFAULT_MASTER = "local[*,4]"

#: ``DataFrame.repartitionById`` came with it.
OLDEST_SPARK = (4, 1)

_MASTERS = r"local(\[([1-9]\d*|\*)(,[1-9]\d*)?\])?|local-cluster\[.+\]|spark://[^/]+:\d+|yarn|k8s://.+"
_REACHED_WITHIN = 5.0  # seconds; Spark itself tries for a minute
_GB = 1 << 30


def session(master: str | None = None, **conf: str) -> SparkSession:
    """The Spark session to work with.

    A session that is active is used as it is, as in notebooks. Under ``spark-submit`` and Spark Connect the environment
    decides: there ``master`` counts for nothing, and ``conf`` only where nothing else is set. Otherwise Spark is
    started here with ``master``, which is ``local[*,4]`` unless ``spark-defaults.conf`` says otherwise, and with
    ``conf``, whose keys are those of Spark: ``session("local[2]", **{"spark.driver.memory": "4g"})``.
    """
    spark = _active()
    if spark is not None:
        return spark
    if _is_decided():
        return _start(_filled(conf, {}))
    _check_master(master)
    local = (master or DEFAULT_MASTER).startswith("local")
    shell = {"spark.app.name": "scapy-zenoh", "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower()}
    asked = {**shell, **conf}  # `shell`: what Spark would choose as for its own shell
    if master is not None:
        asked["spark.master"] = master
    with _environment(_for_launch(local)), deferred():
        _launch(asked)
        conf = _filled(asked, _defaults(local))
        with ThreadPoolExecutor(1) as other:  # Spark does not listen to Ctrl-C there, see `cancelling`
            other.submit(_start, conf).result()
        spark = _start({})
    cancelling(spark)
    return spark


def one_line(error: BaseException) -> str:
    """The line of an exception that says what happened; those of Spark bring the stacks of Java and Python along."""
    lines = [line.rstrip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    python = [line for line in lines if re.match(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit)(: |$)", line)]
    java = [line for line in lines if re.match(r"(: |Caused by: )[\w.$]+(Exception|Error)\b", line)]
    if any(line.endswith("Traceback (most recent call last):") for line in lines) and python:
        return python[-1]
    line = java[-1].removeprefix(": ").removeprefix("Caused by: ") if java else lines[0]
    return re.sub(r"^(?:[\w$]+\.)+([\w$]+: )", r"\1", line)


# --- what is there ------------------------------------------------------------------------------


def _active() -> SparkSession | None:
    """The session of this process, whichever thread made it."""
    try:
        import pyspark
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise PipelineError(f"tables need Spark ({error}): pip install 'scapy-zenoh[spark]'") from error
    version = tuple(int(number) for number in re.findall(r"\d+", pyspark.__version__)[:2])
    if version < OLDEST_SPARK:
        raise PipelineError(f"tables need Spark {'.'.join(map(str, OLDEST_SPARK))} or newer, not {pyspark.__version__}")
    spark = SparkSession.getActiveSession()
    if spark is None and not _is_remote():
        from pyspark import SparkContext

        if SparkContext._active_spark_context is not None:
            spark = SparkSession.builder.getOrCreate()
    return spark


def _is_decided() -> bool:
    """Whether somebody else chose the master: spark-submit, or a server of Spark Connect."""
    return "PYSPARK_GATEWAY_PORT" in os.environ or _is_remote()


def _is_remote() -> bool:
    return any(name in os.environ for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"))


def _check_master(master: str | None) -> None:
    """Complain about a master that is none, or that does not answer; Spark would take a minute and many lines."""
    if master is None:
        return
    if not re.fullmatch(_MASTERS, master):
        known = "local[*], local[2,4], spark://host:7077, yarn, k8s://host:443"
        raise PipelineError(f"{master!r} is no Spark master (such as {known})")
    if not master.startswith("spark://"):
        return
    reasons = []
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=_REACHED_WITHIN):
                return
        except (OSError, OverflowError, ValueError) as error:
            reasons.append(f"{place}: {error.strerror or error if isinstance(error, OSError) else error}")
    raise PipelineError(f"the Spark master {master} cannot be reached ({'; '.join(reasons)})")


# --- starting -----------------------------------------------------------------------------------


def _launch(conf: Mapping[str, str]) -> None:
    """Start Java; a later session of this process uses the same."""
    from pyspark import SparkConf, SparkContext

    first = SparkConf(loadDefaults=False)
    for key, value in conf.items():
        first.set(key, value)
    try:
        SparkContext._ensure_initialized(conf=first)
    except Exception as error:
        raise PipelineError(f"Java did not start Spark: {one_line(error)}") from error


def _filled(conf: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """``conf``, what spark-submit and spark-defaults.conf leave open of it, and of ``defaults``."""
    if _is_remote():
        return dict(conf)
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    there = dict(SparkConf().getAll())
    if _is_decided():
        return {key: value for key, value in conf.items() if key not in there}
    if "spark.master" not in conf and there.get("spark.master") == "local[*]":  # what Spark takes unless told
        del there["spark.master"]
    return {**{key: value for key, value in defaults.items() if key not in there}, **conf}


def _start(conf: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except Exception as error:
        raise PipelineError(f"Spark did not start: {one_line(error)}") from error


def _defaults(local: bool) -> dict[str, str]:
    """The configuration where nobody says otherwise."""
    everywhere = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.catalogImplementation": "in-memory",  # Hive's leaves its files in the current folder
    }
    if not local:
        return everywhere
    return {
        **everywhere,
        "spark.master": DEFAULT_MASTER,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": tempfile.gettempdir(),
        "spark.sql.warehouse.dir": _warehouse(),
        # Streams use as many as this, with state in each; batches start with more and adapt.
        "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
        "spark.sql.adaptive.coalescePartitions.initialPartitionNum": "128",
    }


def _for_launch(local: bool) -> dict[str, str]:
    """The environment for Java and Spark's Python; what the user set stays, but for the Python of a local master."""
    wanted = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    if local:
        # Without an address of its own Spark looks for that of the host name, which not every container knows.
        wanted |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DRIVER_MEMORY": f"{_memory_for_java() >> 20}m"}
    if "SPARK_CONF_DIR" not in os.environ:
        log = Path(__file__).with_name("log4j2.properties")
        option = shlex.quote(f"-Dlog4j2.configurationFile={log.as_uri()}")
        wanted["SPARK_SUBMIT_OPTS"] = f"{option} {os.environ.get('SPARK_SUBMIT_OPTS', '')}".strip()
    ours = {"SPARK_SUBMIT_OPTS", *(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON") if local else ())}
    chosen = {name: value for name, value in wanted.items() if name in ours or name not in os.environ}
    return {**chosen, "JAVA_HOME": str(java_home())}


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for as long as Spark starts."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _warehouse() -> str:
    """A folder for what Spark would put into ``spark-warehouse`` in the current folder; it goes with this process."""
    folder = tempfile.mkdtemp(prefix="scapy-zenoh-warehouse-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _memory_for_java() -> int:
    """A quarter of the memory, but 1 to 8 GB: the work is done by Python processes beside it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no limit for the container, or not Linux
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(max(memory // 4, _GB), 8 * _GB)

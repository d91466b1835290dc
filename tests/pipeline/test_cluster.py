"""A job on a cluster outlives a worker that is killed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.pipeline.cluster import KILLED, Cluster, run

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_job_on_a_cluster_survives_a_killed_worker(cluster: Cluster, tmp_path: Path) -> None:
    done = run(sys.executable, "-c", KILLED, cluster.master, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["ids"] == list(range(200))
    assert told["retried"] == list(range(50))
    assert told["memories"] == 3
    assert told["master"] == cluster.master
    assert list(tmp_path.iterdir()) == []

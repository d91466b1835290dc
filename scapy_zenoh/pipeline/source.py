"""Captures as a data source of Spark: ``spark.read.format("zenoh").load("captures/")`` gives messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from scapy_zenoh.pipeline.captures import each, find, together
from scapy_zenoh.pipeline.errors import PipelineError
from scapy_zenoh.pipeline.schema import struct
from scapy_zenoh.pipeline.stretch import (
    Options,
    Stretch,
    plain,
    plan,
    read,
    split_size,
    worth_compiling,
)
from scapy_zenoh.schema.tables import RECORDING, TABLES

#: The options of the source.
OPTIONS = ("path", "paths", "ports", "keylog", "payload", "recording", "split", "partitions")


def register(spark: SparkSession) -> None:
    """Let Spark know the format ``zenoh``."""
    spark.dataSource.register(ZenohSource)


class ZenohSource(DataSource):
    """Messages of captures. Options: ports, keylog, payload, recording, split, partitions."""

    @classmethod
    def name(cls) -> str:
        return "zenoh"

    def schema(self) -> StructType:
        return struct((*TABLES["messages"], RECORDING))

    def reader(self, schema: StructType) -> DataSourceReader:
        return ZenohReader(Request.of(self.options))


@dataclass(frozen=True)
class Request:
    """What is asked for with ``option`` and ``load``."""

    places: tuple[str, ...]
    options: Options
    recording: bool
    split: int | None
    partitions: int | None

    @classmethod
    def of(cls, texts: Any) -> Request:
        """The options of Spark, whose names come in any case and whose values are text."""
        given = {name.lower(): value for name, value in dict(texts).items()}
        unknown = sorted(set(given) - set(OPTIONS))
        if unknown:
            raise PipelineError(f"format zenoh has no option {unknown[0]!r} (it has {', '.join(OPTIONS[2:])})")
        places = json.loads(given.get("paths", "[]")) or [given.get("path")]
        if None in places:
            raise PipelineError('format zenoh reads files: load("captures/")')
        asked = cls(
            tuple(places),
            Options(
                tuple(_number("ports", port, 65535) for port in given.get("ports", "").replace(",", " ").split()),
                given.get("keylog"),
                _flag("payload", given.get("payload", "true")),
            ),
            _flag("recording", given.get("recording", "false")),
            _number("split", given["split"]) if "split" in given else None,
            _number("partitions", given["partitions"]) if "partitions" in given else None,
        )
        return replace(asked, options=asked.options.checked())


def _number(name: str, text: str, most: int = 1 << 62) -> int:
    if not text.strip().isdigit() or not 0 < int(text) <= most:
        raise PipelineError(f"option {name}: {text!r} is no number from 1 to {most}")
    return int(text)


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise PipelineError(f"option {name}: {text!r} is neither true nor false")
    return text.lower() == "true"


class Work(InputPartition):
    """What one task reads."""

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        self.stretches = stretches


class ZenohReader(DataSourceReader):
    """Plans the tasks where Spark plans the query, and reads in them."""

    def __init__(self, request: Request) -> None:
        self.request = request

    def partitions(self) -> Sequence[InputPartition]:
        """Small captures together, large ones in stretches."""
        asked = self.request
        paths = find(asked.places)
        recordings = [together(paths, asked.places)] if asked.recording else each(paths)
        every = split_size(recordings, asked.split, asked.partitions)
        return [Work(task) for task in plan(recordings, asked.options, every)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The messages of a task."""
        assert isinstance(partition, Work)
        compiled = worth_compiling(partition.stretches, self.request.options)
        for stretch in partition.stretches:
            for table, batch in read(stretch, self.request.options, compiled):
                if table == "messages":
                    rows, name = plain(batch), pa.repeat(stretch.captures.name, batch.num_rows)
                    yield pa.record_batch([*rows.columns, name], names=[*rows.schema.names, RECORDING.name])

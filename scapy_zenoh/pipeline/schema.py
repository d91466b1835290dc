"""The tables as Spark sees them: types and comments from ``schema.tables``."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import types as spark

from scapy_zenoh.schema.columns import Column, Type
from scapy_zenoh.schema.tables import DATE, OF_MESSAGES, RECORDING, TABLES

_TYPES: dict[Type, spark.DataType] = {
    "text": spark.StringType(),
    "texts": spark.ArrayType(spark.StringType()),
    "bytes": spark.BinaryType(),
    "bool": spark.BooleanType(),
    "int8": spark.ByteType(),
    "int32": spark.IntegerType(),
    "int64": spark.LongType(),
    "number": spark.DecimalType(20, 0),
    "instant": spark.TimestampType(),
    "date": spark.DateType(),
}


def struct(columns: Sequence[Column]) -> spark.StructType:
    """Columns as a Spark schema, with what they mean as comments."""
    return spark.StructType([spark.StructField(c.name, _TYPES[c.type], True, {"comment": c.about}) for c in columns])


def of_table(name: str) -> spark.StructType:
    """The schema of a table in a folder of tables: its columns, and those that are names of folders."""
    folders = (DATE, RECORDING) if name in OF_MESSAGES else (RECORDING,)
    return struct((*TABLES[name], *folders))

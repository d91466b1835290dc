"""What can go wrong before the first row: no Java, no Spark, no such master, no such input."""

from __future__ import annotations


class PipelineError(Exception):
    """The pipeline cannot start or go on: one line that says what is missing or wrong and what helps."""

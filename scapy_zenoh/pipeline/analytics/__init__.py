"""Questions to the tables: each a function from DataFrames to a DataFrame, to be computed when it is looked at.

``tables = read_tables(spark, folder)`` gives the tables by name; ``key_rates(tables["messages"]).show()`` asks. The
docstring of each function says what a row is. All have ``recording``; times are ns since 1970, durations ns, unless
their name says otherwise; rows have no order. What a recording does not show is null.
"""

from scapy_zenoh.pipeline.analytics.latency import (
    clock_drift,
    delivery_latency,
    hop_latency,
    query_latency,
    query_times,
)
from scapy_zenoh.pipeline.analytics.loss import incomplete_fragments, lane_loss, lease_margins
from scapy_zenoh.pipeline.analytics.routes import routing, unused_declarations
from scapy_zenoh.pipeline.analytics.samples import key_rates, publisher_rates, sample_flows, samples
from scapy_zenoh.pipeline.analytics.topology import edges, nodes
from scapy_zenoh.pipeline.analytics.traffic import key_overhead, traffic_classes, wire_overhead

__all__ = [
    "clock_drift",
    "delivery_latency",
    "edges",
    "hop_latency",
    "incomplete_fragments",
    "key_overhead",
    "key_rates",
    "lane_loss",
    "lease_margins",
    "nodes",
    "publisher_rates",
    "query_latency",
    "query_times",
    "routing",
    "sample_flows",
    "samples",
    "traffic_classes",
    "unused_declarations",
    "wire_overhead",
]

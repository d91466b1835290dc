"""From captured packets to rows: finds the Zenoh links, cuts them into batches and asks the session for names."""

from scapy_zenoh.follow.follower import Accounting, Follower

__all__ = ["Accounting", "Follower"]

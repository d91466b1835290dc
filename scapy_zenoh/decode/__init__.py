"""The decoder generated from the message classes: bytes of a batch in, one row of numbers per message out.

Nothing here imports Scapy or the message classes, except ``generator``, which writes ``_generated.py``.
"""

"""What a passive observer remembers: plain records in, names and findings out, no input or output.

Nothing here imports Scapy or the message classes; any decoder that fills a ``MessageRecord`` can feed it.
"""

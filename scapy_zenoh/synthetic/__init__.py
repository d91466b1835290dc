"""The parts of ``scapy-zenoh generate``: a shape, direct encoders, the packets of a link, the truth file.

No Scapy here: made traffic must come faster than anything that reads it.
"""

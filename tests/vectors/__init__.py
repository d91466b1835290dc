"""Byte vectors of other implementations, read and built here."""

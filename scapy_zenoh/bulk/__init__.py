"""Captures read in blocks of arrays, by compiled functions: for recordings of many gigabytes."""

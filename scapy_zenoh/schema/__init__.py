"""The neutral description of the messages, extracted from the classes, from which everything else is generated."""

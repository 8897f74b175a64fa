"""Helpers for developers: the browser and the running app that tests and benchmarks share."""

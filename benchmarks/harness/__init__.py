"""Measuring and reporting, shared by all benchmarks."""

"""Summaries, tables, Parquet and JSON of a run."""

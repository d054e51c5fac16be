"""Strategies for workloads that are never written out: blocks of questions over a few axes each."""

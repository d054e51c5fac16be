"""The experiments of the LRM paper (Figures 2 to 9) and of the COA paper (Figures 1 to 13), with tacit's strategies.

``python -m benchmarks.paper`` writes tables, pictures and a comparison in words; ``docs/papers.md`` reads them.
"""

"""The experiments of the LRM paper (Figures 2 to 9), the COA paper (Figures 1 to 14) and the matrix-mechanism talk.

``python -m benchmarks.paper`` writes tables, pictures and a comparison in words; ``docs/papers.md`` reads them.
"""

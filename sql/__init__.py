"""SQL text in, a workload matrix out; and the generated scan that builds the vector of unit counts."""

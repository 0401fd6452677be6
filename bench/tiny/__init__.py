"""The tiny work that the benchmarks share: one network, one data set, for Headway and for its peers."""

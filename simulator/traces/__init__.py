"""Jobs of real clusters: loaders for public traces, the peak of one of them, and a generator like it."""

"""Two sides of launches: interleaved, in rounds, or in nights of their own."""

"""Two sides of launches: made in turn, in rounds, or in nights of their own."""

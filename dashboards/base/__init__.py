"""Parts that all figures share: views, series, the theme, and filters of a store."""

"""What every figure is made of: views, series, theme, selection."""

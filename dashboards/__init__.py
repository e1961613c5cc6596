"""What people look at. Importing this loads nothing heavy."""

"""The dialects of other tools: their names, their texts, and the readers that import their files into the store.

``parse.parse`` turns a file's bytes into tables and problems and has no side effects; ``storing.store_bytes`` writes
the valid tables. A reader of a text format gets the lines from one of its titles up to the next title of another tool.
"""

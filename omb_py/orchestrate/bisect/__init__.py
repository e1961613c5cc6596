"""Which commit made a program slower? A bisection of a git history that decides by verdicts."""

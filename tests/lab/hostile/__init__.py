"""What strangers and accidents send: junk between the rows of logs, command lines that nobody means."""

"""The project as web pages: one folder that opens from disk or from any host, without third-party
scripts or fonts and without a network."""

"""The project as web pages: one folder that works from a file and from any host, without scripts
or fonts of others and without a network."""

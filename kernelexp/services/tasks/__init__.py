"""Other people's problems and solutions, as they are: a module for each format, `task.py` says what
it has to offer. Problem and solution run in processes of their own, which `assessing.py` starts."""

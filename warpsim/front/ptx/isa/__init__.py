"""The PTX instructions, by area. Importing this fills the tables of front/ptx/registry.py."""

import importlib
import pkgutil

for _area in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_area.name}")

"""Renders results as text, markdown, CSV, JSON, charts and web pages.

Owns documents and their renderers (`document/`), charts (`charts/`), web pages (`site/`) and a room
per subject; imports services and what they import. Nothing here runs a kernel.
"""

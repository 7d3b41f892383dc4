"""Measurements of blocklang beside its peers. Each module is a command and prints Markdown.

Nothing here is imported by blocklang or by its tests' fast part.
"""

"""The time that kernels would take on a device that is not here."""

"""Errors of the southbound that are not the user's to mend."""


class SwitchError(Exception):
    """A switch did not do what it was asked; the text says which, what, and what it answered."""

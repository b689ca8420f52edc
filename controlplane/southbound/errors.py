"""Errors of the southbound that are not the user's to mend."""


class SwitchError(Exception):
    """A switch did not do what it was asked; the text says which, what, and what it answered."""


class LostPrimacyError(SwitchError):
    """The switch refused because another controller is its primary."""


class OverflowedError(SwitchError):
    """The status of a write did not fit its metadata: some of its updates failed, unknown which."""

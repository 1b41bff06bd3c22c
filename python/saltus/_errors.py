"""What goes wrong: input that cannot be understood raises, the fate of a run does not."""

from __future__ import annotations

from typing import Any

__all__ = ["Error", "ModelError", "UsageError", "FileError", "RunError", "Interrupted"]


class Error(ValueError):
    """Wrong input: what is wrong, where it stands, and what to do about it."""

    message: str
    hint: str
    file: str
    line: int
    column: int

    def __init__(self, report: str, message: str = "", hint: str = "", file: str = "", line: int = 0,
                 column: int = 0) -> None:
        super().__init__(report.rstrip("\n"))
        self.message, self.hint, self.file, self.line, self.column = message or report, hint, file, line, column

    def report(self) -> str:
        """Message, place, the line with a caret, and a remedy: what `str` gives."""
        return str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.message, self.hint, self.file, self.line, self.column)


class ModelError(Error):
    """A model that cannot be understood, or from which no run can start."""


class UsageError(Error):
    """An option or a value that does not fit."""


class FileError(Error):
    """A file that cannot be read or written."""


class RunError(RuntimeError):
    """Raised by `Trajectory.check()` where a run ended badly."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a computation; `result` holds what was there by then."""

    def __init__(self, result: Any) -> None:
        super().__init__("interrupted; the exception's .result holds what was computed")
        self.result = result


def usage(message: str, hint: str = "") -> UsageError:
    return UsageError(f"{message}\n{hint}" if hint else message, message, hint)

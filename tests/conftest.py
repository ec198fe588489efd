"""What all tests share: `.hlo` files are collected as text tests of passes."""

from tests.filecheck import pytest_collect_file

__all__ = ["pytest_collect_file"]

"""Runs every check of this folder against a daemon, through the published client.

Usage: client_test.py SCENARIO, where SCENARIO is a JSON file with the address of the daemon and the
contents of its lake. The exit code is 0 if all checks passed.
"""

import importlib.metadata
import unittest

from lake import SCENARIO

import test_changes
import test_docs
import test_drops
import test_errors


class Client(unittest.TestCase):
    def test_it_is_the_version_that_is_meant(self):
        version = importlib.metadata.version("pyhoglake")
        self.assertEqual(version, SCENARIO["version"])


def load_tests(loader, tests, pattern):
    for module in (test_changes, test_docs, test_drops, test_errors):
        tests.addTests(loader.loadTestsFromModule(module))
    return tests


if __name__ == "__main__":
    unittest.main()

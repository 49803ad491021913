"""Runs the Python snippets of the guide word for word, in the order of the guide."""

import os
import re
import unittest
from pathlib import Path

from lake import SCENARIO, Case
from pyhoglake.client import Table

FENCED = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PLACE = "http://127.0.0.1:8917"


class Docs(Case):
    @unittest.skipUnless(hasattr(Table, "truncate"), "the guide truncates")
    def test_each_snippet_of_the_guide_runs(self):
        guide = Path(SCENARIO["guide"]).read_text()
        snippets = FENCED.findall(guide)
        self.assertGreater(len(snippets), 4)
        self.assertIn(PLACE, snippets[0])
        os.environ["TAILRACE_TOKEN"] = SCENARIO["operator"]
        names = {}
        self.addCleanup(lambda: "client" in names and names["client"].close())
        for number, snippet in enumerate(snippets, 1):
            text = snippet.replace(PLACE, SCENARIO["url"])
            exec(compile(text, f"snippet {number} of the guide", "exec"), names)
        # What the guide says of its own results.
        self.assertEqual(names["answer"]["files_ended"], 2)
        self.assertEqual(names["gone"], {"20713": 20})
        self.assertTrue(names["told_to_reconcile"])

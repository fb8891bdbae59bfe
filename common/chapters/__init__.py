"""Each chapter as such: its `ChapterSpec`, and what the harness needs beside its listings."""

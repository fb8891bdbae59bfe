"""Each chapter's `ChapterSpec`, and what the harness needs beside its listings."""

"""What is known of each chapter before a framework is loaded: one `ChapterSpec` each."""

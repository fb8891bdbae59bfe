"""Judges a reader's own code: what is wrong, with a hint, and what was not tried."""

from common.judge.judgement import check as check

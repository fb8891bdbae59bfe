"""Each chapter as the harness runs it: trained step by step, recorded, and resumed."""

"""The site: chapters as pages with a tab for each framework, outputs, links."""

"""The chapters as prose, and what makes notebooks and a site of them; it holds no framework."""

import common as common  # it says where the project does not run, before a package is missed

"""``python -m dyncomp``: see :mod:`dyncomp.command_line.main`."""

import sys

from .command_line.main import main

sys.exit(main())

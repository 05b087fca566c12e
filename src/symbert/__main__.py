import sys

if not sys.flags.safe_path:
    del sys.path[0]  # this folder: a numpy.py in it is not numpy, and own operators are found last (symbert.syntax)

from symbert.cli import main

sys.exit(main())

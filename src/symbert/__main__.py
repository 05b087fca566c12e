import sys

from symbert.cli import main

sys.exit(main())

#!/usr/bin/env bash
# A KeyboardInterrupt that is caught, in a module that is run with `python -m`.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat > job.py <<'EOF'
import signal, sys

signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
try:
    if sys.argv[1] == "text":
        exec("signal.raise_signal(signal.SIGTERM)")  # as the import of a dataclass executes a text
    else:
        signal.raise_signal(signal.SIGTERM)
except KeyboardInterrupt:
    print("caught")
sys.exit(75)
EOF
code() { "$@" > said && echo 0 || echo $?; }
plain=$(code python3 -m job plain)
text=$(code python3 -m job text)
script=$(code python3 job.py text)
echo "$(python3 --version): a job catches KeyboardInterrupt and ends by sys.exit(75)"
echo "expected: exit code 75"
echo "seen: with -m $plain, but $text (SIGINT) where the interrupt came in exec of a text; as a script $script"
test "$plain $text $script" = "75 130 75"

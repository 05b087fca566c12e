#!/usr/bin/env bash
# The first hour of a stranger: all that README.md shows, in its order, in a fresh clone. It reads its own console, and
# ends with pictures of the page at two widths, light and dark.
#
#   tests/campaigns/first_hour.sh [FOLDER]  a new folder to work in; a temporary one where none is given
#   FINISHED=DIR                            results/ with a finished demo, which are copied first and spare its three minutes
#   SKIP='make test'                        a line of README.md that is left out
set -euo pipefail
export LC_ALL=C.UTF-8

origin=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:-$(mktemp -d)}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
clone=$folder/symbert
console=$folder/console.txt

fail() { echo "first_hour: $1" >&2; exit 1; }
[ ! -e "$clone" ] || fail "$clone is there already; name another folder"

# Blocks of commands as they are; blocks with a title become files.
awk '
  /^```/ && inside { if (file) print "END_OF_FILE"; inside = 0; file = ""; next }
  /^```bash$/ { inside = 1; next }
  /^```[a-z]+ title="/ { split($0, part, "\""); file = part[2]; inside = 1; print "cat > " file " <<\047END_OF_FILE\047"; next }
  inside { print }
' "$origin/README.md" | sed \
  -e "s#^git clone REPOSITORY#git clone --quiet '$origin'#" \
  -e 's#^cd symbert$#&'"${FINISHED:+\\ncp -a '$FINISHED/.' results/}"'#' \
  -e 's#^\. .venv/bin/activate$#set +v; &; set -v#' \
  -e "${SKIP:+\\#^$SKIP\$#d}" > "$folder/commands.sh"
grep -q '^make reproduce$' "$folder/commands.sh" || fail "README.md has no block of commands with make reproduce"

cd "$folder"
echo "first_hour: in $folder"
bash -euv commands.sh 2>&1 | tee "$console" || fail "a command ended with an error; its output is above, and in $console"

# What a reader sees: a line that is written over is several lines, and colours are none.
sed 's/\x1b\[[0-9;?]*[A-Za-z]//g' "$console" | tr '\r' '\n' > "$folder/lines.txt"
! grep -n 'Traceback (most recent call last)' "$folder/lines.txt" || fail "the console has a traceback"
# An error of symbert is one line, however many files and keys it names.
! grep -nE '^.{201,}' "$folder/lines.txt" | grep -vE '^[0-9]+: *symbert [a-z-]+: ' | cut -c1-120 ||
  fail "the console has lines of more than 200 characters"

pages=$(grep -oP 'experiment(=|: )\K[\w-]+' "$folder/commands.sh" | sort -u | sed 's#.*#results/&/report/report.html#')
for output in results/paper/report/report.html results/demo-embedded/report/report.html $pages; do
  [ -s "$clone/$output" ] || fail "$output is missing"
done

cd "$clone"
PYTHONPATH=tests .venv/bin/python -m campaigns.screens results/demo-embedded/report/report.html "$folder/pictures"
echo "first_hour: $(wc -l < "$folder/lines.txt") lines of console; all outputs are there; look at the pictures above"

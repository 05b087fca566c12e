#!/usr/bin/env bash
# Rows with NaN in a Parquet file, looked for by pyarrow and by DuckDB.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile pyarrow==26.0.1 duckdb==2.0.1

venv/bin/python - <<'PY'
import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

diverged = pc.field("loss").is_nan()
table = pa.table({"run": ["a", "b"], "loss": [1.0, float("nan")]})
pq.write_table(table, "runs.parquet")
pq.write_table(table, "plain.parquet", write_statistics=False)
read = {name: pq.read_table(f"{name}.parquet", filters=diverged)["run"].to_pylist() for name in ("runs", "plain")}
asked = {
    name: [run for (run,) in duckdb.sql(f"SELECT run FROM '{name}.parquet' WHERE isnan(loss)").fetchall()]
    for name in ("runs", "plain")
}
print(f"pyarrow {pa.__version__}, duckdb {duckdb.__version__}: a file with the losses 1.0 of run a and NaN of run b")
print("expected: looking for NaN finds run b")
print(f"seen: pyarrow finds {read['runs']}, DuckDB {asked['runs']}; without statistics in the file {read['plain']} and "
      f"{asked['plain']}: minimum and maximum of a row group do not count NaN, and both readers skip the group")
assert table.filter(diverged).num_rows == 1
assert (read, asked) == ({"runs": [], "plain": ["b"]}, {"runs": [], "plain": ["b"]}), "this has changed"
PY

"""Asks every question of a published file with whatever DuckDB it runs on; imports nothing of the project.

Run as `python ask_everything.py published.duckdb sql/queries`.
"""

import re
import sys
from pathlib import Path

import duckdb

_HEADER = re.compile(r"^-- param (\w+):[^=]*= (.*)$", re.M)
_TEST = re.compile(r"^-- test: (.+)$", re.M)


def main(published: str, folder: str) -> int:
    print(f"DuckDB {duckdb.__version__}")
    con = duckdb.connect(published, read_only=True)
    failures = []
    files = sorted(Path(folder).glob("*.sql"))
    for path in files:
        sql = path.read_text(encoding="utf-8")
        parameters = dict(_HEADER.findall(sql))
        try:
            con.execute(sql, parameters).fetchall()
            for test in _TEST.findall(sql):
                answer = con.execute(f"select {test} from (\n{sql}\n) as answer", parameters).fetchall()
                if answer[0][0] is not True:
                    failures.append(f"{path.name}: {test} does not hold")
        except duckdb.Error as error:
            failures.append(f"{path.name}: {error}")
    if con.execute("select count(*) from verdicts_by_name()").fetchall() == [(0,)]:
        failures.append("the macro verdicts_by_name gives no row")
    print("\n".join(failures) or f"{len(files)} questions answered")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Writes the data of the examples to examples/data: the same rows on every machine.

Needs only pyarrow, no network. A second run does nothing, unless this file has changed.
"""
# ruff: noqa: INP001 -- a script for people to run, not part of a package.

import argparse
import datetime
import gzip
import hashlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

SEED = 20_250_101
YEARS = (2022, 2023, 2024, 2025)
ORDERS = 50_000
CUSTOMERS = 2_000
EVENTS = 10_000

REGIONS = ("north", "south", "east", "west", "central")
SEGMENTS = ("consumer", "business", "public")
STATUSES = ("delivered", "delivered", "delivered", "shipped", "returned")
ACTIONS = ("view", "view", "view", "cart", "purchase")
FIRST_NAMES = ("Ada", "Alan", "Barbara", "Claude", "Edsger", "Frances", "Grace", "Ken", "Radia")
LAST_NAMES = ("Allen", "Hopper", "Liskov", "Lovelace", "Perlman", "Shannon", "Thompson", "Turing")
PRODUCTS = (
    ("Kettle", "kitchen", 34.90),
    ("Teapot", "kitchen", 27.50),
    ("Pan", "kitchen", 49.00),
    ("JobService lamp", "home", 39.95),
    ("Blanket", "home", 59.00),
    ("Mirror", "home", 89.00),
    ("Notebook", "office", 4.20),
    ("Fountain pen", "office", 24.00),
    ("Stapler", "office", 12.80),
    ("Tent", "outdoor", 179.00),
    ("Rucksack", "outdoor", 99.50),
    ("Compass", "outdoor", 18.75),
)

DATA = Path(__file__).resolve().parent / "data"
STAMP = ".made-by"


def main() -> None:
    """Read the flags and write what is missing."""
    parser = argparse.ArgumentParser(description="Write the data of the examples.")
    parser.add_argument("--folder", type=Path, default=DATA, help="where to write (%(default)s)")
    parser.add_argument("--force", action="store_true", help="write also what is up to date")
    flags = parser.parse_args()
    is_written = write(flags.folder, force=flags.force)
    print(f"{flags.folder}: {'written' if is_written else 'up to date'}")


def write(folder: Path, *, force: bool = False) -> bool:
    """Write every file, unless they are up to date; whether it wrote."""
    version = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    stamp = folder / STAMP
    if not force and stamp.is_file() and stamp.read_text() == version:
        return False
    stamp.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    # Each file draws from a generator of its own: changing one leaves the others as they are.
    _write_orders(folder / "orders", random.Random(SEED))
    _write_customers(folder / "customers.csv", random.Random(SEED + 1))
    _write_events(folder / "events.ndjson.gz", random.Random(SEED + 2))
    _write_products(folder / "products.json")
    _write_regions(folder / "regions.arrow")
    stamp.write_text(version)
    return True


def _write_orders(folder: Path, rng: random.Random) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    per_year = ORDERS // len(YEARS)
    for number, year in enumerate(YEARS):
        path = folder / f"year={year}" / "part-0.parquet"
        path.parent.mkdir(parents=True)
        orders = _orders(year, number * per_year + 1, per_year, rng)
        pyarrow.parquet.write_table(orders, path, compression="zstd", row_group_size=5_000)


def _orders(year: int, first_id: int, count: int, rng: random.Random) -> pa.Table:
    start = datetime.datetime(year, 1, 1)
    seconds = sorted(rng.randrange(365 * 86_400) for _ in range(count))
    products = [rng.randrange(len(PRODUCTS)) for _ in range(count)]
    quantities = [rng.randint(1, 5) for _ in range(count)]
    amounts = [
        round(PRODUCTS[product][2] * quantity, 2)
        for product, quantity in zip(products, quantities, strict=True)
    ]
    return pa.table(
        {
            "order_id": pa.array(range(first_id, first_id + count), pa.int64()),
            "ordered_at": pa.array(
                [start + datetime.timedelta(seconds=second) for second in seconds],
                pa.timestamp("us"),
            ),
            "customer_id": pa.array([rng.randint(1, CUSTOMERS) for _ in range(count)], pa.int64()),
            "product_id": pa.array([product + 1 for product in products], pa.int64()),
            "quantity": pa.array(quantities, pa.int32()),
            "amount": pa.array(amounts, pa.float64()),
            "status": pa.array([rng.choice(STATUSES) for _ in range(count)], pa.string()),
        }
    )


def _write_customers(path: Path, rng: random.Random) -> None:
    customers = pa.table(
        {
            "customer_id": pa.array(range(1, CUSTOMERS + 1), pa.int64()),
            "name": [
                f"{rng.choice(FIRST_NAMES)} {rng.choice(LAST_NAMES)}" for _ in range(CUSTOMERS)
            ],
            "segment": [rng.choice(SEGMENTS) for _ in range(CUSTOMERS)],
            "region_id": [rng.randint(1, len(REGIONS)) for _ in range(CUSTOMERS)],
        }
    )
    pyarrow.csv.write_csv(customers, path)


def _write_events(path: Path, rng: random.Random) -> None:
    start = datetime.datetime(2025, 6, 1, tzinfo=datetime.UTC)
    lines = [json.dumps(_event(start, number, rng)) for number in range(EVENTS)]
    # Without a name and a time in its header, the archive is the same on every run.
    with path.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as archive:
        archive.write("\n".join(lines).encode() + b"\n")


def _event(start: datetime.datetime, number: int, rng: random.Random) -> dict[str, Any]:
    return {
        "event_id": number + 1,
        "at": (start + datetime.timedelta(seconds=number * 30)).isoformat(),
        "customer_id": rng.randint(1, CUSTOMERS),
        "product_id": rng.randint(1, len(PRODUCTS)),
        "action": rng.choice(ACTIONS),
        "duration_ms": rng.randint(20, 9_000),
    }


def _write_products(path: Path) -> None:
    products = [
        {"product_id": number, "name": name, "category": category, "price": price}
        for number, (name, category, price) in enumerate(PRODUCTS, start=1)
    ]
    path.write_text(json.dumps(products, indent=2) + "\n", encoding="utf-8")


def _write_regions(path: Path) -> None:
    regions = pa.table(
        {
            "region_id": pa.array(range(1, len(REGIONS) + 1), pa.int64()),
            "region": pa.array(REGIONS, pa.string()),
        }
    )
    with pyarrow.ipc.new_file(str(path), regions.schema) as sink:
        sink.write_table(regions)


if __name__ == "__main__":
    main()

"""The three sets of tables that questions are about, with descriptions as a user writes them."""

import csv
import datetime
import random
import subprocess
import sys
from pathlib import Path

_EXAMPLES = Path(__file__).parents[2] / "examples"
_TPCH = {
    "customer": "Customers, each of one nation",
    "lineitem": "The items of orders",
    "nation": "Nations, each of one region",
    "orders": "Orders of customers",
    "part": "Parts that are sold",
    "partsupp": "Which supplier has which part",
    "region": "Regions of the world",
    "supplier": "Suppliers, each of one nation",
}
_CITIES = ("Bern", "Basel", "Geneva", "Zurich")
_FIRST = ("Ann", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gina", "Hugo")
_LAST = ("Berg", "Egli", "Frei", "Keller", "Meier", "Suter")
_DIAGNOSES = ("flu", "flu", "flu", "asthma", "migraine", "sprain", None)
_DOCTORS = (
    (1, "Dr. Adler", "cardiology", "2010-04-01", None),
    (2, "Dr. Brun", "dermatology", "2012-09-01", "2024-05-31"),
    (3, "Dr. Conti", "cardiology", "2018-01-15", None),
    (4, "Dr. Dubois", "pediatrics", "2020-06-01", None),
    (5, "Dr. Erb", "neurology", "2021-02-01", "2023-12-31"),
)


def tpch(folder: Path) -> str:
    """Write TPC-H at a scale of 0.01, and return the datasets of a manifest."""
    command = Path(sys.executable).parent / "tpchgen-cli"
    if not command.exists():
        command = Path(sys.executable).parent / "tpcgen-cli"
    subprocess.run(
        [str(command), *(["tpch"] if command.name == "tpcgen-cli" else []), "parquet", "-s",
         "0.01", f"--output-dir={folder}"],
        check=True, capture_output=True,
    )  # fmt: skip
    items = [
        f"  - {{from: 'file:{folder}/{name}.parquet', name: {name}, description: '{told}'}}\n"
        for name, told in _TPCH.items()
    ]
    return f"datasets:\n{''.join(items)}"


def quickstart(folder: Path) -> str:
    """Return the datasets of the quickstart, without its views."""
    text = (_EXAMPLES / "quickstart/caraway.yaml").read_text()
    datasets = text[text.index("datasets:") : text.index("views:")]
    return datasets.replace("../data", str(_EXAMPLES / "data"))


def clinic(folder: Path) -> str:
    """Write tables with NULLs, dates and truth values, and return the datasets of a manifest."""
    chance = random.Random(7)
    patients = []
    names = [f"{first} {last}" for first in _FIRST for last in _LAST]
    for number, name in enumerate(names, start=1):
        born = datetime.date(1940 + chance.randrange(70), 1 + chance.randrange(12), 3)
        email = None if number % 4 == 0 else f"{name.replace(' ', '.').lower()}@mail.test"
        patients.append((number, name, born, _CITIES[number % 4], email))
    visits = []
    for number in range(1, 401):
        day = datetime.date(2023, 1, 1) + datetime.timedelta(days=chance.randrange(730))
        visits.append(
            (number, chance.randint(1, len(patients)), chance.randint(1, 5), day,
             chance.choice(_DIAGNOSES), chance.randrange(50, 400) + 0.5,
             "true" if chance.random() < 0.8 else "false")
        )  # fmt: skip
    _write(folder / "patients.csv", ("patient_id", "name", "birth_date", "city", "email"), patients)
    _write(folder / "doctors.csv",
           ("doctor_id", "name", "specialty", "joined_on", "left_on"), _DOCTORS)  # fmt: skip
    header = ("visit_id", "patient_id", "doctor_id", "visited_on", "diagnosis", "fee", "is_paid")
    _write(folder / "visits.csv", header, visits)
    return f"""datasets:
  - {{from: 'file:{folder}/patients.csv', name: patients, description: People who are treated}}
  - from: file:{folder}/doctors.csv
    name: doctors
    description: Doctors of the clinic
    columns: [{{name: left_on, description: 'when they left, NULL if they still work here'}}]
  - {{from: 'file:{folder}/visits.csv', name: visits, description: Visits of patients at doctors}}
"""


def _write(path: Path, header: tuple[str, ...], rows: object) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)  # type: ignore[arg-type] # rows of any values

"""Three sets of tables on which no prompt was tuned: prefixes, keys by several names, codes."""

import csv
import datetime
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

_AIRPORTS = (
    ("ZRH", "Zurich", "Switzerland", 25), ("GVA", "Geneva", "Switzerland", 15),
    ("CDG", "Paris", "France", 38), ("LHR", "London", "United Kingdom", 41),
    ("MAD", "Madrid", "Spain", 30), ("BCN", "Barcelona", "Spain", 27),
    ("OSL", "Oslo", "Norway", 12),
)  # fmt: skip
_STATUS = ("on time", "on time", "on time", "delayed", "cancelled")
_GENRES = ("novel", "poetry", "history", "science")
_DEPARTMENTS = (
    (10, "Sales", "Berlin", 900_000), (20, "Research", "Hamburg", 1_500_000),
    (30, "Support", "Berlin", 400_000), (40, "Legal", "Munich", 250_000),
)  # fmt: skip
_NAMES = ("Ada", "Bea", "Carl", "Dora", "Emil", "Fritz", "Greta", "Hans", "Ida", "Jan")
_CLANS = ("Albers", "Brandt", "Claus", "Diehl", "Ernst")


def airline(folder: Path) -> str:
    """Write flights between airports and their bookings; each column has its table's prefix."""
    chance = random.Random(11)
    codes = [code for code, *_ in _AIRPORTS]
    flights, bookings = [], []
    for number in range(1, 201):
        origin, target = chance.sample(codes, 2)
        day = datetime.date(2024, 1, 1) + datetime.timedelta(days=chance.randrange(500))
        flights.append((number, origin, target, day, chance.choice(_STATUS),
                        chance.randrange(60, 240), chance.choice((120, 150, 180))))  # fmt: skip
    for number in range(1, 1_001):
        bookings.append((number, chance.randint(1, 200), f"P{chance.randint(1, 300):03}",
                         chance.choice(("economy", "economy", "business")),
                         50.25 + number * 37 % 1_000))  # fmt: skip
    columns = ("a_code", "a_city", "a_country", "a_gates")
    _write(folder / "airport.csv", columns, _AIRPORTS)
    header = ("f_flightkey", "f_origin", "f_destination", "f_date", "f_status", "f_minutes",
              "f_seats")  # fmt: skip
    _write(folder / "flight.csv", header, flights)
    _write(folder / "booking.csv", ("b_bookingkey", "b_flightkey", "b_passenger", "b_class",
                                    "b_price"), bookings)  # fmt: skip
    return f"""datasets:
  - {{from: 'file:{folder}/airport.csv', name: airport}}
  - from: file:{folder}/flight.csv
    name: flight
    columns:
      - {{name: f_origin, description: code of the airport where the flight begins}}
      - {{name: f_destination, description: code of the airport where the flight ends}}
  - {{from: 'file:{folder}/booking.csv', name: booking, description: Seats that were sold}}
"""


def library(folder: Path) -> str:
    """Write books, members and loans, some of which are not returned."""
    chance = random.Random(12)
    books = [(number, f"Title {number}", f"{chance.choice(_NAMES)} {chance.choice(_CLANS)}",
              chance.choice(_GENRES), chance.randrange(1950, 2024), 90 + number * 37 % 80 * 7)
             for number in range(1, 81)]  # fmt: skip
    members = [(number, f"{_NAMES[number % 10]} {_CLANS[number % 5]} {number}",
                datetime.date(2015 + number % 9, 1 + number % 12, 9), number % 7 != 0)
               for number in range(1, 61)]  # fmt: skip
    loans = []
    for number in range(1, 501):
        day = datetime.date(2023, 1, 1) + datetime.timedelta(days=chance.randrange(720))
        back = None if chance.random() < 0.1 else day + datetime.timedelta(chance.randrange(1, 60))
        fine = chance.choice((0, 0, 0, 1.5, 4))
        loans.append((number, chance.randint(1, 80), chance.randint(1, 60), day, back, fine))
    header = ("id", "title", "author", "genre", "published", "pages")
    _write(folder / "books.csv", header, books)
    _write(folder / "members.csv", ("id", "name", "joined", "is_active"), members)
    header = ("id", "book_id", "member_id", "loaned_on", "returned_on", "fine")
    _write(folder / "loans.csv", header, loans)
    return f"""datasets:
  - {{from: 'file:{folder}/books.csv', name: books, description: Books of the library}}
  - {{from: 'file:{folder}/members.csv', name: members}}
  - from: file:{folder}/loans.csv
    name: loans
    columns: [{{name: returned_on, description: 'NULL while the book is out'}}]
"""


def company(folder: Path) -> str:
    """Write departments, employees with managers, and who works on which project."""
    chance = random.Random(13)
    employees = []
    for number in range(1, 101):
        boss = None if number <= 4 else chance.randint(1, 4)
        hired = datetime.date(2010, 1, 1) + datetime.timedelta(days=chance.randrange(5_000))
        employees.append((number, _NAMES[number % 10], _CLANS[number % 5],
                          10 * chance.randint(1, 4), boss, hired,
                          30_000 + number * 37 % 100 * 900,
                          chance.choice(("full", "part"))))  # fmt: skip
    projects = [(number, f"Project {letter}", 10 * chance.randint(1, 4), chance.choice("AHMD"))
                for number, letter in enumerate("ABCDEFGH", start=1)]  # fmt: skip
    work = sorted({(chance.randint(1, 100), chance.randint(1, 8)) for _ in range(300)})
    hours = [(person, project, chance.randrange(5, 200)) for person, project in work]
    _write(folder / "departments.csv", ("dept_no", "dept_name", "city", "budget"), _DEPARTMENTS)
    header = ("emp_no", "first_name", "last_name", "dept_no", "manager_no", "hired_on", "salary",
              "contract")  # fmt: skip
    _write(folder / "employees.csv", header, employees)
    columns = ("project_no", "project_name", "dept_no", "priority")
    _write(folder / "projects.csv", columns, projects)
    _write(folder / "assignments.csv", ("emp_no", "project_no", "hours"), hours)
    return f"""datasets:
  - {{from: 'file:{folder}/departments.csv', name: departments}}
  - {{from: 'file:{folder}/employees.csv', name: employees, description: All employees}}
  - {{from: 'file:{folder}/projects.csv', name: projects}}
  - {{from: 'file:{folder}/assignments.csv', name: assignments,
      description: Hours of employees on projects}}
"""


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)

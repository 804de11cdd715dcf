"""60 questions with the SQL that gives the right rows; only rows are compared, never SQL."""

from dataclasses import dataclass
from typing import Literal

Suite = Literal["tpch", "quickstart", "clinic", "airline", "library", "company"]


@dataclass(frozen=True, slots=True)
class QuestionCase:
    """A question, and a statement that answers it."""

    suite: Suite
    text: str
    sql: str
    has_order: bool = False


def question_cases(suite: Suite, *pairs: tuple[str, str]) -> tuple[QuestionCase, ...]:
    """Return the questions of a suite; rows are compared in order where the SQL orders them."""
    return tuple(QuestionCase(suite, text, sql, " ORDER BY " in sql) for text, sql in pairs)


TPCH = question_cases(
    "tpch",
    ("How many orders are there?", "SELECT count(*) FROM orders"),
    ("How many customers are in the market segment BUILDING?",
     "SELECT count(*) FROM customer WHERE c_mktsegment = 'BUILDING'"),
    ("What is the total of o_totalprice over all orders?",
     "SELECT sum(o_totalprice) FROM orders"),
    ("List the names of all regions.", "SELECT r_name FROM region"),
    ("How many orders were placed in 1995?",
     "SELECT count(*) FROM orders WHERE extract(year FROM o_orderdate) = 1995"),
    ("What is the highest retail price of a part?", "SELECT max(p_retailprice) FROM part"),
    ("How many orders does each order status have?",
     "SELECT o_orderstatus, count(*) FROM orders GROUP BY 1"),
    ("How many nations are in each region? Show the region's name.",
     "SELECT r_name, count(*) FROM nation JOIN region ON n_regionkey = r_regionkey GROUP BY 1"),
    ("How many customers does each nation have? Show the nation's name.",
     "SELECT n_name, count(*) FROM customer JOIN nation ON c_nationkey = n_nationkey GROUP BY 1"),
    ("What is the average discount of the line items?", "SELECT avg(l_discount) FROM lineitem"),
    ("Which 3 customers have the highest account balance? Show only the name.",
     "SELECT c_name FROM customer ORDER BY c_acctbal DESC LIMIT 3"),
    ("How many distinct ship modes are there?",
     "SELECT count(DISTINCT l_shipmode) FROM lineitem"),
    ("How many line items have the return flag R?",
     "SELECT count(*) FROM lineitem WHERE l_returnflag = 'R'"),
    ("What is the earliest order date?", "SELECT min(o_orderdate) FROM orders"),
    ("How many orders have the priority 1-URGENT?",
     "SELECT count(*) FROM orders WHERE o_orderpriority = '1-URGENT'"),
    ("How many suppliers are from GERMANY?",
     "SELECT count(*) FROM supplier JOIN nation ON s_nationkey = n_nationkey "
     "WHERE n_name = 'GERMANY'"),
    ("What is the total quantity of line items shipped by AIR?",
     "SELECT sum(l_quantity) FROM lineitem WHERE l_shipmode = 'AIR'"),
    ("How many customers have a negative account balance?",
     "SELECT count(*) FROM customer WHERE c_acctbal < 0"),
    ("How many orders were placed in March 1996?",
     "SELECT count(*) FROM orders WHERE o_orderdate >= DATE '1996-03-01' "
     "AND o_orderdate < DATE '1996-04-01'"),
    ("How many parts are there of the brand Brand#13?",
     "SELECT count(*) FROM part WHERE p_brand = 'Brand#13'"),
)  # fmt: skip
QUICKSTART = question_cases(
    "quickstart",
    ("How many customers are there?", "SELECT count(*) FROM customers"),
    ("List the names and prices of all products.", "SELECT name, price FROM products"),
    ("How many orders were returned?", "SELECT count(*) FROM orders WHERE status = 'returned'"),
    ("How many customers are in each segment?",
     "SELECT segment, count(*) FROM customers GROUP BY 1"),
    ("What is the total amount of all orders in 2024?",
     "SELECT sum(amount) FROM orders WHERE year = 2024"),
    ("Which products are in the category kitchen? Show the names.",
     "SELECT name FROM products WHERE category = 'kitchen'"),
    ("What is the average price of the products in each category?",
     "SELECT category, avg(price) FROM products GROUP BY 1"),
    ("What is the most expensive product? Show its name.",
     "SELECT name FROM products ORDER BY price DESC LIMIT 1"),
    ("How many orders are there for each year?", "SELECT year, count(*) FROM orders GROUP BY 1"),
    ("How many customers live in each region? Show the name of the region.",
     "SELECT region, count(*) FROM customers JOIN regions USING (region_id) GROUP BY 1"),
    ("What is the total amount of orders for the product Tent?",
     "SELECT sum(amount) FROM orders JOIN products USING (product_id) WHERE name = 'Tent'"),
    ("How many distinct customers placed an order?",
     "SELECT count(DISTINCT customer_id) FROM orders"),
    ("What is the largest amount of an order?", "SELECT max(amount) FROM orders"),
    ("How many products cost more than 50?", "SELECT count(*) FROM products WHERE price > 50"),
    ("How many orders have a quantity of at least 3?",
     "SELECT count(*) FROM orders WHERE quantity >= 3"),
    ("What is the total amount of orders of each product category?",
     "SELECT category, sum(amount) FROM orders JOIN products USING (product_id) GROUP BY 1"),
    ("How many business customers live in the region north?",
     "SELECT count(*) FROM customers JOIN regions USING (region_id) "
     "WHERE segment = 'business' AND region = 'north'"),
    ("How many orders does each status have?", "SELECT status, count(*) FROM orders GROUP BY 1"),
    ("List the 3 cheapest products, cheapest first. Show name and price.",
     "SELECT name, price FROM products ORDER BY price LIMIT 3"),
    ("How many orders were placed in June 2023?",
     "SELECT count(*) FROM orders WHERE ordered_at >= TIMESTAMP '2023-06-01' "
     "AND ordered_at < TIMESTAMP '2023-07-01'"),
)  # fmt: skip
CLINIC = question_cases(
    "clinic",
    ("How many patients are there?", "SELECT count(*) FROM patients"),
    ("How many patients have no email?", "SELECT count(*) FROM patients WHERE email IS NULL"),
    ("List the names of the patients who were born before 1960.",
     "SELECT name FROM patients WHERE birth_date < DATE '1960-01-01'"),
    ("How many visits took place in 2024?",
     "SELECT count(*) FROM visits WHERE extract(year FROM visited_on) = 2024"),
    ("How many visits did each doctor have? Show the doctor's name.",
     "SELECT d.name, count(*) FROM visits v JOIN doctors d ON v.doctor_id = d.doctor_id "
     "GROUP BY 1"),
    ("What is the total fee of all visits that are paid?",
     "SELECT sum(fee) FROM visits WHERE is_paid"),
    ("How many visits have no diagnosis?", "SELECT count(*) FROM visits WHERE diagnosis IS NULL"),
    ("What is the average fee of a visit?", "SELECT avg(fee) FROM visits"),
    ("List the names of the doctors of the specialty cardiology.",
     "SELECT name FROM doctors WHERE specialty = 'cardiology'"),
    ("Which diagnosis is the most frequent?",
     "SELECT diagnosis FROM visits WHERE diagnosis IS NOT NULL GROUP BY 1 "
     "ORDER BY count(*) DESC LIMIT 1"),
    ("How many patients live in each city?", "SELECT city, count(*) FROM patients GROUP BY 1"),
    ("What was the date of the latest visit?", "SELECT max(visited_on) FROM visits"),
    ("How many visits were there with the diagnosis flu?",
     "SELECT count(*) FROM visits WHERE diagnosis = 'flu'"),
    ("How many different patients visited in March 2024?",
     "SELECT count(DISTINCT patient_id) FROM visits WHERE visited_on >= DATE '2024-03-01' "
     "AND visited_on < DATE '2024-04-01'"),
    ("List the names of the patients from Bern who have an email.",
     "SELECT name FROM patients WHERE city = 'Bern' AND email IS NOT NULL"),
    ("What is the highest fee of a visit?", "SELECT max(fee) FROM visits"),
    ("How many unpaid visits are there?", "SELECT count(*) FROM visits WHERE NOT is_paid"),
    ("What is the total fee for each specialty of the doctors?",
     "SELECT d.specialty, sum(v.fee) FROM visits v JOIN doctors d ON v.doctor_id = d.doctor_id "
     "GROUP BY 1"),
    ("How many doctors have left?", "SELECT count(*) FROM doctors WHERE left_on IS NOT NULL"),
    ("How many visits did the patient Ann Berg have?",
     "SELECT count(*) FROM visits v JOIN patients p ON v.patient_id = p.patient_id "
     "WHERE p.name = 'Ann Berg'"),
)  # fmt: skip
ALL = (*TPCH, *QUICKSTART, *CLINIC)
